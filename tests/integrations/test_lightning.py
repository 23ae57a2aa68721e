"""Real Trainers, on one process here and on two started by torchrun."""

import json
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Trainer
from torch.utils.data import BatchSampler, DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from carpediem import Indexed, RandomBatch
from carpediem.integrations.lightning import AdaptiveBatches
from integrations.lightning_training import (
    BATCH,
    EPOCHS,
    QUIET,
    SAMPLES,
    STEPS,
    Classifier,
    Validated,
    adaptive,
    alone,
    build,
    fit,
    problem,
    saves,
)
from processes import python

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # Lightning's own, of torch
    pytest.mark.filterwarnings(
        "ignore:Be aware that when using `ckpt_path`:UserWarning"
    ),  # of ModelCheckpoint
    # Advice for larger machines than those that run the tests.
    pytest.mark.filterwarnings("ignore:.*does not have many workers:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty:UserWarning"),
]
SCRIPT = Path(__file__).with_name("lightning_training.py")
workers = pytest.mark.parametrize("num_workers", [0, 2])
stops_early = pytest.mark.filterwarnings("ignore:max_epochs is .*fewer than the selector's:UserWarning")


@pytest.fixture(scope="module")
def plain():
    return alone()


# -- one process -----------------------------------------------------------------------------------------------


@workers
def test_one_process_trains_on_the_batches_of_a_plain_loop(plain, num_workers):
    assert fit(*build(num_workers=num_workers)).steps == plain
    assert len(plain) == EPOCHS * STEPS


@workers
def test_epochs_cut_short_by_the_trainer_are_those_of_a_loop_that_breaks(num_workers):
    assert fit(*build(num_workers=num_workers), limit_train_batches=3).steps == alone(limit=3)


def test_accumulated_gradients_are_those_of_a_loop_that_accumulates():
    assert fit(*build(), accumulate_grad_batches=2).steps == alone(accumulate=2)


def test_validation_is_left_alone(plain):
    model = Validated()
    fit(*build(), model=model, validation=DataLoader(range(10), batch_size=4), num_sanity_val_steps=1)
    assert model.steps == plain
    assert model.validated == list(range(4)) + list(range(10)) * EPOCHS


@workers
def test_reloaded_loaders_go_on_with_the_next_epoch(plain, num_workers):
    callback, loader = build(num_workers=num_workers)
    model = Classifier()
    model.train_dataloader = lambda: loader
    assert fit(callback, None, model=model, reload_dataloaders_every_n_epochs=1).steps == plain


@stops_early
@workers
def test_a_second_fit_goes_on_where_the_first_ended(plain, num_workers):
    callback, loader = build(num_workers=num_workers)
    model = Classifier()
    trainer = Trainer(callbacks=[callback], max_epochs=2, enable_checkpointing=False, **QUIET)
    trainer.fit(model, loader)
    trainer.fit_loop.max_epochs = EPOCHS
    trainer.fit(model, loader)
    assert model.steps == plain


@stops_early
@pytest.mark.filterwarnings("ignore:`training_step` returned `None`:UserWarning")
def test_a_step_that_returns_nothing_is_not_reported():
    class Skips(Classifier):
        def training_step(self, batch, batch_idx):
            done = super().training_step(batch, batch_idx)
            return None if batch_idx else done

    callback, loader = build()
    model = fit(callback, loader, model=Skips(), max_epochs=1)
    assert int((callback.sampler.selector.history.uncertainty() != 1).sum()) == len(model.steps[0][1])


def test_indices_and_targets_may_come_from_the_training_step(plain):
    class Renamed(Classifier):
        def on_after_batch_transfer(self, batch, dataloader_idx):
            return {"of": batch[0], "x": batch[1][0], "y": batch[1][1]}

        def training_step(self, batch, batch_idx):
            done = super().training_step((batch["of"], (batch["x"], batch["y"])), batch_idx)
            return done | {"indices": batch["of"], "targets": batch["y"]}

    assert fit(*build(), model=Renamed()).steps == plain


# -- checkpoints -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("every step")
    fit(*build(num_workers=2), callbacks=[saves(folder, every_n_train_steps=1)])
    return folder


