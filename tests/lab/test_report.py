"""The report: what is gathered from records, that text stays text, and what is said where records are missing."""

import base64
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from carpediem.cli import app
from carpediem.lab import report
from carpediem.lab.plans import PLANS
from carpediem.lab.records import export_runs, read_runs
from carpediem.lab.report import gather, render_page, write_report
from carpediem.lab.report.curves import lines
from carpediem.lab.report.obtained import commands
from carpediem.lab.results import group_cells
from carpediem.lab.tables import all_tables
from lab.record_makers import run as made
from lab.report_makers import CLASSES, EPOCHS, own_data, unfinish
from lab.test_curves import comparison
from processes import python

MODULE = [sys.executable, "-m", "carpediem"]
PUBLISHED = Path(__file__).parents[2] / "results" / "2026-11-15_cifar10_resnet50_momentum_paper"


class Elements(HTMLParser):
    """Start tags, and the text inside of scripts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.scripts, self._open = [], [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open = dict(attributes) if tag == "script" else None

    def handle_data(self, data):
        if self._open is not None:
            self.scripts.append((self._open, data))

    def handle_endtag(self, tag):
        self._open = None


def line_of(data, name):
    return next(line for line in data["settings"][0]["convergence"]["lines"] if line["name"] == name)


# --- what is gathered


def test_a_line_is_the_mean_over_seeds_with_their_range(trained):
    line = line_of(gather([trained]), "Random Batch")
    runs = [run for run in read_runs(trained) if run.config["method"] == "random"]
    errors = [[epoch["test_error"] for epoch in run.epochs] for run in runs]
    assert line["seeds"] == [0, 1]
    assert line["iterations"] == [12 * (n + 1) for n in range(EPOCHS)]
    for epoch, values in enumerate(zip(*errors, strict=True)):
        assert line["test_error"]["mean"][epoch] == pytest.approx(sum(values) / 2, rel=1e-4)
        assert line["test_error"]["low"][epoch] == pytest.approx(min(values), rel=1e-4)
        assert line["test_error"]["high"][epoch] == pytest.approx(max(values), rel=1e-4)


def evaluate(study, epochs_of):
    """Adds to each run's records a loss over the whole training set, after the epochs that `epochs_of` its seed."""
    for run in read_runs(study):
        file = study / "runs" / run.hash / "epochs.jsonl"
        for n in epochs_of(run.config["seed"]):
            run.epochs[n]["training_set_loss"] = run.epochs[n]["train_loss"] / 2
        file.write_text("".join(json.dumps(epoch) + "\n" for epoch in run.epochs))


def test_the_loss_over_the_training_set_is_that_of_the_epochs_that_every_seed_has(study):
    line = line_of(gather([study]), "Random Batch")
    assert (line["evaluated"], line["training_set_loss"]["mean"]) == ([], [])
    evaluate(study, lambda seed: (1, 3) if seed else (1, 2, 3))
    unfinish(study, "recency", 4)
    data = gather([study])
    line = line_of(data, "Random Batch")
    assert line["evaluated"] == [1, 3]
    halves = [line["train_loss"]["mean"][n] / 2 for n in (1, 3)]
    assert line["training_set_loss"]["mean"] == pytest.approx(halves, rel=1e-3)
    assert len(line["train_loss"]["mean"]) == EPOCHS
    lines = data["settings"][0]["convergence"]["lines"]
    (single,) = [one for line in lines for one in line["unfinished"]]
    assert len(single["training_set_loss"]) == len(single["evaluated"]) in (2, 3)


def test_an_unfinished_run_is_a_line_of_its_own_and_in_no_mean(study):
    run, _ = unfinish(study, "random", 4)
    data = gather([study])
    line = line_of(data, "Random Batch")
    assert len(line["seeds"]) == 1
    assert [len(one["iterations"]) for one in line["unfinished"]] == [4]
    assert "1 not finished" in data["summary"]
    assert run.name in str(data["obtained"])


def test_the_page_begins_with_what_came_out(study):
    (found,) = gather([study])["verdicts"]
    assert found.startswith("Points of best test error against Random Batch")
    assert "Recency Bias" in found


