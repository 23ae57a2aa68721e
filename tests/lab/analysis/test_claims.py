"""The paper's claims in words: by its own numbers, by small records, and by the published results."""

from pathlib import Path

import pytest

from carpediem.lab.analysis import paper
from carpediem.lab.analysis.claims import Claim, claim_data, own_numbers, own_runs
from carpediem.lab.analysis.comparisons import Below, Measured
from carpediem.lab.analysis.measures import Arm
from carpediem.lab.analysis.stated_claims import CLAIMS
from carpediem.lab.records import read_runs
from lab.analysis.claim_makers import runs

RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(scope="module")
def published():
    return Measured(read_runs(*sorted(file.parent for file in RESULTS.glob("*/runs.jsonl"))))


def claim(says):
    (found,) = (one for one in CLAIMS if says in one.says)
    return found


def made(*comparisons, is_general=False):
    return Claim("0", "something", "somehow", comparisons, is_general)


def recency_below(rival, data="cifar10", optimizer="momentum"):
    setting = ("resnet-50", data, optimizer)
    return Below(Arm(*setting, "recency"), Arm(*setting, rival))


def test_the_papers_numbers_say_yes_partly_no_or_nothing():
    lower, tie = recency_below("random"), recency_below("active", data="mnist")
    higher = recency_below("active", data="mnist", optimizer="sgd")
    assert own_numbers(made(lower)).holds == "yes"
    assert own_numbers(made(lower, higher)).holds == "partly"
    assert own_numbers(made(higher)).holds == "no"
    assert own_numbers(made(tie)).holds == "no"  # a tie is not below
    assert own_numbers(claim("trains faster than Random Batch and ends")).printed == 14
    assert own_numbers(claim("Active Bias slows training down")).holds == "no numbers"
    assert str(own_numbers(made(lower, higher))) == (
        "partly; not MNIST, ResNet, SGD: 0.97 (Recency Bias), 0.80 (Active Bias)"
    )


def test_runs_say_no_to_a_claim_of_all_cases_where_one_comparison_does():
    good = runs("random", [10.0, 10.1, 10.2]) + runs("recency", [9.0, 9.2, 9.1])
    bad = runs("online", [8.0, 8.1, 8.2]) + runs("active", [9.0, 9.1, 9.3])
    random, online, active = (recency_below(rival) for rival in ("random", "online", "active"))
    assert own_runs(made(random), Measured(good)).verdict == "yes"
    assert own_runs(made(random, online), Measured(good)).verdict == "undecided"
    assert own_runs(made(random, online), Measured(good + bad)).verdict == "no"
    assert own_runs(made(random, active), Measured(good + bad)).verdict == "undecided"
    assert own_runs(made(random, online), Measured([])).verdict == "not measured"


def test_runs_say_to_a_general_claim_what_most_comparisons_do():
    records = runs("random", [10.0, 10.1, 10.2]) + runs("recency", [9.0, 9.2, 9.1])
    records += runs("online", [8.0, 8.1, 8.2]) + runs("active", [10.0, 10.1, 10.2])
    yes, no, also_yes = (recency_below(rival) for rival in ("random", "online", "active"))
    unmeasured = recency_below("random", data="mnist")

    def verdict(*comparisons):
        return own_runs(made(*comparisons, is_general=True), Measured(records)).verdict

    assert verdict(yes, also_yes, no) == "yes"
    assert verdict(yes, no) == "no"
    assert verdict(yes, unmeasured) == verdict(yes, no, unmeasured) == "undecided"
    assert verdict(unmeasured) == "not measured"


def test_the_words_on_runs_name_the_deciding_comparison_of_the_most_seeds():
    records = runs("random", [9.0, 9.1, 9.2])
    records += runs("recency", [10.0, 10.2, 10.1])
    told = str(own_runs(made(recency_below("random"), recency_below("online")), Measured(records)))
    assert told.startswith(
        "no (1 no, 1 not measured); CIFAR-10, ResNet, momentum: Recency Bias − Random Batch"
    )
    assert told.endswith("best error +1.00 [+0.75, +1.25] (3 seeds)")