@workers
@pytest.mark.parametrize("step", [1, 7, 18, 34])
def test_resuming_goes_on_with_the_very_next_batch(plain, checkpoints, num_workers, step):
    # Step 7 ends the first epoch; after step 18 the workers have drawn the third epoch to its end.
    assert (
        fit(*build(num_workers=num_workers), ckpt_path=checkpoints / f"step={step}.ckpt").steps
        == plain[step:]
    )


@workers
def test_resuming_after_the_last_step_trains_on_nothing(checkpoints, num_workers):
    path = checkpoints / f"step={EPOCHS * STEPS}.ckpt"
    assert fit(*build(num_workers=num_workers), ckpt_path=path).steps == []


@workers
@pytest.mark.parametrize("limit", [STEPS, 3])
def test_a_checkpoint_of_an_epochs_end_is_followed_by_the_next_epoch(num_workers, limit, tmp_path):
    saving = saves(tmp_path, every_n_epochs=1, save_on_train_epoch_end=True)
    whole = fit(*build(num_workers=num_workers), callbacks=[saving], limit_train_batches=limit).steps
    assert whole == alone(limit=limit)
    path = tmp_path / f"step={2 * limit}.ckpt"
    assert (
        fit(*build(num_workers=num_workers), ckpt_path=path, limit_train_batches=limit).steps
        == whole[2 * limit :]
    )


@workers
@pytest.mark.parametrize("step", [STEPS, STEPS + 3, 2 * STEPS])
def test_reloaded_loaders_resume_with_the_very_next_batch(plain, checkpoints, num_workers, step):
    callback, loader = build(num_workers=num_workers)
    model = Classifier()
    model.train_dataloader = lambda: loader
    path = checkpoints / f"step={step}.ckpt"
    fit(callback, None, model=model, ckpt_path=path, reload_dataloaders_every_n_epochs=1)
    assert model.steps == plain[step:]


@workers
@pytest.mark.parametrize(("step", "limit"), [(17, STEPS), (13, STEPS), (6, 3)])
def test_a_checkpoint_made_after_validation_resumes_too(num_workers, step, limit, tmp_path):
    def run(**more):
        validation = DataLoader(range(4), batch_size=4)
        model = Validated()
        callback, loader = build(num_workers=num_workers)
        options = {"val_check_interval": 3, "limit_train_batches": limit}
        return fit(callback, loader, model=model, validation=validation, **options, **more)

    saving = saves(tmp_path, every_n_epochs=1, save_on_train_epoch_end=False)
    whole = run(callbacks=[saving]).steps
    assert whole == alone(limit=limit)
    assert run(ckpt_path=tmp_path / f"step={step}.ckpt").steps == whole[step:]


@workers
def test_training_that_max_steps_ended_goes_on_with_the_very_next_batch(plain, num_workers, tmp_path):
    first, second = (build(num_workers=num_workers) for _ in range(2))
    begun = fit(*first, callbacks=[saves(tmp_path, every_n_train_steps=5)], max_steps=10, max_epochs=-1)
    rest = fit(*second, ckpt_path=tmp_path / "step=10.ckpt", max_steps=25, max_epochs=-1)
    assert [batch for _, batch in begun.steps + rest.steps] == [batch for _, batch in plain[:25]]


@pytest.mark.filterwarnings(
    "ignore:You're resuming from a checkpoint that ended before:UserWarning"
)  # so it is
@workers
def test_an_epoch_that_max_steps_ended_counts_as_done_where_the_trainer_says_so(num_workers, tmp_path):
    def run(**options):
        return fit(*build(num_workers=num_workers), max_epochs=-1, **options)

    run(callbacks=[saves(tmp_path / "ended", every_n_epochs=1, save_on_train_epoch_end=True)], max_steps=10)
    every = saves(tmp_path / "every", every_n_train_steps=1)
    rest = run(ckpt_path=tmp_path / "ended" / "step=10.ckpt", callbacks=[every], max_steps=20).steps
    # Lightning makes the steps that the cut epoch lacked, and sets the sampler to the epoch after it.
    assert [epoch for epoch, _ in rest] == [1] * 4 + [2] * 6
    assert len({tuple(batch) for _, batch in rest}) == 10
    again = run(ckpt_path=tmp_path / "every" / "step=12.ckpt", max_steps=20).steps
    assert again == rest[2:]