def test_the_tables_are_those_of_the_tables_command(trained):
    made, shown = all_tables(read_runs(trained), empty=True), gather([trained])["tables"]
    assert [table["title"] for table in shown] == [table.title for table in made]
    assert [[row["values"] for row in table["rows"]] for table in shown] == [
        t.to_dict()["rows"] for t in made
    ]
    assert any(row["measured"] for table in shown for row in table["rows"])
    assert not all(row["measured"] for table in shown for row in table["rows"])


def test_the_papers_figures_stand_beside_ours_in_the_published_study():
    table = next(t for t in gather([PUBLISHED])["tables"] if t["title"].startswith("Table 3:"))
    named = "Recency Bias"
    (ours,) = [row for row in table["rows"] if row["measured"] and row["values"]["method"] == named]
    assert ours["values"]["paper"] == 9.79
    best = [
        min(epoch["test_error"] for epoch in run.epochs)
        for run in read_runs(PUBLISHED)
        if run.config["method"] == "recency"
        and (run.config["draws"], run.config["schedule"]) == ("independent", "decayed")
    ]
    assert ours["values"]["ours"] == pytest.approx(sum(best) / len(best))


def test_every_epoch_has_the_shares_of_losses_that_were_drawn(trained):
    losses = gather([trained])["settings"][0]["losses"]
    for line in losses["lines"]:
        assert len(line["shares"]) == EPOCHS
        for shares in line["shares"]:
            assert len(shares) == len(losses["edges"]) - 1
            assert sum(shares) == pytest.approx(100, abs=0.1)


def test_equal_uncertainty_has_one_quantised_index_and_many_ranks(trained):
    run = gather([trained])["settings"][0]["indices"]["runs"][0]
    last = run["epochs"][-1]["points"]
    assert sum(count for _, count, *_ in last) == run["samples"] == 96
    for uncertainty, count, quantised, first, end in last:
        assert end - first + 1 == count
        assert quantised == pytest.approx((1 - uncertainty) * 96, abs=1)


def test_the_gallery_holds_samples_of_every_kind_with_their_images(trained):
    gallery = gather([trained])["settings"][0]["gallery"]
    assert gallery["classes"] == list(CLASSES)
    # The window of the other methods has ten places, which six epochs do not fill.
    run = next(run for run in gallery["runs"] if run["name"] == "Recency Bias (window 3)")
    assert list(run["kinds"]) == ["most uncertain", "changed most recently", "against their label"]
    for sample in run["samples"]:
        assert gallery["images"][sample["index"]].startswith("data:image/png;base64,")
    against = [run["samples"][row] for row in run["kinds"]["against their label"]]
    assert against
    assert all(sample["majority"] != sample["label"] for sample in against)


def test_the_grid_and_the_ablation_have_a_point_for_every_finished_cell(trained):
    data = gather([trained])
    (grid,) = data["grids"]
    assert {(pressure, window) for pressure, window, *_ in grid["points"]} == {
        (10, 2), (100, 2), (10, 3), (100, 3)
    }  # fmt: skip
    (ablation,) = data["ablations"]
    assert ablation["pressures"] == ["decayed, s₀ = 10", "decayed, s₀ = 100", "constant, s₀ = 100"]
    assert {pressure for pressure, *_ in ablation["points"]} == set(ablation["pressures"])


def test_methods_keep_their_keys_when_others_are_added(trained, study):
    for config in study.glob("runs/*/config.json"):
        if json.loads(config.read_text())["method"] == "online":
            shutil.rmtree(config.parent)
    few, all_ = gather([study]), gather([trained])
    assert few["settings"][0]["key"] == all_["settings"][0]["key"]
    keys = [[line["key"] for line in data["settings"][0]["convergence"]["lines"]] for data in (few, all_)]
    assert set(keys[0]) < set(keys[1])
    assert len(set(keys[1])) == len(keys[1])


def test_the_command_that_is_given_trains_the_very_runs_again(trained, tmp_path, monkeypatch, capsys):
    cells = group_cells(read_runs(trained))
    given = commands(cells)
    monkeypatch.chdir(tmp_path)
    again = Path(shutil.copytree(trained, tmp_path / "again"))
    with own_data():
        for command in given:
            words = [*shlex.split(command)[1:], "--out", str(again), "--json"]
            app(words, standalone_mode=False)  # trains nothing where each of its runs is done
    assert {run.hash for run in read_runs(again)} == {run.hash for run in read_runs(trained)}
    assert len(given) < len(cells)