@pytest.mark.parametrize(
    ("says", "holds", "against"),
    [
        ("higher test error than one that decays", "partly", "CIFAR-10, DenseNet, momentum: 7.13"),
        ("gains more with SGD", "partly", "Online Batch: 5.71% with momentum, 2.51% with SGD"),
        ("has the lowest test error, but for MNIST with SGD", "partly", "MNIST, ResNet, momentum: 0.61"),
        ("not worth it where it stays", "partly", "CIFAR-10, DenseNet, momentum: 6.81"),
        ("tends to generalise better", "partly", "MNIST, DenseNet, momentum: 0.62"),
    ],
)
def test_the_papers_tables_contradict_some_of_its_words(says, holds, against):
    found = own_numbers(claim(says))
    assert found.holds == holds
    (one,) = found.against
    assert against in one


@pytest.mark.parametrize(
    "says",
    [
        "lowest test error on all three data sets",
        "falls behind it on CIFAR-100",
        "lower training loss than one that decays",
        "is always the best",
        "Fine-tuning goes as classification does",
    ],
)
def test_the_papers_tables_bear_others_out(says):
    assert own_numbers(claim(says)).holds == "yes"


def test_recency_bias_is_behind_in_five_of_the_papers_comparisons_or_level():
    found = own_numbers(claim("ahead of the other three in both tasks"))
    assert (found.comparisons, found.printed, len(found.against)) == (42, 42, 5)


def test_every_setting_of_the_papers_tables_is_compared():
    errors = claim("ahead of the other three in both tasks").comparisons
    keys = {(*one.lower.setting, one.higher.method) for one in errors}
    assert keys == {(n, d, o, m) for n, d, o, m in paper.BEST_ERRORS if m != "recency"}


def test_the_published_runs_say_no_to_the_gain_and_to_the_order_of_what_is_drawn(published):
    gain = own_runs(claim("has the lowest test error, but for MNIST with SGD"), published)
    assert gain.verdict == "no"
    by_name = {one.comparison.name: one for one in gain.judged}
    behind = by_name["CIFAR-10, ResNet, momentum: Recency Bias − Random Batch, best error"]
    assert behind.verdict == "no"
    # The same as docs/findings.md, where another program computes it.
    assert [round(v, 2) for v in (behind.difference.mean, behind.difference.low, behind.difference.high)] == [
        0.56,
        0.44,
        0.68,
    ]
    order = own_runs(claim("the order is Random, Recency, Online"), published)
    drawn = {one.comparison.name: one.verdict for one in order.judged}
    for net in ("DenseNet", "ResNet"):
        name = f"CIFAR-10, {net}, momentum: Random Batch − Recency Bias, loss drawn at"
        assert (drawn[f"{name} 30%"], drawn[f"{name} 70%"]) == ("yes", "no")


def test_what_no_published_run_recorded_is_not_measured(published):
    for says in (
        "A growing window calls",
        "Active Bias slows training down",
        "Strategy 4",
        "classification does",
    ):
        assert own_runs(claim(says), published).verdict == "not measured"


def test_a_claim_as_data_has_every_comparison(published):
    one = claim("has the lowest test error, but for MNIST with SGD")
    data = claim_data(one, published)
    assert (data["paper"]["holds"], data["ours"]["verdict"]) == ("partly", "no")
    assert len(data["comparisons"]) == len(one.comparisons) == 30
    first = data["comparisons"][0]
    assert first["below_zero"].startswith("MNIST, DenseNet, momentum: Recency Bias − Random Batch")
    assert (first["paper"], first["ours"]["verdict"]) == (-0.04, "not measured")


def test_each_claim_is_worded_once_and_says_where_it_stands():
    assert len({one.says for one in CLAIMS}) == len(CLAIMS)
    sections = ["1", "4.1", "4.2.2", "4.3.2", "4.4", "4.5", "Appendix"]
    assert {one.where.split(",")[0] for one in CLAIMS} == set(sections)
    for one in CLAIMS:
        assert one.comparisons
        assert len({each.name for each in one.comparisons}) == len(one.comparisons), one.says