@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")  # torchdata's own, of torch
@workers
def test_a_loader_that_keeps_its_own_state_resumes_with_the_very_next_batch(plain, num_workers, tmp_path):
    def stateful():
        callback, _ = build()
        context = "fork" if num_workers else None
        loading = {"num_workers": num_workers, "multiprocessing_context": context, "batch_size": BATCH}
        return callback, StatefulDataLoader(Indexed(problem()), sampler=callback.sampler, **loading)

    assert fit(*stateful(), callbacks=[saves(tmp_path, every_n_train_steps=1)]).steps == plain
    for step in (4, 7, 18):
        assert fit(*stateful(), ckpt_path=tmp_path / f"step={step}.ckpt").steps == plain[step:]


def test_a_checkpoint_is_read_without_trusting_it(checkpoints):
    state = torch.load(checkpoints / "step=18.ckpt", weights_only=True)["callbacks"]["AdaptiveBatches"]
    assert (state["sampler"]["epoch"], state["sampler"]["position"]) == (2, 4 * BATCH)
    assert state["selector"]["method"] == "RecencyBias"


def test_evaluating_a_checkpoint_leaves_the_selection_where_it_is(checkpoints):
    callback, loader = build()
    model = Validated()
    trainer = Trainer(callbacks=[callback], max_epochs=EPOCHS, enable_checkpointing=False, **QUIET)
    trainer.fit(model, loader, DataLoader(range(4)))
    trainer.validate(model, DataLoader(range(4)), ckpt_path=checkpoints / "step=18.ckpt", verbose=False)
    assert callback.sampler.selector.epoch == EPOCHS - 1
    assert callback.state_dict()["sampler"]["epoch"] == EPOCHS


# -- what is refused -------------------------------------------------------------------------------------------


def test_what_is_no_adaptive_sampler_is_refused():
    with pytest.raises(TypeError, match="sampler must be an AdaptiveSampler, got RandomBatch"):
        AdaptiveBatches(RandomBatch(10, 2, 1))


def test_a_loader_with_another_batch_size_is_refused_with_the_one_it_needs():
    with pytest.raises(
        ValueError,
        match="batch_size of the training loader must be 16, the sampler's 16 shared out over 1 processes, got 8",
    ):
        fit(*build(batch_size=8))


def test_a_selector_for_another_data_set_is_refused():
    callback, _ = build(samples=48)
    loader = DataLoader(Indexed(problem(96)), batch_size=BATCH, sampler=callback.sampler)
    with pytest.raises(
        ValueError,
        match="num_samples must be the length of the data set = 96, got 48; build the selector with num_samples=96",
    ):
        fit(callback, loader)


def test_a_loader_that_draws_from_something_else_is_refused():
    callback, _ = build()
    with pytest.raises(ValueError, match="got a DataLoader that draws from SequentialSampler"):
        fit(callback, DataLoader(Indexed(problem()), batch_size=BATCH))


@pytest.mark.filterwarnings("ignore:You requested to overfit:UserWarning")
def test_overfitting_on_a_few_batches_which_leaves_no_choice_is_refused():
    with pytest.raises(ValueError, match="and no overfit_batches"):
        fit(*build(), overfit_batches=2)


def test_more_epochs_than_the_selector_was_built_for_are_refused_before_training():
    with pytest.raises(
        ValueError, match="max_epochs must be at most the selector's epochs = 5, got 6; build"
    ):
        fit(*build(), max_epochs=6)


def test_fewer_epochs_than_the_selector_was_built_for_are_told_of_once():
    with pytest.warns(
        UserWarning, match="max_epochs is 3, fewer than the selector's epochs = 5, .* build .* with epochs=3"
    ) as told:
        fit(*build(), max_epochs=3)
    assert len([one for one in told if "max_epochs" in str(one.message)]) == 1


def test_a_training_step_without_logits_is_refused():
    class Plain(Classifier):
        def training_step(self, batch, batch_idx):
            return super().training_step(batch, batch_idx)["loss"]

    with pytest.raises(ValueError, match=r"a dictionary with 'loss' and 'logits', got \['loss'\]"):
        fit(*build(), model=Plain())