def test_the_command_for_a_study_of_the_paper_is_reproduce():
    published = [run for run in read_runs(PUBLISHED) if run.config["draws"] == "independent"]
    runs = [run for run in published if run.config["schedule"] == "decayed"]
    reproduce, device = "carpediem reproduce resnet-momentum --datasets cifar10 --methods", "--device cuda"
    three = [run for run in runs if run.config["seed"] < 3]
    assert commands(group_cells(three)) == [f"{reproduce} random,online,active,recency --seeds 3 {device}"]
    assert commands(group_cells(runs)) == [
        f"{reproduce} random,recency --seeds 5 {device}",
        f"{reproduce} online,active --seeds 3 {device}",
    ]
    # The study of the pressure has both schedules, but not these seeds of them.
    assert {shlex.split(command)[1] for command in commands(group_cells(published))} == {"compare"}


def test_the_command_for_a_grid_search_names_its_method_once():
    points = PLANS["grid-search"].sets_of_options("recency")
    runs = [made("recency", 0, [9.0], **point) for point in points]
    (command,) = commands(group_cells(runs))
    assert " grid-search --datasets cifar10 --methods recency --seeds 1 " in command
    # It would train points that were not run.
    some = commands(group_cells(runs[1:]))
    assert {shlex.split(command)[1] for command in some} == {"compare"}
    assert len(some) == 9


def test_the_page_has_the_colours_and_dashes_of_the_figures():
    runs = [made("random", 0, [9.0]), made("newest", 0, [9.0])]
    runs += [made("recency", 0, [9.0], window=q) for q in (5, 10)]
    styles = {line["name"]: tuple(line["style"]) for line in lines(group_cells(runs))}
    assert styles == {
        "Random Batch": ("random", 0),
        "Recency Bias": ("recency", 3),
        "Recency Bias (window 5)": ("spare0", 0),
        "newest": ("spare1", 0),
    }


@pytest.mark.parametrize(
    ("recipe", "weights", "said"),
    [
        ("fine-tuning", None, "--weights none"),
        ("fine-tuning", "imagenet", None),
        ("modern", "imagenet", "--weights imagenet"),
        ("modern", None, None),
    ],
)
def test_the_command_says_what_a_network_starts_from_where_the_recipe_does_not(recipe, weights, said):
    config = {"recipe": recipe, "data": "./photos", "net": "efficientnet-lite0", "weights": weights}
    (command,) = commands(group_cells([made("random", 0, [9.0], **config)]))
    assert said in command if said else "--weights" not in command


def test_the_page_names_no_folder_of_the_machine_that_it_was_made_on(study, tmp_path):
    described = json.loads((study / "study.json").read_text())
    described["command"] = ["carpediem", "compare", "--out", str(study), f"--data-dir={tmp_path}"]
    (study / "study.json").write_text(json.dumps(described))
    (told,) = gather([study])["obtained"]["studies"]
    assert told["command"] == shlex.join(
        ["carpediem", "compare", "--out", f"…/{study.name}", f"--data-dir=…/{tmp_path.name}"]
    )


def test_machine_versions_and_commit_are_told_and_a_commit_that_is_not_known_too(study):
    for file in study.glob("runs/*/done.json"):
        done = json.loads(file.read_text())
        done["versions"] |= {"commit": "0123456789ab"}
        file.write_text(json.dumps(done))
    (machine,) = gather([study])["obtained"]["settings"][0]["machines"]
    rows = dict(machine["rows"])
    assert {"system", "cores", "python", "torch", "carpediem"} <= set(rows)
    assert (rows["commit"], machine["runs"]) == ("0123456789ab", len(read_runs(study)))
    published = gather([PUBLISHED])["obtained"]["settings"][0]["machines"]
    assert {dict(machine["rows"])["commit"] for machine in published} == {"not recorded"}


def test_the_command_names_seeds_that_follow_one_another_and_trains_others_one_by_one():
    runs = comparison(net="small-cnn")
    (command,) = commands(group_cells(run for run in runs if run.config["seed"] > 0))
    assert " --seeds 2 --first-seed 1 " in command
    apart = commands(group_cells(run for run in runs if run.config["seed"] != 1))
    assert [shlex.split(command)[1] for command in apart] == ["train"] * 8


# --- the page


