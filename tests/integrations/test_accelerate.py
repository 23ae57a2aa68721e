"""Accelerate in real processes: what it does to a sampler, and that training still sees the one adaptive stream."""

import pytest
import torch
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from carpediem import AdaptiveSampler, Indexed, RandomBatch
from integrations.launch import launch, results, steps
from integrations.task import BATCH, EPOCHS, SAMPLES, SEED, plain_steps

SCRIPT = "accelerate_train.py"
A_STEP = SAMPLES // BATCH  # steps in an epoch
PADDED = 101  # samples, which leave 5 for the last batch


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """What one process and what two trained on, and their checkpoints."""
    out = tmp_path_factory.mktemp("accelerate")
    both = [
        "plain",
        "told --set-epoch --workers 2",
        "halves --accumulate 2",
        "dispatched --dispatch",
        f"padded --samples {PADDED}",
        "middle --save 3,2 --workers 2",
        "end --save 2",
        "back --save 2,4 --back",
    ]
    several = [
        "split --split",
        "dispatched_split --dispatch --split --workers 1",
        f"padded_dispatched --samples {PADDED} --dispatch",
        "middle_dispatched --save 3,2 --dispatch",
    ]
    launch(1, SCRIPT, out, *both, "bf16 --precision bf16")
    launch(2, SCRIPT, out, *both, *several)
    return out


@pytest.fixture(scope="module")
def plain():
    return plain_steps()


def indices_of(epoch, found):
    return [index for e, batch in found if e == epoch for index in batch]


def halved(found):
    """Steps of which each two were accumulated, put together."""
    pairs = zip(found[::2], found[1::2], strict=True)
    return [(epoch, first + second) for (epoch, first), (_, second) in pairs]


@pytest.mark.parametrize("name", ["plain", "told", "dispatched"])
def test_one_process_trains_on_the_batches_of_a_plain_loop(out, plain, name):
    assert steps(out, name, 1) == plain


@pytest.mark.parametrize("name", ["plain", "told", "split", "dispatched", "dispatched_split"])
def test_two_processes_train_on_the_batches_of_one_between_them(out, plain, name):
    assert steps(out, name, 2) == plain


def test_accumulated_steps_make_up_the_batches_of_one(out, plain):
    assert halved(steps(out, "halves", 1)) == plain
    assert halved(steps(out, "halves", 2)) == plain


def test_the_batches_depend_on_what_was_observed(plain):
    # Else the tests above would compare streams that nothing could change.
    sampler = AdaptiveSampler(RandomBatch(SAMPLES, 4, EPOCHS), batch_size=BATCH, seed=SEED)
    blind = [list(sampler) for _ in range(EPOCHS)]
    seen = [indices_of(epoch, plain) for epoch in range(EPOCHS)]
    assert [a == b for a, b in zip(blind, seen, strict=True)] == [True, True, False, False, True]


@pytest.mark.parametrize(("name", "length"), [("padded", 112), ("padded_dispatched", 102)])
def test_the_last_batch_is_filled_with_the_first_samples_of_the_epoch(out, name, length):
    # Only the uniform epochs can be compared: what is trained on twice changes the others.
    for epoch in (0, 1):
        one, two = (indices_of(epoch, steps(out, *run)) for run in (("padded", 1), (name, 2)))
        assert len(one) == PADDED
        assert two == one + one[: length - PADDED]