class Reshaped(Classifier):
    """Gets its batches in another form, and returns some of what they held."""

    def __init__(self, form, *returned):
        super().__init__()
        self.form, self.returned, self.plain = form, returned, None

    def on_after_batch_transfer(self, batch, dataloader_idx):
        self.plain = batch
        return self.form(batch[0], *batch[1])

    def training_step(self, batch, batch_idx):
        named = {"indices": self.plain[0], "targets": self.plain[1][1]}
        return super().training_step(self.plain, batch_idx) | {name: named[name] for name in self.returned}


def named(indices, x, y):
    return indices, {"x": x, "y": y}


@pytest.mark.parametrize(
    ("form", "got", "remedy"),
    [
        (lambda indices, x, y: (indices, x, y), r"\(Tensor, Tensor, Tensor\)", "'indices' and 'targets'"),
        (lambda indices, x, y: {"i": indices, "xy": (x, y)}, "dict", "'indices' and 'targets'"),
        (named, r"\(Tensor, dict\)", "'targets'"),
        (lambda indices, x, y: (indices, torch.stack([y, y])), r"\(Tensor, Tensor\)", "'targets'"),
    ],
)
def test_a_batch_of_another_form_is_refused_with_the_remedy(form, got, remedy):
    with pytest.raises(
        ValueError,
        match=rf"got {got}; for any other form return {remedy} from training_step beside 'logits'",
    ):
        fit(*build(), model=Reshaped(form))


def test_the_targets_of_a_dictionary_behind_the_indices_may_be_returned_alone(plain):
    assert fit(*build(), model=Reshaped(named, "targets")).steps == plain


# -- two processes ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """What two ranks did in each scenario: for each step the epoch and the indices of rank 0 and rank 1."""
    out = tmp_path_factory.mktemp("two ranks")
    scenarios = ["whole", "left_to_us", "uneven", "saved", "resumed", "shuffled", "replaced", "refused"]
    python(SCRIPT, out, *scenarios, ranks=2)

    def read(name):
        first, second = (json.loads((out / f"{name}-{rank}.json").read_text()) for rank in (0, 1))
        assert [epoch for epoch, _ in first] == [epoch for epoch, _ in second]
        return [(epoch, one, two) for (epoch, one), (_, two) in zip(first, second, strict=True)]

    read.out = out
    return read


def dealt(steps):
    return [(epoch, batch[::2], batch[1::2]) for epoch, batch in steps]


def test_two_processes_share_out_the_batches_of_one(two, plain):
    assert two("whole") == dealt(plain)
    assert two("left_to_us") == dealt(plain)


def test_an_uneven_last_batch_is_shared_out_whole(two):
    assert two("uneven") == dealt(alone(samples=99))


def test_two_processes_with_workers_resume_with_the_very_next_batch(two, plain):
    assert two("saved") == dealt(plain)
    assert two("resumed") == dealt(plain[20:])


def test_one_process_continues_the_checkpoint_of_two(two, plain):
    assert fit(*build(num_workers=2), ckpt_path=two.out / "step=20.ckpt").steps == plain[20:]


def test_lightning_alone_would_shuffle_the_stream(two, plain):
    # The reason for the callback to make its sampler a distributed one, which Lightning leaves alone.
    epoch = plain[:STEPS]
    trained, drawn = (
        sorted(i for _, *b in steps for part in b for i in part) for steps in (two("shuffled"), epoch)
    )
    assert trained == drawn
    assert two("shuffled") != dealt(epoch)


def test_lightning_alone_replaces_a_batch_sampler_by_uniform_draws(two):
    # The reason for a sampler of indices: no error, and nothing was drawn from ours.
    trained = sorted(index for _, one, other in two("replaced") for index in one + other)
    assert trained == list(range(SAMPLES))


def test_loaders_that_do_not_fit_are_refused_on_two_processes(two):
    said = json.loads((two.out / "refused.txt").read_text())
    assert (
        "batch_size of the training loader must be 8, the sampler's 16 shared out over 2" in said["too large"]
    )
    assert "no batch_sampler, which Lightning may re-make with uniform draws" in said["batch sampler"]
    assert said["its own batch sampler"].startswith("TypeError:  Lightning can't inject")


def test_a_batch_sampler_is_refused_on_one_process_too():
    callback = AdaptiveBatches(adaptive())
    with pytest.raises(ValueError, match="no batch_sampler"):
        fit(
            callback,
            DataLoader(Indexed(problem()), batch_sampler=BatchSampler(callback.sampler, BATCH, False)),
        )