def test_text_from_data_cannot_end_a_script_or_become_an_element(trained):
    page = render_page(gather([trained]))
    elements = Elements(page)
    assert not [tag for tag, _ in elements.tags if tag == "img"]
    assert len([tag for tag, _ in elements.tags if tag == "script"]) == 4
    ((_, text),) = [one for one in elements.scripts if one[0].get("type") == "application/json"]
    assert json.loads(text)["settings"][0]["gallery"]["classes"] == list(CLASSES)
    assert "alert(1)</script>" not in page


def test_a_folder_called_like_an_element_is_shown_as_text(trained, tmp_path):
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    shutil.copytree(trained, folder)
    assert not [tag for tag, _ in Elements(render_page(gather([folder]))).tags if tag == "img"]


def test_the_page_names_nothing_outside_itself_and_is_small(trained, tmp_path):
    published = PUBLISHED.parent / "2026-11-15_cifar100_resnet50_momentum_paper"
    page = write_report([trained, published], tmp_path / "report.html").read_text()
    for tag, attributes in Elements(page).tags:
        assert "src" not in attributes, tag
        if tag == "link":
            assert attributes["href"].startswith("data:")
    assert len(page.encode()) < 3_000_000


def test_a_page_on_many_studies_is_called_by_the_first_and_their_number(trained, tmp_path):
    folders = [trained] + [shutil.copytree(trained, tmp_path / name) for name in ("two", "three")]
    assert gather(folders[:2])["title"] == f"{trained.name}, two"
    assert gather(folders)["title"] == f"{trained.name} and 2 more studies"


def test_the_published_studies_together_are_a_page_of_little_more_than_a_megabyte_each(tmp_path):
    published = sorted(folder for folder in PUBLISHED.parent.iterdir() if folder.is_dir())
    page = write_report(published, tmp_path / "report.html")
    assert page.stat().st_size < 1_500_000 * len(published)


def test_equal_records_give_equal_pages(trained):
    assert render_page(gather([trained])) == render_page(gather([trained]))


