"""A training step and a test recorded once and replayed: CUDA graphs and a stream for each run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from carpediem.lab.learner import Learner

WARM_UP_STEPS = 3  # uncaptured steps, in which kernels are compiled and chosen


class Track:
    """Where a run's work happens: called in place on the CPU, replayed on a stream of its own on a CUDA device.

    What is recorded are the very `Learner.step` and `Learner.test_part` that the CPU runs.

    Attributes:
        step: trains on the next batch.
        test_part: tests a part of the test set; the parts are of one size.
    """

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.step: Callable[[], None] = learner.step
        self.test_part: Callable[[Tensor, Tensor], None] = learner.test_part
        self._stream: torch.cuda.Stream | None = None
        if learner.network.device.type == "cuda":
            self._stream = torch.cuda.Stream(learner.network.device)
            if learner.data.is_resident:
                self.step = self._recorded_step()
                self.test_part = self._recorded_test()

    def beside(self) -> AbstractContextManager[object]:
        """Work inside goes to the run's stream."""
        return nullcontext() if self._stream is None else torch.cuda.stream(self._stream)

    def wait(self) -> None:
        """Returns when the run's work so far is done."""
        if self._stream is not None:
            self._stream.synchronize()

    def _recorded_step(self) -> Callable[[], None]:
        learner = self.learner
        before = learner.state_dict()

        def first_step() -> None:
            learner.rewind()
            learner.step()

        graph = self._recorded(first_step, learner.step)
        # The steps above trained on nothing in particular: all they did is undone.
        learner.load_state_dict(before)
        torch.cuda.synchronize()
        return graph.replay

    def _recorded_test(self) -> Callable[[Tensor, Tensor], None]:
        images, labels = (tensor.clone() for tensor in next(self.learner.data.parts(test=True)))

        def test_part() -> None:
            self.learner.test_part(images, labels)

        graph = self._recorded(test_part, test_part)

        def replay(its_images: Tensor, its_labels: Tensor) -> None:
            if (
                its_images.shape != images.shape
            ):  # the training set's parts, where one set is smaller than a part
                self.learner.test_part(its_images, its_labels)
                return
            images.copy_(its_images)
            labels.copy_(its_labels)
            graph.replay()

        return replay

    def _recorded(self, before: Callable[[], None], work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """The graph of `work`, after a few calls of `before`, which does the same."""
        graph = torch.cuda.CUDAGraph()
        assert self._stream is not None
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for _ in range(WARM_UP_STEPS):
                before()
            self.learner.rewind()
        torch.cuda.synchronize()
        graph.register_generator_state(self.learner.generator)
        with torch.cuda.graph(graph, stream=self._stream):
            work()
        torch.cuda.synchronize()
        return graph
