"""What the authors' released code does otherwise than the paper, as options of the rules."""

import re

import pytest
import torch
import torch.distributed as dist

from carpediem import ActiveBias, AdaptiveSampler, OnlineBatch, RecencyBias
from carpediem.distributed import synchronise
from reference import paper


def predicting(labels, k):
    return 5 * torch.eye(k)[labels]


def test_windows_that_begin_with_zeros_count_label_0_until_predictions_replace_it():
    selector = RecencyBias(4, 10, 10, window=3, warm_up=3, window_start="zeros")
    steps = [(0, 7), (1, 0), (2, 7), (2, 7), (2, 7)]
    for index, label in steps:
        logits = predicting(torch.tensor([label]), 10)
        selector.observe(torch.tensor([index]), logits, torch.tensor([0]))
    assert [selector.history.predictions(i) for i in range(4)] == [[0, 0, 7], [0, 0, 0], [7, 7, 7], [0, 0, 0]]
    selector.refresh(3)
    pressure = paper.decayed_pressure(3, start=100.0, warm_up=3, epochs=10)
    windows = [(0, 0, 7), (0, 0, 0), (7, 7, 7), (0, 0, 0)]
    expected = torch.tensor(paper.recency_probabilities(windows, 10, pressure), dtype=torch.float64)
    torch.testing.assert_close(selector.distribution.probabilities(), expected, rtol=1e-12, atol=0)


def test_a_pressure_that_lags_is_that_of_the_epoch_before():
    plain, late = (OnlineBatch(6, 3, 20, pressure_lag=lag) for lag in (0, 1))
    assert late.pressure_at(9) is None
    assert late.pressure_at(10) == pytest.approx(100.0)
    assert [late.pressure_at(e) for e in range(11, 20)] == [plain.pressure_at(e) for e in range(10, 19)]
    for selector in (plain, late):
        selector.observe(torch.arange(6), torch.randn(6, 3), torch.zeros(6).long())
        selector.refresh(19)
    assert plain.distribution.is_uniform
    assert not late.distribution.is_uniform, "its last epoch still selects"


def test_weights_renewed_at_each_step_go_by_all_steps_before():
    selector = ActiveBias(5, 3, 6, warm_up=1, mode="reweight", renewal="step")
    generator = torch.Generator().manual_seed(0)
    histories = [[] for _ in range(5)]
    for epoch in range(3):
        selector.refresh(epoch)
        for batch in torch.randperm(5, generator=generator).split(2):
            weights = selector.loss_weights(batch)
            if epoch == 0:
                assert torch.equal(weights, torch.ones(len(batch))), "the warm-up weighs nothing"
            else:
                own = [paper.active_deviation(histories[i]) + 0.02 for i in batch.tolist()]
                expected = torch.tensor([w * len(own) / sum(own) for w in own])
                torch.testing.assert_close(weights, expected, rtol=1e-5, atol=0)
            logits = torch.randn(len(batch), 3, generator=generator)
            selector.observe(batch, logits, torch.zeros(len(batch)).long())
            for index, row in zip(batch.tolist(), logits.softmax(1)[:, 0].tolist(), strict=True):
                histories[index].append(row)
    assert selector.distribution.is_uniform


def test_a_resumed_selector_goes_on_renewing():
    def make():
        return ActiveBias(4, 2, 6, warm_up=1, mode="reweight", renewal="step")

    selector, again = make(), make()
    for epoch in range(2):
        selector.refresh(epoch)
        for step in range(3):
            selector.observe(torch.arange(4), torch.randn(4, 2) * step, torch.zeros(4).long())
    again.load_state_dict(selector.state_dict())
    assert torch.equal(again.loss_weights(torch.arange(4)), selector.loss_weights(torch.arange(4)))
    assert again.loss_weights(torch.arange(4)).std() > 0


def test_ranks_that_exchange_once_an_epoch_cannot_renew_at_each_step():
    selector = ActiveBias(4, 2, 6, warm_up=1, mode="reweight", renewal="step")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        with pytest.raises(
            ValueError, match="renewal must be 'epoch' where ranks are synchronised, got 'step'"
        ):
            synchronise(AdaptiveSampler(selector, batch_size=2))
        assert selector.journal is None
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(
    ("make", "option"),
    [
        (lambda: RecencyBias(4, 2, 20), "window_start"),
        (lambda: OnlineBatch(4, 2, 20), "pressure_lag"),
        (lambda: ActiveBias(4, 2, 20), "renewal"),
    ],
)
def test_a_state_from_before_an_option_was_there_loads_where_nothing_else_was_asked_for(make, option):
    state = make().state_dict()
    del state[option]
    make().load_state_dict(state)
    other = {"window_start": "zeros", "pressure_lag": 1, "renewal": "step"}[option]
    asked = {option: other} | ({"mode": "reweight"} if option == "renewal" else {})
    selector = type(make())(4, 2, 20, **asked)
    with pytest.raises(ValueError, match=f"{option}|mode"):
        selector.load_state_dict(state)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: RecencyBias(4, 2, 20, window_start="ones"),
            "window_start must be 'empty' or 'zeros', got 'ones'",
        ),
        (lambda: OnlineBatch(4, 2, 20, pressure_lag=2), "pressure_lag must be 0 or 1, got 2"),
        (
            lambda: ActiveBias(4, 2, 20, renewal="step"),
            "renewal must be 'epoch' or, with mode='reweight', 'step'",
        ),
        (lambda: ActiveBias(4, 2, 20, mode="reweight", renewal="day"), "got 'day' with mode='reweight'"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(make, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        make()
