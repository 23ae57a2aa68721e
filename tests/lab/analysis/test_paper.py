"""The paper's numbers, held against its own LaTeX text where that is at hand."""

import os
import re
from pathlib import Path

import pytest

from carpediem.lab.analysis import paper

PAPER = os.environ.get("CARPEDIEM_PAPER")
needs_the_text = pytest.mark.skipif(
    PAPER is None, reason="CARPEDIEM_PAPER names no file with the LaTeX text of the paper"
)
METHODS = ("random", "online", "active", "recency")


@pytest.fixture(scope="module")
def table_of():
    """From the label of a table to its rows: (first cell, the numbers of the others, as printed)."""
    text = re.sub(r"(?<!\\)%.*", "", Path(PAPER).read_text(encoding="utf-8"))
    found = re.findall(
        r"\\label\{table:(\w+)\}|\\begin\{tabular\}\{(?:[^{}]|\{[^{}]*\})*\}(.*?)\\end\{tabular\}",
        text,
        flags=re.DOTALL,
    )
    # A label stands behind its table in most, and before it in the two that stand side by side.
    places = {name: place for place, (name, _) in enumerate(found) if name}
    bodies = {place: body for place, (_, body) in enumerate(found) if body}

    def rows(label):
        place = places[label]
        side_by_side = label.startswith("ablation")
        body = bodies[place + 1 if side_by_side else place - 1]
        return [
            (
                first,
                [re.findall(r"\d+(?:\.\d+)?", cell.replace("{,}", "").replace(",", "")) for cell in cells],
            )
            for line in body.split(r"\hline")
            for first, *cells in [line.split("&")]
            if cells
        ]

    return rows


def described(table_of, label, *, skip):
    """The numbers of a table's rows below the heading."""
    return [numbers for _, numbers in table_of(label)[skip:]]


def printed(number):
    return [number.value] if number.error is None else [number.value, number.error]


@needs_the_text
def test_table_1_is_that_of_the_text(table_of):
    ours = [
        [[str(data.training)], [str(data.testing)], [str(data.classes)], [str(data.resolution)] * 2]
        for data in paper.DATA_SETS.values()
    ]
    assert described(table_of, "datasets", skip=1) == ours


@needs_the_text
@pytest.mark.parametrize(
    ("label", "net"), [("densenet_result", "densenet-40-12"), ("resnet_result", "resnet-50")]
)
def test_tables_2_and_3_are_those_of_the_text(table_of, label, net):
    columns = [(data, optimizer) for optimizer in paper.OPTIMIZERS for data in paper.CLASSIFIED]
    ours = [
        [printed(paper.best_error(net, data, optimizer, method)) for data, optimizer in columns]
        for method in METHODS
    ]
    assert described(table_of, label, skip=2) == ours


@needs_the_text
def test_table_4_is_that_of_the_text(table_of):
    ours = [
        [printed(paper.best_error("densenet-121", data, "momentum", method)) for data in paper.FINE_TUNED]
        for method in METHODS
    ]
    assert described(table_of, "finetune", skip=1) == ours


@needs_the_text
def test_table_5_is_that_of_the_text(table_of):
    times = [[paper.TIMES[data, rival] for data in paper.FINE_TUNED] for rival in paper.RIVALS]
    ours = [[[str(t.rival), str(t.ours), str(t.rival), "100", t.printed] for t in row] for row in times]
    assert described(table_of, "time_reduction", skip=1) == ours


@needs_the_text
@pytest.mark.parametrize(
    ("label", "numbers"),
    [
        ("ablation_training_loss", paper.TRAINING_LOSSES),
        ("ablation_test_error", paper.STRATEGY_ERRORS),
    ],
)
def test_tables_6_and_7_are_those_of_the_text(table_of, label, numbers):
    ours = [
        [printed(numbers[pressure, schedule, data]) for data in ("cifar10", "cifar100")]
        for pressure, schedule in paper.STRATEGIES.values()
    ]
    assert described(table_of, label, skip=2) == ours
    steps = [re.findall(r"\d+", first)[1:] for first, _ in table_of(label)[2:]]
    assert steps == [["10"], ["100"], ["10", "1"], ["100", "1"]]


@needs_the_text
def test_every_number_of_the_seven_tables_is_compared(table_of):
    labels = {"datasets": 1, "densenet_result": 2, "resnet_result": 2, "finetune": 1, "time_reduction": 1}
    labels |= {"ablation_training_loss": 2, "ablation_test_error": 2}
    count = {
        label: sum(len(cell) for row in described(table_of, label, skip=skip) for cell in row)
        for label, skip in labels.items()
    }
    assert count == {
        "datasets": 25,
        "densenet_result": 48,
        "resnet_result": 48,
        "finetune": 16,
        "time_reduction": 30,
        "ablation_training_loss": 8,
        "ablation_test_error": 16,
    }


def test_the_time_saved_is_the_one_printed():
    for time in paper.TIMES.values():
        assert f"{time.reduction:.2f}" == time.printed


def test_a_number_keeps_the_digits_that_were_printed():
    assert str(paper.best_error("densenet-40-12", "cifar10", "momentum", "online")) == "7.00 ± 0.10"
    assert str(paper.TRAINING_LOSSES[10.0, "decayed", "cifar10"]) == "0.0120"


def test_strategy_4_is_the_recency_bias_of_table_2():
    for data in ("cifar10", "cifar100"):
        table_2 = paper.best_error("densenet-40-12", data, "momentum", "recency")
        assert paper.STRATEGY_ERRORS[100.0, "decayed", data] == table_2


def test_what_the_paper_did_not_train_is_absent():
    assert paper.best_error("efficientnet-lite0", "food100", "momentum", "random") is None
    assert paper.best_error("densenet-121", "mit67", "sgd", "random") is None
    assert paper.error_reduction("efficientnet-lite0", "food100", "momentum", "random") is None
