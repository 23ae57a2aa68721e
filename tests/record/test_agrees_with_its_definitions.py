"""Every column and score against the literal transcription, on random histories, through the public calls alone."""

import numpy as np
import pytest
import torch

from carpediem.record import FirstLearnt, Forgetting, LastLabels, LastLoss, Record, TimesSeen, watching
from record.literal import Literal
from record.material import SCORES, full_record, history

EXACT = ("label", "majority", "times_seen", "times_right", "forgotten", "learnt_at", "turned_at")


def assert_scores(found, expected, **tolerance):
    for name, values in expected.items():
        if name in EXACT:
            assert found[name].tolist() == values, name
        else:
            np.testing.assert_allclose(
                found[name], values, err_msg=name, **({"rtol": 1e-5, "atol": 1e-6} | tolerance)
            )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("k", "window", "decay"), [(2, 1, 0.7), (3, 4, 0.0), (10, 10, 0.9), (300, 32, 0.7)])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_what_their_definitions_say(dtype, k, window, decay, seed):
    n = 20
    record, literal = full_record(n, k, window=window, decay=decay), Literal(n, k)
    for indices, logits, targets in history(n, k, steps=40, seed=seed, dtype=dtype):
        record.observe(indices, logits, targets)
        literal.observe(indices.tolist(), logits.double().tolist(), targets.tolist())
    assert tuple(record.scores()) == SCORES
    assert_scores(record.scores(), literal.scores(window, decay))


@pytest.mark.parametrize("together", [1, 7, 8192])
def test_it_makes_no_difference_how_many_steps_are_kept_in_one_go(together, monkeypatch):
    """Bit for bit: ranks keep an epoch in one go, one process a few steps."""
    monkeypatch.setattr(watching, "TOGETHER", together)
    record, whole = full_record(20, 5), full_record(20, 5)
    for batch in history(20, 5, steps=60, seed=4):
        record.observe(*batch)
        record.column(TimesSeen()).values  # noqa: B018  # reading takes in what waits
    monkeypatch.setattr(watching, "TOGETHER", 10**9)
    for batch in history(20, 5, steps=60, seed=4):
        whole.observe(*batch)
    for name, values in record.scores().items():
        np.testing.assert_array_equal(values, whole.scores()[name], err_msg=name)