def test_every_script_is_named_by_its_hash_in_the_policy(trained):
    elements = Elements(render_page(gather([trained])))
    (policy,) = [a["content"] for _, a in elements.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none';")
    for attributes, text in elements.scripts:
        if "type" not in attributes:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy


def test_the_bundled_library_is_as_it_was_released():
    vendor = Path(report.__file__).parent / "vendor"
    stated = dict(re.findall(r"\| `(\S+\.js)` .*`([0-9a-f]{64})`", (vendor / "README.md").read_text()))
    assert stated == {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in vendor.glob("*.js")}


# --- missing and partial records


def test_sections_without_records_say_what_is_missing(trained, tmp_path):
    export_runs([trained], tmp_path / "published" / "runs.jsonl")
    setting = gather([tmp_path / "published"])["settings"][0]
    for section in ("gallery", "strips"):
        assert re.search(r"No record of .*; runs that .*", setting[section]["missing"])


def test_records_of_an_earlier_version_still_give_a_report(tmp_path):
    lines = (PUBLISHED / "runs.jsonl").read_text().splitlines(keepends=True)
    (early := tmp_path / "early").mkdir()
    (early / "runs.jsonl").write_text("".join(line for line in lines if "uncertainty_counts" not in line))
    data = gather([early])
    assert len(data["settings"][0]["convergence"]["lines"]) == 3
    assert "uncertainty" in data["settings"][0]["indices"]["missing"]
    assert data["grids"] == data["ablations"] == []
    assert write_report([early], tmp_path / "report.html").stat().st_size > 200_000


def test_a_run_without_a_finished_epoch_still_gives_a_report(study, tmp_path):
    for file in study.glob("runs/*/epochs.jsonl"):
        file.unlink()
        (file.parent / "done.json").unlink()
    data = gather([study])
    assert all(not line["iterations"] for line in data["settings"][0]["convergence"]["lines"])
    assert "missing" in data["settings"][0]["losses"]
    write_report([study], tmp_path / "report.html")


def test_a_run_that_diverged_has_gaps_and_no_invalid_json(study):
    (file, *_) = study.glob("runs/*/epochs.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[-1] |= {"train_loss": None, "test_loss": None}
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    data = gather([study])
    json.dumps(data, allow_nan=False)
    lasts = [line["train_loss"]["mean"][-1] for line in data["settings"][0]["convergence"]["lines"]]
    assert lasts.count(None) == 1


def test_a_damaged_file_of_samples_is_named_and_another_run_takes_its_place(study):
    before = gather([study])["settings"][0]["gallery"]["runs"]
    (file, *_) = study.glob("runs/*/gallery.npz")
    file.write_bytes(b"PK not really")
    data = gather([study])
    assert [str(file) in sentence for sentence in data["damage"]] == [True]
    assert len(data["settings"][0]["gallery"]["runs"]) in (len(before), len(before) - 1)


def test_a_damaged_run_is_left_out_and_named(study):
    lines = len(gather([study])["settings"][0]["convergence"]["lines"])
    (file, *_) = study.glob("runs/*/epochs.jsonl")
    file.write_text("{\n" + file.read_text())
    data = gather([study])
    assert [str(file) in sentence for sentence in data["damage"]] == [True]
    assert len(data["settings"][0]["convergence"]["lines"]) in (lines, lines - 1)
    assert f"{len(list(study.glob('runs/*'))) - 1} runs in" in data["summary"]


# --- the commands


def run(*words):
    return CliRunner().invoke(app, list(map(str, words)))


def test_report_warns_of_what_is_damaged_and_shows_the_rest(study):
    (file, *_) = study.glob("runs/*/epochs.jsonl")
    file.write_text("{\n{}\n")
    done = run("report", study)
    assert done.exit_code == 0
    assert re.fullmatch(rf"note: left out: {re.escape(str(file))}, line 1 is damaged[^\n]*\n", done.stderr)
    assert str(file) in (study / "report.html").read_text()


def test_report_writes_beside_the_study_and_prints_where(study):
    done = run("report", study)
    assert (done.exit_code, done.stdout.strip()) == (0, str(study / "report.html"))
    assert (study / "report.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("absent", "does not exist"),
        ("empty", "holds no study"),
        ("no run", "holds no run yet; carpediem compare"),
        ("folder as out", "--out must be a file"),
        ("file on the way", "cannot be written: .*; choose another --out"),
    ],
)
def test_bad_input_gets_one_sentence(bad, said, study, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "none" / "runs").mkdir(parents=True)
    words = {
        "absent": [tmp_path / "absent"],
        "empty": [tmp_path / "empty"],
        "no run": [tmp_path / "none"],
        "folder as out": [study, "--out", tmp_path],
        "file on the way": [study, "--out", study / "study.json" / "report.html"],
    }[bad]
    done = run("report", *words)
    assert done.exit_code == 2
    assert re.fullmatch(rf"error: [^\n]*{said}[^\n]*\n", done.stderr)
    assert not list(tmp_path.rglob("*.part"))


def test_what_was_written_before_stays_when_the_new_report_cannot_be_made(study):
    (study / "report.html").write_text("before")
    shutil.rmtree(study / "runs")
    assert run("report", study).exit_code == 2
    assert (study / "report.html").read_text() == "before"


@pytest.mark.parametrize(
    ("command", "out"),
    [("report", "in/report.html"), ("export", "in/samples.csv"), ("figures", "in"), ("publish", "in")],
)
def test_a_place_that_cannot_be_written_gets_one_sentence(command, out, study, tmp_path):
    (tmp_path / "in").write_text("a file where a folder would have to be")
    done = run(command, study, "--out", tmp_path / out)
    assert done.exit_code == 2
    place = re.escape(str(tmp_path / out))
    assert re.fullmatch(rf"error: {place} cannot be written: [^\n]+; choose another --out\n", done.stderr)


def test_a_file_of_runs_can_be_drawn_beside_itself(trained, tmp_path):
    export_runs([trained], tmp_path / "runs.jsonl")
    assert run("figures", tmp_path / "runs.jsonl").exit_code == 0
    assert list((tmp_path / "figures").glob("curves_*.png"))


def test_the_report_opens_in_the_users_browser(study, tmp_path):
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {tmp_path / "opened"}\n')
    browser.chmod(0o755)
    python("-m", "carpediem", "report", study, "--open", env=os.environ | {"BROWSER": str(browser)})
    assert (tmp_path / "opened").read_text().strip() == (study / "report.html").resolve().as_uri()


def test_where_there_is_no_browser_the_address_is_told(study, tmp_path):
    nowhere = {"PATH": str(tmp_path), "BROWSER": str(tmp_path / "none"), "HOME": str(tmp_path)}
    done = python("-m", "carpediem", "report", study, "--open", env=nowhere)
    told = f"note: there is no browser to open {(study / 'report.html').resolve().as_uri()} with\n"
    assert done.stderr == told