def test_processes_agree_though_a_report_holds_the_same_index_twice(out):
    last = [batch for _, batch in steps(out, "padded", 2)][PADDED // BATCH :: PADDED // BATCH + 1]
    assert len(last) == EPOCHS
    assert any(len(set(batch)) < len(batch) for batch in last)
    for name in ("padded", "padded_dispatched", "plain", "dispatched"):
        first, second = results(out, name, 2)
        assert first == second


def test_indices_stay_integers_under_mixed_precision(out):
    # The program itself refuses others.
    assert len(steps(out, "bf16", 1)) == EPOCHS * A_STEP


def test_training_continues_with_the_very_next_batch(out, plain):
    for ranks in (1, 2):
        # Two processes' checkpoint is continued by one, too: a step is a step, however many share it.
        launch(
            ranks,
            SCRIPT,
            out,
            f"middle_resumed --resume middle-{ranks}:3,2 --workers 1",
            f"told_resumed --resume middle-{3 - ranks}:3,2 --set-epoch",
            f"end_resumed --resume end-{ranks}:3,0",
        )
        assert steps(out, "middle_resumed", ranks) == plain[3 * A_STEP + 2 :]
        assert steps(out, "told_resumed", ranks) == plain[3 * A_STEP + 2 :]
        assert steps(out, "end_resumed", ranks) == plain[3 * A_STEP :]


@pytest.mark.parametrize("ranks", [1, 2])
def test_loading_an_earlier_state_forgets_what_was_observed_since(out, plain, ranks):
    assert steps(out, "back", ranks) == plain[: 3 * A_STEP] + plain[2 * A_STEP + 4 :]


def test_with_dispatched_batches_a_resumed_program_says_which_epoch_it_is(out, plain):
    # Accelerate then counts the loader's batches, two of which make a step.
    resumed = "--resume middle_dispatched-2:3,4 --dispatch"
    done = launch(2, SCRIPT, out, f"told {resumed} --set-epoch", f"untold {resumed}", check=False)
    assert steps(out, "told", 2) == plain[3 * A_STEP + 2 :]
    assert done.returncode != 0
    assert "RuntimeError: the processes must begin an epoch together; with dispatch_batches" in done.stderr
    assert steps(out, "untold", 2) == plain[3 * A_STEP + 2 : 4 * A_STEP]


def adapted():
    """An accelerator, and its loader of five batches an epoch."""
    from accelerate import Accelerator

    from carpediem.integrations.accelerate import adapt

    accelerator = Accelerator(cpu=True)
    sampler = AdaptiveSampler(RandomBatch(20, 2, 4), batch_size=4)
    data = Indexed(TensorDataset(torch.zeros(20)))
    loader = accelerator.prepare(DataLoader(data, batch_size=4, sampler=sampler))
    adapt(accelerator, loader)
    return accelerator, loader, sampler


def test_a_state_of_an_epochs_last_step_continues_with_the_next_epoch(tmp_path):
    # As Accelerate's own example counts: epochs and steps to skip from the steps in all.
    def train(saved_at=None, begin=0):
        (accelerator, loader, _), seen, step = adapted(), [], begin
        if begin:
            accelerator.load_state(tmp_path / str(begin))
        for epoch in range(begin // len(loader), 4):
            skipped = begin % len(loader) if epoch == begin // len(loader) else 0
            for indices, _ in accelerator.skip_first_batches(loader, skipped) if skipped else loader:
                seen.append(indices.tolist())
                step += 1
                if step == saved_at:
                    accelerator.save_state(tmp_path / str(step))
        return seen

    whole = train()
    for step in (9, 10, 11):
        assert train(saved_at=step) == whole
        assert train(begin=step) == whole[step:]


def test_an_epoch_that_was_left_by_break_is_followed_by_the_next_after_a_resume_too(tmp_path):
    def train(first, last, *, save=False):
        (accelerator, loader, _), seen = adapted(), []
        if first:
            accelerator.load_state(tmp_path / str(first))
        for _ in range(first, last):
            for step, (indices, _) in enumerate(loader):
                if step == 2:
                    break
                seen.append(indices.tolist())
        if save:
            accelerator.save_state(tmp_path / str(last))
        return seen

    whole = train(0, 4)
    assert train(0, 2, save=True) == whole[:4]
    assert train(2, 4) == whole[4:]


def test_an_old_iteration_that_is_given_up_does_not_end_the_epoch_that_is_trained(tmp_path):
    accelerator, loader, sampler = adapted()
    looked_at, trained_on = iter(loader), iter(loader)
    next(looked_at)  # epoch 0
    next(trained_on)
    looked_at.close()
    accelerator.save_state(tmp_path / "inside")
    trained_on.close()
    accelerator.load_state(tmp_path / "inside")
    assert sampler.epoch == 1


# -- what is refused, and what is asked of the framework --------------------------------------------------


@pytest.fixture
def prepared():
    """Makes a loader that Accelerate has prepared."""
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    data = Indexed(TensorDataset(torch.zeros(20)))

    def make(sampler, **named):
        loader = DataLoader(data, **({"batch_size": 4, "sampler": sampler} | named))
        return accelerator, accelerator.prepare(loader)

    return make


def test_a_sampler_that_shards_itself_is_refused(prepared):
    from carpediem.integrations.accelerate import adapt

    sampler = AdaptiveSampler(RandomBatch(20, 2, 3), batch_size=4, rank=0, world_size=2)
    with pytest.raises(ValueError, match="must have world_size = 1, got 2; Accelerate shares out"):
        adapt(*prepared(sampler))


def test_a_batch_of_another_size_is_refused_with_the_sum(prepared):
    from carpediem.integrations.accelerate import adapt

    sampler = AdaptiveSampler(RandomBatch(20, 2, 3), batch_size=5)
    with pytest.raises(ValueError, match="4 of the loader × 1 processes × 1 accumulated = 4, got 5"):
        adapt(*prepared(sampler))


def test_a_selector_for_another_data_set_is_refused(prepared):
    from carpediem.integrations.accelerate import adapt

    sampler = AdaptiveSampler(RandomBatch(19, 2, 3), batch_size=4)
    with pytest.raises(ValueError, match="num_samples must be the length of the data set = 20, got 19"):
        adapt(*prepared(sampler))


def test_a_loader_that_draws_from_something_else_is_refused(prepared):
    from carpediem.integrations.accelerate import adapt

    with pytest.raises(TypeError, match="must draw from an AdaptiveSampler, got SequentialSampler"):
        adapt(*prepared(None))


def test_a_loader_that_is_not_prepared_is_refused(prepared):
    from carpediem.integrations.accelerate import adapt

    sampler = AdaptiveSampler(RandomBatch(20, 2, 3), batch_size=4)
    loader = DataLoader(Indexed(TensorDataset(torch.zeros(20))), batch_size=4, sampler=sampler)
    with pytest.raises(TypeError, match=r"must come from accelerator\.prepare, got DataLoader; prepare it"):
        adapt(prepared(sampler)[0], loader)


def test_accelerate_neither_swaps_our_sampler_nor_seeds_it(prepared):
    from carpediem.integrations.accelerate import Stream, adapt

    sampler = AdaptiveSampler(RandomBatch(20, 2, 3), batch_size=4)
    accelerator, loader = prepared(sampler)
    adapt(accelerator, loader)
    stream = loader.batch_sampler.sampler
    assert isinstance(stream, Stream)
    assert stream.sampler is sampler
    assert not isinstance(stream, RandomSampler)
    assert not hasattr(stream, "generator")
    assert len(stream) == 20
