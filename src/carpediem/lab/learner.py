"""One run in training: its tensors, and the one training step there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from carpediem import ActiveBias, AdaptiveSampler, OnlineBatch, RecencyBias, Selector
from carpediem.core.draws.independent import IndependentDraws
from carpediem.core.shapes import MAX_WINDOW
from carpediem.lab.augment import augmentation
from carpediem.lab.config import RunConfig
from carpediem.lab.network import Network
from carpediem.lab.observer import SampleObserver
from carpediem.lab.source import IGNORED, Source
from carpediem.selectors.base import Draws

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
HISTOGRAM_EDGES = torch.linspace(-6, 2, 41)  # of log10 of the loss (Figure 4)


class Learner:
    """Trains one network on batches that one selector draws, with others looking on.

    The state lives in tensors that are only ever written in place, and a step reads nothing back, so that
    `step` can be recorded once as a CUDA graph and replayed.

    Torch's global generator, which `F.dropout` and `nn.Dropout2d` of a user's own network draw from, is seeded
    from (seed, iteration) for every step on the CPU and put back after it: such runs too give the same numbers
    again, go on from a checkpoint bit for bit, and leave the user's generator as it was. On a CUDA device this
    does not hold: there such layers draw from the device's one generator, runs that train side by side share it,
    and it is not in the checkpoint. `nn.Dropout` is replaced by a layer without a generator (`lab.dropout`), and
    is reproducible everywhere.

    Args:
        config: the run.
        network: the architecture, shared by runs.
        data: the data set, shared by runs.
        selectors: the first draws the batches; all observe (during a shared warm-up every method must).
        window: how many predictions of each sample are kept for its record. [default: the run's]
    """

    def __init__(
        self,
        config: RunConfig,
        network: Network,
        data: Source,
        selectors: Sequence[Selector],
        *,
        window: int | None = None,
    ) -> None:
        draws: Draws = "systematic" if config.draws == "systematic" else "independent"
        self.config, self.network, self.selectors = config, network, list(selectors)
        self.data = data.for_one_run()
        device = network.device
        self.steps = config.steps_per_epoch(data.num_samples)
        self.sampler = AdaptiveSampler(
            self.selectors[0], batch_size=config.batch_size, seed=config.seed, draws=draws
        )
        self._parameters, self._buffers = network.fresh_tensors(config.seed)
        self._scratch = {name: self._buffers.pop(name) for name in network.scratch_names}
        self._velocity = {name: torch.zeros_like(p) for name, p in self._parameters.items()}
        self._generator = torch.Generator(device).manual_seed(config.seed)
        # What the network computes with: in bf16, copies of the weights, made anew after each update.
        self._rounded = (
            {n: p.bfloat16() for n, p in self._parameters.items() if p.dim() > 1}
            if config.precision == "bf16"
            else {}
        )
        self._working = self._parameters | self._rounded
        for tensor in self._working.values():
            tensor.requires_grad_(True)
        self._gradients = {n: torch.empty_like(self._parameters[n]) for n in self._rounded}
        self._augment = augmentation(config.augmentation)
        self._rate = torch.zeros((), device=device)
        # Every dropout layer reads this one number, which changes with each step.
        self._dropout_seed = torch.tensor(_spread(config.seed), dtype=torch.int32, device=device)
        self._buffers |= dict.fromkeys(network.seed_names, self._dropout_seed)
        self._filling = torch.Generator()
        shape = (self.steps, config.batch_size)
        self._batches = torch.zeros(shape, dtype=torch.int64, device=device)
        self._losses = torch.zeros(shape, device=device)
        self._predictions = torch.zeros(shape, dtype=torch.int32, device=device)
        # Methods that keep no window may be given one of any length.
        self.observer: SampleObserver | None = SampleObserver(
            data.num_samples,
            data.num_classes,
            min(window or config.window, MAX_WINDOW),
            config.epochs(data.num_samples),
            device,
        )
        self._step = torch.zeros(1, dtype=torch.int64, device=device)
        self._side = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._lost = torch.zeros((), device=device)
        self._wrong = torch.zeros((), dtype=torch.int64, device=device)
        self._dropping_wrong = torch.zeros((), dtype=torch.int64, device=device)
        self._test_seed = torch.zeros_like(self._dropout_seed)
        self.iteration = 0

    @property
    def generator(self) -> torch.Generator:
        """The run's own generator, which the augmentation draws from."""
        return self._generator

    @property
    def epoch(self) -> int:
        """Epochs finished so far."""
        return -(-self.iteration // self.steps)

    def begin_epoch(self) -> int:
        """Draws the next epoch's batches; returns how many steps it has."""
        epoch = self.sampler.epoch
        for selector in self.selectors:
            if (
                isinstance(selector, OnlineBatch)
                and selector.losses == "evaluate"
                and epoch >= selector.warm_up
            ):
                # One that is no number, of a run that diverges, counts as the largest.
                largest = torch.finfo(torch.float32).max
                selector.set_losses(self._training_losses().nan_to_num(nan=largest, posinf=largest))
        drawn = self.sampler.next_epoch()
        for selector in self.selectors[1:]:
            selector.refresh(epoch)
        self._batches.copy_(self._whole(drawn, epoch))
        self.rewind()
        self.data.begin(self._batches)
        return min(self.steps, self.config.iterations - self.iteration)

    def _whole(self, drawn: Tensor, epoch: int) -> Tensor:
        """The epoch's batches, (steps, b), all whole: what remains is left out, or a batch drawn in its place."""
        batch = self.config.batch_size
        found = drawn[: len(drawn) // batch * batch].view(-1, batch)
        if len(found) == self.steps:
            return found
        generator = self._filling.manual_seed(_mixed(self.config.seed, epoch))
        last = IndependentDraws(self.selectors[0].distribution).batches(1, batch, generator)
        return torch.cat((found, last.to(found.device)))

    @contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """On the CPU, what draws from torch's global generator inside draws the run's own numbers."""
        if self.network.device.type != "cpu":
            yield
            return
        with torch.random.fork_rng(devices=[]):
            # Not torch.manual_seed, which seeds the generators of all devices.
            torch.default_generator.manual_seed(
                (self.config.seed * 0x9E3779B1 + self.iteration * 0x85EBCA6B) % 2**32
            )
            yield

    def rewind(self) -> None:
        """Back to the first batch of the epoch."""
        self._step.zero_()

    def step(self) -> None:
        """One training step on the next batch. Nothing here waits for the device."""
        with self._own_randomness():
            self._train_on_next_batch()

    def _train_on_next_batch(self) -> None:
        indices = self._batches.index_select(0, self._step)[0]
        pixels, labels = self.data.fetch(indices)
        images = self.data.normalise(self._augment(pixels, self._generator))
        if self.network.device.type == "cuda":
            images = images.contiguous(memory_format=torch.channels_last)
        logits = self.network.train_logits(self._tensors(), images).float()
        losses = cross_entropy(logits, labels, reduction="none")
        weights = self.selectors[0].loss_weights(indices)
        with self._aside():
            for selector in self.selectors:
                selector.observe(indices, logits, labels)
            self._losses.index_copy_(0, self._step, losses.detach()[None])
            self._predictions.index_copy_(0, self._step, logits.detach().argmax(1).int()[None])
        loss = (losses if weights is None else losses * weights).mean()
        self._update(torch.autograd.grad(loss, list(self._working.values())))
        if self._side is not None:
            torch.cuda.current_stream().wait_stream(self._side)
        self._step += 1
        self._dropout_seed += 1

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """Work inside goes on beside what follows: on a CUDA device, while gradients are computed."""
        if self._side is None:
            yield
            return
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            yield

    def _tensors(self) -> dict[str, Tensor]:
        """What the network is a function of, by name."""
        return self._working | self._buffers | self._scratch

    @torch.no_grad()
    def _update(self, gradients: Sequence[Tensor]) -> None:
        """Stochastic gradient descent with weight decay, and momentum unless the optimizer is plain."""
        config, found = self.config, dict(zip(self._working, gradients, strict=True))
        if self._rounded:
            torch._foreach_copy_(list(self._gradients.values()), [found[n] for n in self._rounded])
        found |= self._gradients
        has_momentum = config.optimizer == "momentum"
        torch._fused_sgd_(
            list(self._parameters.values()),
            list(found.values()),
            list(self._velocity.values()) if has_momentum else [],
            weight_decay=config.weight_decay,
            momentum=config.momentum if has_momentum else 0.0,
            lr=self._rate,
            dampening=0.0,
            nesterov=has_momentum and config.nesterov,
            maximize=False,
            is_first_step=False,  # the velocity starts at zero, which comes to the same
        )
        self._round()

    @torch.no_grad()
    def _round(self) -> None:
        """Makes the copies in bf16 equal to the parameters."""
        if self._rounded:
            torch._foreach_copy_(
                list(self._rounded.values()), [self._parameters[name] for name in self._rounded]
            )

    def set_rate(self) -> None:
        """Sets the learning rate of the coming step; to be called before each one."""
        rate = self.config.learning_rate_at(self.iteration)
        if self.iteration == 0 or rate != self.config.learning_rate_at(self.iteration - 1):
            self._rate.fill_(rate)

    def end_epoch(self, steps: int) -> dict[str, Any]:
        """What the epoch was like: the training side of its record."""
        if self.observer is not None:
            self.observer.take_in(self._batches[:steps], self._predictions[:steps], self._losses[:steps])
        losses = self._losses[:steps].flatten()
        drawn = len(torch.unique(self._batches[:steps]))
        logs = losses.clamp(min=1e-6).log10().cpu()
        quantiles = losses.quantile(torch.tensor(QUANTILES, device=losses.device)).tolist()
        return {
            "train_loss": float(losses.mean()),
            "learning_rate": self.config.learning_rate_at(self.iteration - 1),
            **seen_by(self.selectors[0]),
            **self._settled(),
            "distinct": drawn / self.data.num_samples,
            "loss_quantiles": dict(zip(map(str, QUANTILES), quantiles, strict=True)),
            "loss_histogram": {
                "edges_log10": [round(float(edge), 3) for edge in HISTOGRAM_EDGES],
                "counts": torch.histogram(logs.clamp(-6, 2), HISTOGRAM_EDGES).hist.long().tolist(),
            },
        }

    def _settled(self) -> dict[str, float]:
        """Of the tenth that Active Bias holds most uncertain, the share whose last predictions all equal the label."""
        selector = self.selectors[0]
        if not isinstance(selector, ActiveBias) or self.observer is None or selector.epoch < selector.warm_up:
            return {}
        most = selector.moments.deviation().topk(max(1, self.data.num_samples // 10)).indices
        labels = self.data.train_labels[most.cpu()].to(most.device)
        return {"settled_share": float(self.observer.agree(most, labels).float().mean())}

    def evaluate(
        self, on_part: Callable[[Tensor, Tensor], None] | None = None, *, test: bool = True
    ) -> Callable[[], dict[str, Any]]:
        """Puts the test set, or the training set as it is, through the network. Nothing here waits for the device.

        Args:
            on_part: what does as `test_part`, if not that itself.

        Returns:
            What waits, and then gives loss and error (in percent), and the test error with dropout left on where the
            network gives that too.
        """
        self._lost.zero_()
        self._wrong.zero_()
        self._dropping_wrong.zero_()
        self._test_seed.copy_(-self._dropout_seed)  # below 0, where no step has its own
        with self._own_randomness():
            for images, labels in self.data.parts(test=test):
                (on_part or self.test_part)(images, labels)
        return self._tested if test else self._trained

    @torch.no_grad()
    def test_part(self, images: Tensor, labels: Tensor) -> None:
        """Adds what one part of the test set, or of the training set, gives."""
        images, tensors = self._test_images(images), self._testing_tensors()
        logits = self.network.test_logits(tensors, images).float()
        self._lost += cross_entropy(logits, labels, reduction="sum", ignore_index=IGNORED)
        self._wrong += _count_wrong(logits, labels)
        if self.network.dropping_logits is not None:
            self._dropping_wrong += _count_wrong(self.network.dropping_logits(tensors, images), labels)
        self._test_seed -= 1

    def _testing_tensors(self) -> dict[str, Tensor]:
        """What the network is a function of in an evaluation: a dropout that stays at work has a seed of its own."""
        return self._tensors() | dict.fromkeys(self.network.seed_names, self._test_seed)

    def _trained(self) -> dict[str, Any]:
        count = self.data.num_samples
        return {
            "training_set_loss": float(self._lost) / count,
            "training_set_error": 100 * int(self._wrong) / count,
        }

    def _tested(self) -> dict[str, Any]:
        tested = {
            "test_loss": float(self._lost) / self.data.num_tested,
            "test_error": 100 * int(self._wrong) / self.data.num_tested,
        }
        if self.network.dropping_logits is not None:
            tested["test_error_dropout"] = 100 * int(self._dropping_wrong) / self.data.num_tested
        return tested

    def _test_images(self, images: Tensor) -> Tensor:
        images = self.data.normalise(images.float())
        if self.network.device.type == "cuda":
            images = images.contiguous(memory_format=torch.channels_last)
        return images

    @torch.no_grad()
    def _training_losses(self) -> Tensor:
        """The loss of every training sample as it is now, without augmentation."""
        self._test_seed.copy_(-self._dropout_seed)
        with self._own_randomness():
            losses = []
            for images, labels in self.data.parts(test=False):
                logits = self.network.test_logits(self._testing_tensors(), self._test_images(images)).float()
                losses.append(cross_entropy(logits, labels, reduction="none", ignore_index=IGNORED))
                self._test_seed -= 1
        return torch.cat(losses)[: self.data.num_samples]

    def state_dict(self) -> dict[str, Any]:
        """All that the next step depends on, between two epochs."""
        return {
            "parameters": _on_host(self._parameters),
            "buffers": _on_host(self._buffers),
            "velocity": _on_host(self._velocity),
            "steps": _on_host({"dropout_seed": self._dropout_seed, "rate": self._rate}),
            "generator": self._generator.get_state(),
            "sampler": self.sampler.state_dict(),
            "iteration": self.iteration,
            "selectors": [_on_host(selector.state_dict()) for selector in self.selectors],
            "samples": None if self.observer is None else self.observer.state_dict(),
        }

    @torch.no_grad()
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`; everything is written in place."""
        groups = {
            "parameters": self._parameters,
            "buffers": self._buffers,
            "velocity": self._velocity,
            "steps": {"dropout_seed": self._dropout_seed, "rate": self._rate},
        }
        for kind, group in groups.items():
            for name, tensor in group.items():
                tensor.copy_(state[kind][name])
        self._round()
        self._generator.set_state(state["generator"])
        self.sampler.load_state_dict(state["sampler"])
        self.iteration = state["iteration"]
        for selector, own in zip(self.selectors, state["selectors"], strict=True):
            selector.load_state_dict(own)
        # A state of an earlier version does not know what its epochs did: such a run leaves no sample records.
        samples = state.get("samples")
        if samples is None:
            self.observer = None
        elif self.observer is not None:
            self.observer.load_state_dict(samples)


def seen_by(selector: Selector) -> dict[str, Any]:
    """What the record of an epoch says about the method."""
    return {
        "pressure": selector.pressure_at(selector.epoch)
        if isinstance(selector, (RecencyBias, OnlineBatch))
        else None,
        **_uncertainties(selector),
    }


def _uncertainties(selector: Selector) -> dict[str, Any]:
    """Mean uncertainty, and how many samples have each value of it (Figure 3); None for other methods."""
    if not isinstance(selector, RecencyBias):
        return {"uncertainty": None, "uncertainty_counts": None}
    values = selector.history.shapes.uncertainties(selector.history.num_classes)
    counts = torch.bincount(selector.history.levels(), minlength=len(values)).cpu().numpy()
    by_value: dict[float, int] = {}
    for level in counts.nonzero()[0]:
        value = round(float(values[level]), 12)  # the same to all digits that Eq. 7 goes by
        by_value[value] = by_value.get(value, 0) + int(counts[level])
    mean = float(values @ counts / counts.sum())
    return {"uncertainty": mean, "uncertainty_counts": [list(pair) for pair in sorted(by_value.items())]}


def _count_wrong(logits: Tensor, labels: Tensor) -> Tensor:
    return ((logits.argmax(1) != labels) & (labels >= 0)).sum()


def _on_host(state: dict[str, Any]) -> dict[str, Any]:
    """A copy whose tensors lie in main memory."""
    return {n: v.detach().to("cpu", copy=True) if isinstance(v, Tensor) else v for n, v in state.items()}


def _mixed(seed: int, epoch: int) -> int:
    """The seed of the batch that fills an epoch up."""
    return (seed * 0x9E3779B1 + epoch * 0x85EBCA6B + 0x27D4EB2F) % 2**63


def _spread(seed: int) -> int:
    """Far apart first numbers for the dropout of neighbouring seeds."""
    return (seed * 0x9E3779B1 + 0x7F4A7C15) % 2**30
