"""The rule of docs/decisions/0010-released-world.md, line by line."""

from pathlib import Path

import pytest

from carpediem.lab.analysis.released_outcome import WORLDS, frozen_dropout, outcomes
from carpediem.lab.world_tables import world_table
from lab.record_makers import run

RESNET, DENSENET = "resnet-50-released", "densenet-40-12-released"
PAGE = Path(__file__).parents[3] / "docs" / "decisions" / "0010-released-world.md"


def world(random, differences, *, last=None, net=RESNET, **changes):
    """Pairs of runs whose best errors differ by `differences`, and those of the last epoch by `last`."""
    settings = {"recipe": "released", "net": net, "optimizer": "momentum", "precision": "bf16"} | changes
    last = differences if last is None else last
    runs = []
    for seed, (best, end) in enumerate(zip(differences, last, strict=True)):
        base = random + 0.1 * (seed % 2)
        runs.append(run("random", seed, [base, base + 1], **settings))
        runs.append(run("recency", seed, [base + best, base + 1 + end], **settings))
    return runs


def letter(runs, net=RESNET):
    found = outcomes(runs)[net]
    return None if found is None else (found.letter, found.is_of_choosing)


EIGHT = [-0.4, -0.5, -0.3, -0.45, -0.35, -0.4, -0.5, -0.4]
MIXED = [0.1, -0.1, 0.05, -0.05, 0.1, -0.1, 0.05, -0.05]
WIDE = [1.0, -1.0, 0.8, -0.9, 0.7, -0.6, 0.9, -1.1]


@pytest.mark.parametrize(
    ("random", "differences", "expected"),
    [
        (11.0, EIGHT, "a"),
        (9.6, EIGHT, "a"),
        (10.6, EIGHT, "b"),
        (10.2, [-d for d in EIGHT], "b′"),
        (10.2, MIXED, "c"),
        (10.2, WIDE, "d"),
    ],
)
def test_the_first_line_that_holds_counts(random, differences, expected):
    assert letter(world(random, differences)) == (expected, False)


def test_a_gain_says_whether_the_papers_lies_in_its_interval():
    assert "the paper's -0.43 lies in that interval" in outcomes(world(10.2, EIGHT))[RESNET].sentence
    small = [0.3 + d for d in EIGHT]
    assert "the paper's -0.43 does not lie in that interval" in outcomes(world(10.2, small))[RESNET].sentence


def test_a_gain_that_the_last_epoch_has_not_is_one_of_choosing_the_epoch():
    assert letter(world(10.2, EIGHT, last=[0.0, 0.1] * 4)) == ("b", True)
    assert letter(world(10.2, EIGHT, last=[-0.5, -0.4, -0.45, -0.35] * 2)) == ("b", False)


def test_pairs_that_all_differ_alike_have_no_interval_and_decide_nothing():
    assert letter(world(10.2, [-0.5] * 8)) == ("d", False)


def test_there_is_no_verdict_before_all_pairs_are_there():
    assert letter(world(10.2, EIGHT[:7])) is None
    assert letter(world(7.3, EIGHT[:5], net=DENSENET), DENSENET) == ("b", False)
    # Pairs beyond those that the rule asks for are not looked at.
    assert letter(world(7.3, [*EIGHT[:5], 9.0, 9.0], net=DENSENET), DENSENET) == ("b", False)
    assert letter([]) is None


def test_each_network_is_judged_alone_and_by_its_own_range():
    runs = world(10.2, EIGHT) + world(7.8, EIGHT[:5], net=DENSENET)
    assert (letter(runs), letter(runs, DENSENET)) == (("b", False), ("a", False))


@pytest.mark.parametrize(
    ("pilot", "frozen"),
    [
        ({0.3: [10.0, 10.4], 0.2: [10.1, 10.3]}, 0.3),
        ({0.3: [11.0, 11.4], 0.2: [10.1, 10.3]}, 0.2),
        ({0.3: [11.0, 11.4], 0.2: [9.1, 9.3]}, None),
        ({0.3: [11.0, 11.4]}, None),
    ],
)
def test_the_pilot_freezes_the_dropout_that_fits_the_codes_first(pilot, frozen):
    assert frozen_dropout(pilot, WORLDS[RESNET]) == frozen


def test_the_table_of_the_worlds_says_what_the_pilot_freezes():
    def note(*errors, dropout):
        settings = {"recipe": "released", "net": RESNET, "precision": "bf16", "dropout": dropout}
        runs = [run("random", seed, [error, error], **settings) for seed, error in enumerate(errors)]
        return world_table(runs).note

    waits = "ResNet (L=50), released code: waits for its runs"
    assert f"{waits}; its pilot fits with dropout 0.3." in note(10.0, 10.3, dropout=0.3)
    assert f"{waits}; its pilot fits with dropout 0.2." in note(10.0, 10.3, dropout=0.2)
    assert f"{waits}; its pilot fits with neither dropout yet." in note(11.0, 11.3, dropout=0.3)
    assert f"{waits}." in note(10.0, 10.3, dropout=0.1)


def test_the_table_of_the_worlds_says_what_came_out():
    note = world_table(world(10.2, EIGHT)).note
    assert "ResNet (L=50), released code: a gain, -0.41" in note
    assert "DenseNet (L=40, k=12), released code: waits for its runs." in note


@pytest.mark.parametrize(
    "changes", [{"dropout": 0.2}, {"precision": "float32"}, {"optimizer": "sgd"}, {"draws": "systematic"}]
)
def test_runs_with_other_settings_do_not_count(changes):
    assert letter(world(10.2, EIGHT, **changes)) is None


def test_the_page_and_the_program_have_the_same_numbers():
    rows = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    by_network = {row[0].strip().lower(): [cell.strip() for cell in row[1:]] for row in rows}
    for found in WORLDS.values():
        random, near, pairs, small = by_network[found.network]
        assert (float(random), float(near.strip("± ")), int(pairs)) == (found.random, found.near, found.seeds)
        assert small == f"the interval lies within ± {found.small:g}"
    assert "by 0.43 points with\nResNet-50, by 0.73 with DenseNet-40-12" in PAGE.read_text()
    assert {found.difference for found in WORLDS.values()} == {-0.43, -0.73}