def test_epochs_are_those_that_are_said():
    n, k = 12, 3
    record, literal = full_record(n, k), Literal(n, k)
    for step, (indices, logits, targets) in enumerate(history(n, k, steps=60, seed=1)):
        record.observe(indices, logits, targets, epoch=step // 7)
        literal.observe(indices.tolist(), logits.double().tolist(), targets.tolist(), epoch=step // 7)
    expected = literal.scores()
    assert max(expected["turned_at"]) > 3
    assert_scores(record.scores(), expected)


@pytest.mark.parametrize("size", [900, 1100])
def test_many_repeats_in_one_batch_count_in_their_order(size):
    """Up to 1,024 indices are compared each with each, more are sorted."""
    n, k = 7, 3
    record, literal = full_record(n, k, window=3), Literal(n, k)
    for seed in range(2):
        batch = history(n, k, steps=1, seed=seed + 20, most=1)
        generator = torch.Generator().manual_seed(seed)
        indices = torch.randint(n, (size,), generator=generator)
        logits = torch.randn(size, k, generator=generator)
        batch = (indices, logits, indices % k)
        record.observe(*batch)
        literal.observe(indices.tolist(), logits.double().tolist(), (indices % k).tolist())
    assert_scores(record.scores(), literal.scores(window=3))


def test_the_same_follows_from_outcomes_and_losses():
    n, k = 20, 5
    columns = [LastLabels(4), LastLoss(), TimesSeen(), Forgetting(), FirstLearnt()]
    by_name, by_logits = Record(n, k, columns=columns), full_record(n, k, window=4)
    for indices, logits, targets in history(n, k, steps=40, seed=2):
        losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
        by_name.observe(indices, outcomes=logits.argmax(1).to(torch.uint8), losses=losses, targets=targets)
        by_logits.observe(indices, logits, targets)
    expected = by_logits.scores()
    found = by_name.scores()
    assert set(found) == {"majority", "uncertainty", "last_loss", "times_seen", "forgotten", "learnt_at"}
    for name, values in found.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-6, err_msg=name)


def test_booleans_are_outcomes_and_numbers_need_no_classes():
    solved = Record(3, 2, columns=[LastLabels(4)])
    for passed in ([True, False], [False, False]):
        solved.observe(torch.tensor([0, 2]), outcomes=torch.tensor(passed))
    assert solved.scores()["majority"].tolist() == [0, -1, 0]
    assert solved.scores()["uncertainty"].tolist() == [1.0, 1.0, 0.0]
    numeric = Record(3)
    numeric.observe(torch.tensor([0, 2, 0]), losses=torch.tensor([0.5, -2.0, 3.0]))
    assert list(numeric.scores()) == ["times_seen", "last_loss"]
    np.testing.assert_array_equal(numeric.scores()["last_loss"], [3.0, np.nan, -2.0])


def test_what_a_program_writes_into_its_tensors_later_changes_nothing():
    batches = history(20, 5, steps=10, seed=3)
    record, other = full_record(20, 5), full_record(20, 5)
    for batch in batches:
        other.observe(*batch)
    buffers = [torch.zeros(20, dtype=torch.int64), torch.zeros(20, 5), torch.zeros(20, dtype=torch.int64)]
    for batch in batches:
        views = [buffer[: len(part)].copy_(part) for buffer, part in zip(buffers, batch, strict=True)]
        record.observe(*views)
        for buffer in buffers:
            buffer.fill_(1)
    for name, values in record.scores().items():
        np.testing.assert_array_equal(values, other.scores()[name])
    named = Record(3, 4, columns=[LastLabels(2), LastLoss()])
    outcomes, losses = torch.tensor([2]), torch.tensor([0.5])
    named.observe(torch.tensor([1]), outcomes=outcomes, losses=losses)
    outcomes.fill_(0)
    losses.fill_(9)
    assert (named.scores()["majority"][1], named.scores()["last_loss"][1]) == (2, 0.5)


@pytest.mark.parametrize(
    "logits",
    [
        torch.full((2, 4), 6e4).half(),
        torch.tensor([[3e38, -3e38, 3e38, -3e38]] * 2),
        torch.tensor([[1e308, -1e308, 0.0, 1e308]] * 2, dtype=torch.float64),
    ],
)
def test_finite_logits_are_taken_however_large_and_the_state_loads_again(logits):
    record = full_record(5, 4)
    for _ in range(3):
        record.observe(torch.tensor([3, 1]), logits, torch.tensor([1, 2]))
    copy = full_record(5, 4)
    copy.load_state_dict(record.state_dict())
    scores = record.scores()
    assert not any(np.isnan(values[[1, 3]]).any() for values in scores.values())
    assert (np.abs(scores["mean_margin"][[1, 3]]) <= 1).all()


def test_the_modes_of_torch_in_force_change_nothing():
    n, k = 12, 3
    plain = full_record(n, k)
    with torch.inference_mode():
        odd = full_record(n, k)
    for number, (indices, logits, targets) in enumerate(history(n, k, steps=30, seed=1)):
        plain.observe(indices, logits, targets)
        with torch.inference_mode(number % 3 == 0), torch.device("meta" if number % 2 else "cpu"):
            odd.observe(indices, logits, targets)
            odd.scores()
    for name, values in plain.scores().items():
        np.testing.assert_array_equal(odd.scores()[name], values)


def test_logits_with_gradients_leave_no_graph_behind():
    record = full_record(12, 3)
    for indices, logits, targets in history(12, 3, steps=5, seed=1):
        record.observe(indices, logits.requires_grad_(), targets)
    assert not any(t.requires_grad for column in record.columns for t in column.tensors.values())
