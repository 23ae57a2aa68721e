"""The paper's static figures: what they draw, from which records, and that they can be drawn at all."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from typer.testing import CliRunner

from carpediem.cli import app
from carpediem.lab import figures
from carpediem.lab.analysis.measures import EARLY, LATE, epoch_at
from carpediem.lab.drawing import (
    COLOURS,
    SPARE_COLOURS,
    comparable,
    head,
    new_figure,
    plain_and_varied,
    style,
)
from carpediem.lab.figure_data import index_comparison, loss_distributions
from carpediem.lab.figure_grid import grid_figure
from carpediem.lab.figure_index import index_figure
from carpediem.lab.figure_losses import loss_figure
from carpediem.lab.figure_trails import OF_MANY, OF_REST, OF_TEN, trails_figure
from carpediem.lab.figures import write_figures
from carpediem.lab.grid_data import grid_searches
from carpediem.lab.records import RunRecord, read_runs
from carpediem.lab.results import group_cells
from carpediem.lab.samples import GALLERY, TRAILS, Trails, read_gallery, read_samples, read_trails, run_folder
from carpediem.lab.study import Study


@pytest.fixture
def study(make_configs, tmp_path):
    """Random Batch and Recency Bias with two seeds, in a folder."""
    Study(tmp_path / "study", make_configs("random", "recency", seeds=(0, 1), epochs=5)).train()
    return tmp_path / "study"


def kinds(files):
    return sorted({file.name.split("_")[0] for file in files})


def texts(figure):
    """Every text but the labels of ticks, of which matplotlib keeps some that it does not draw."""
    figure.canvas.draw()
    found = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in figure.axes:
        found += [*axes.texts, axes.title, axes._left_title, axes._right_title]
        found += [axes.xaxis.label, axes.yaxis.label]
        found += axes.get_legend().get_texts() if axes.get_legend() else []
    return [text for text in found if text.get_text()]


def assert_inside(figure):
    """No text sticks out of the figure."""
    renderer = figure.canvas.get_renderer()
    for text in texts(figure):
        own = text.get_window_extent(renderer)
        assert min(own.x0, own.y0) >= -1, text.get_text()
        assert own.x1 <= figure.bbox.x1 + 1, text.get_text()
        assert own.y1 <= figure.bbox.y1 + 1, text.get_text()


def test_a_study_gives_every_figure_as_png_and_pdf(study, tmp_path):
    files = write_figures(read_runs(study), [study], tmp_path / "figures")
    assert kinds(files) == ["curves", "index", "losses", "trails"]
    assert {file.suffix for file in files} == {".png", ".pdf"}
    for file in files:
        assert file.read_bytes().startswith(b"\x89PNG" if file.suffix == ".png" else b"%PDF")
    again = write_figures(read_runs(study), [study], tmp_path / "again", formats=["pdf"])
    assert [f.read_bytes() for f in files if f.suffix == ".pdf"] == [f.read_bytes() for f in again]


def test_figures_are_left_out_where_the_records_do_not_hold_them(study, tmp_path):
    for file in study.glob(f"runs/*/{TRAILS}"):
        file.unlink()
    bare = [
        RunRecord(
            run.hash,
            run.config,
            [
                {k: v for k, v in epoch.items() if k not in ("loss_histogram", "uncertainty_counts")}
                for epoch in run.epochs
            ],
            run.done,
        )
        for run in read_runs(study)
    ]
    assert kinds(write_figures(bare, [study], tmp_path / "figures", formats=["png"])) == ["curves"]


def test_the_lines_of_figure_4_are_the_shares_of_the_records(study):
    (cells,) = comparable(read_runs(study))
    figure = loss_figure(cells)
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        "Epoch 2 of 5 (30%)",
        "Epoch 4 of 5 (70%)",
    ]
    for axes, epoch in zip(figure.axes, (1, 3), strict=True):
        for line, one in zip(axes.get_lines(), loss_distributions(cells), strict=True):
            np.testing.assert_allclose(line.get_ydata(), 100 * one.shares[epoch])
    assert_inside(figure)


def test_no_panel_of_figure_4_cuts_its_lines(study):
    (cells,) = comparable(read_runs(study))
    for run in (run for cell in cells for run in cell.runs):  # in the later epoch all draws have one loss
        counts = run.epochs[3]["loss_histogram"]["counts"]
        run.epochs[3]["loss_histogram"]["counts"] = [sum(counts), *([0] * (len(counts) - 1))]
    figure = loss_figure(cells)
    assert all(axes.get_ylim()[0] == 0 and axes.get_ylim()[1] >= 100 for axes in figure.axes)


def test_figure_3_draws_both_indices(study):
    run = next(run for run in read_runs(study) if run.config["method"] == "recency")
    figure = index_figure(run, "Recency Bias (systematic draws)")
    for axes, share in zip(figure.axes, (EARLY, LATE), strict=True):
        found = index_comparison(run, epoch_at(5, share))
        np.testing.assert_allclose(axes.get_lines()[-1].get_ydata(), found.quantised)
        spans = [path.vertices[:, 1].tolist() for path in axes.collections[0].get_paths()]
        assert spans == [[a - 1, b] for a, b in zip(found.first_rank, found.last_rank, strict=True)]
    named = f"Recency Bias (systematic draws), seed {run.config['seed']};"
    assert any(text.get_text().startswith(named) for text in texts(figure))
    assert_inside(figure)


@pytest.mark.parametrize(
    ("counts", "said"), [((995, 5), ">99%"), ((990, 10), "99%"), ((1000, 0), "100%"), ((400, 600), "40%")]
)
def test_figure_3_says_100_percent_only_of_all_samples(study, counts, said):
    run = next(run for run in read_runs(study) if run.config["method"] == "recency")
    for epoch in run.epochs:
        known = [[0.0, counts[0]], [0.5, counts[1]]]
        epoch["uncertainty_counts"] = [pair for pair in known if pair[1]]
    shown = [axes.get_title(loc="right") for axes in index_figure(run, "Recency Bias").axes]
    assert set(shown) == {f"{said} have uncertainty 0"}


def test_figure_3_is_of_the_first_run_that_knows_its_uncertainties(study, tmp_path):
    known = next(run for run in read_runs(study) if run.config["method"] == "recency")
    bare = [{k: v for k, v in epoch.items() if k != "uncertainty_counts"} for epoch in known.epochs]
    config = known.config | {"draws": "independent"}
    assert known.config["draws"] == "systematic"
    runs = [RunRecord("0" * 12, config, bare, known.done), known]
    assert "index" in kinds(write_figures(runs, [study], tmp_path / "figures", formats=["png"]))


def long_trails(classes=9):
    """Seven samples over 103 epochs, of classes with long names and signs that matplotlib would read."""
    random = np.random.default_rng(3)
    prediction = random.integers(-1, classes, (103, 7))
    prediction[:, :4] = 5
    prediction[:4, :4] = random.integers(0, 9, (4, 4))
    uncertainty = random.random((103, 7)).astype(np.float32)
    uncertainty[-1, :4] = 0
    return Trails(
        classes=tuple(f"a class of ${n}_many^words$" for n in range(classes)),
        index=np.arange(0, 70_000, 10_000),
        label=np.full(7, 5),
        prediction=prediction,
        drawn=(prediction >= 0).astype(np.int32),
        window=np.zeros((103, 7, 10), dtype=np.int16),
        uncertainty=uncertainty,
        deviation=random.random((103, 7)).astype(np.float32) / 2,
    )


CONFIG = {
    "recipe": "paper",
    "data": "/data/$x$",
    "net": "resnet-50",
    "optimizer": "sgd",
    "draws": "systematic",
}


def test_figures_2_and_3_name_the_draws_where_there_are_both_and_prefer_recency_bias(
    study, tmp_path, monkeypatch
):
    drawn = []
    monkeypatch.setattr(figures, "trails_figure", lambda run, method, *_: drawn.append(method))
    monkeypatch.setattr(figures, "index_figure", lambda run, method: drawn.append(method) or new_figure(1, 1))
    runs = read_runs(study)
    others = [replace(run, hash=run.hash[::-1], config=run.config | {"draws": "independent"}) for run in runs]
    write_figures(runs + others, [study], tmp_path, formats=["png"])
    write_figures(runs, [study], tmp_path, formats=["png"])
    assert drawn == [
        "Recency Bias (systematic draws, window 2)",  # no sample records lie there for the others
        "Recency Bias (independent draws, window 2)",
        "Recency Bias (window 2)",
        "Recency Bias (window 2)",
    ]


def strips_of(figure):
    """The strips of Figure 2, from top to bottom."""
    return [axes for axes in figure.axes if any(text.get_text().startswith("label: ") for text in axes.texts)]


def test_figure_2_shows_long_and_odd_names_as_they_are():
    run = RunRecord("abc", CONFIG | {"method": "random", "seed": 1, "warm_up": 10}, [], None)
    method = "Recency Bias (systematic draws, window 15, pressure 1000, constant pressure)"
    figure = trails_figure(run, method, long_trails(), None)
    assert any(text.get_text().startswith(f"{method}, seed 1.") for text in texts(figure))
    assert_inside(figure)
    shown = [text.get_text() for text in texts(figure)]
    assert r"/data/\$x\$, ResNet (L=50), SGD, recipe paper" in shown
    assert "sample 60,000" in shown or "sample 50,000" in shown or "sample 40,000" in shown


def test_the_strip_of_figure_2_is_coloured_by_the_predictions(study):
    run = next(run for run in read_runs(study) if run.config["method"] == "recency")
    place = run_folder(study, run.hash)
    trails, gallery = read_trails(place), read_gallery(place)
    figure = trails_figure(run, "Recency Bias", trails, gallery, samples=2)
    strips = strips_of(figure)
    assert len(strips) == 2
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    for strip, name in zip(strips, titles, strict=True):
        (column,) = np.flatnonzero(trails.index == int(name.removeprefix("sample ")))
        drawn = [p for p in trails.prediction[:, column] if p >= 0]
        colours = [to_hex(patch.get_facecolor()).upper() for patch in strip.patches]
        assert len(colours) == len(drawn)
        assert colours == [OF_TEN[predicted] for predicted in drawn]
        heights = [patch.get_height() for patch in strip.patches]
        assert heights == [0.5 if predicted == trails.label[column] else 1 for predicted in drawn]


@pytest.mark.parametrize(("classes", "palette"), [(9, OF_TEN), (10, OF_TEN), (11, OF_MANY), (100, OF_MANY)])
def test_a_class_of_figure_2_has_one_colour_in_all_strips_and_is_named_with_it(classes, palette):
    run = RunRecord("abc", CONFIG | {"method": "random", "seed": 1, "warm_up": 10}, [], None)
    trails = long_trails(classes)
    trails.label[4:] = 1, 2, 3
    figure = trails_figure(run, "Recency Bias", trails, None)
    found, labels = {}, set()
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    for strip, name in zip(strips_of(figure), titles, strict=True):
        (column,) = np.flatnonzero(trails.index == int(name.removeprefix("sample ").replace(",", "")))
        labels.add(int(trails.label[column]))
        drawn = [int(p) for p in trails.prediction[:, column] if p >= 0]
        for patch, predicted in zip(strip.patches, drawn, strict=True):
            found.setdefault(predicted, set()).add(to_hex(patch.get_facecolor()).upper())
    assert len(labels) > 1
    own = {number: colour for number, (colour,) in found.items() if colour != OF_REST}
    assert len(set(own.values())) == len(own) == min(len(found), len(palette))
    assert set(own.values()) <= set(palette)
    assert labels & set(found) <= set(own)
    (legend,) = figure.legends
    squares = [to_hex(patch.get_facecolor()).upper() for patch in legend.get_patches()]
    names = [text.get_text().replace("\\$", "$") for text in legend.get_texts()]
    expected = [(colour, trails.classes[number][:15] + "…") for number, colour in sorted(own.items())]
    rest = [(OF_REST, f"{len(found) - len(own)} more classes")] if len(found) > len(own) else []
    assert list(zip(squares, names, strict=True)) == expected + rest
    assert_inside(figure)
    boxes = [text.get_window_extent() for text in texts(figure)]
    assert not any(box.overlaps(other) for index, box in enumerate(boxes) for other in boxes[:index])


def point(pressure, window, error, method="recency"):
    config = CONFIG | {"method": method, "seed": 0, "pressure": pressure, "window": window}
    config |= {"schedule": "decayed", "warm_up": max(10, window or 0)}
    epoch = {"epoch": 0, "iteration": 1, "train_loss": 1.0, "test_error": error, "seconds": 1.0}
    return RunRecord(f"{method}-{pressure}-{window}", config, [epoch], {"finished": "2026-01-01"})


def test_figure_7_has_a_field_a_point_and_frames_the_best():
    runs = [point(10.0, 5, 7.0), point(1000.0, 5, 6.25), point(10.0, 10, 6.5)]
    (search,) = grid_searches(group_cells(runs))
    figure = grid_figure(search)
    assert not any("s₀ = 1" in text.get_text() for text in figure.texts)
    axes = figure.axes[0]
    words = {text.get_text(): text.get_position() for text in axes.texts}
    assert words == {"7.00": (0, 0), "6.25": (0, 1), "6.50": (1, 0), "not run": (1, 1)}
    (frame,) = axes.patches
    assert frame.get_xy() == (-0.5, 0.5)
    assert_inside(figure)


def test_figure_7_frames_all_that_are_best_and_says_what_a_pressure_of_1_is():
    runs = [point(1.0, 5, 6.5), point(1.0, 10, 6.5), point(10.0, 5, 7.0), point(None, None, 6.75, "random")]
    (search,) = grid_searches(group_cells(runs))
    figure = grid_figure(search)
    assert {frame.get_xy() for frame in figure.axes[0].patches} == {(-0.5, -0.5), (0.5, -0.5)}
    notes = [text.get_text() for text in figure.texts]
    assert "With s₀ = 1 the window changes nothing: one training stands at every window." in notes
    assert "Random Batch beside it: 6.75." in notes
    assert_inside(figure)
    runs[-1].config["draws"] = "independent"
    (search,) = grid_searches(group_cells(runs))
    assert "Random Batch (independent draws) beside it" in grid_figure(search).texts[-1].get_text()


def test_the_words_of_figure_7_leave_the_map_free():
    runs = [point(1.0, 10, 6.5), point(10.0, 5, 7.0), point(10.0, 15, 7.0), point(None, None, 6.75, "random")]
    (search,) = grid_searches(group_cells(runs))
    figure = grid_figure(search)
    assert len(figure.texts) == 2 + 3  # the head's two, and one on warm-ups, on s₀ = 1 and on Random Batch
    assert_inside(figure)
    axes, renderer = figure.axes[0], figure.canvas.get_renderer()
    taken = axes.get_tightbbox(renderer)
    boxes = [text.get_window_extent(renderer) for text in figure.texts]
    for index, box in enumerate(boxes):
        assert not box.overlaps(taken)
        assert not any(box.overlaps(other) for other in boxes[:index])


def test_of_several_sets_of_options_the_papers_stands_for_a_method_else_the_one_with_the_most_runs():
    runs = [point(1.0, 5, 6.0), point(1.0, 15, 6.0)]
    more = point(1.0, 15, 6.0)
    runs.append(replace(more, hash="more", config=more.config | {"seed": 1}))
    plain, varied = plain_and_varied(group_cells(runs))
    assert [cell.options["window"] for cell in plain] == [15]
    assert len(varied) == 2
    plain, _ = plain_and_varied(group_cells([*runs, point(100.0, 10, 6.0)]))
    assert [cell.options["window"] for cell in plain] == [10]


def test_in_a_grid_a_colour_stands_for_a_pressure_and_dashes_for_a_window():
    points = [(s, q) for s in (1.0, 100.0) for q in (5, 10)]
    cells = group_cells([point(s, q, 6.0) for s, q in points])
    styles = {(c.options["pressure"], c.options["window"]): style(c, cells) for c in cells}
    assert len(set(styles.values())) == 4
    for s, q in points:
        colour, dashes = styles[s, q]
        assert colour == styles[s, 15 - q][0]
        assert dashes == styles[101 - s, q][1]
    assert styles[100.0, 10] == (COLOURS["recency"], "solid")
    # A line of options is no grid, nor are two methods with several.
    line = group_cells([point(1.0, q, 6.0) for q in (5, 10, 15)])
    assert [style(cell, line)[0] for cell in line] == [COLOURS["recency"], *SPARE_COLOURS[:2]]
    grid = [point(s, q, 6.0) for s, q in points]
    for others in ([point(s, 10, 6.0, "online") for s in (1.0, 100.0)], [point(1.0, 10, 6.0, "newest")]):
        mixed = group_cells([*grid, *others])
        assert len({style(cell, mixed) for cell in mixed}) == len(mixed)


@pytest.mark.parametrize(("pressures", "windows"), [(4, 5), (5, 4), (5, 5)])
def test_a_large_grid_has_as_many_styles_as_there_are(pressures, windows):
    sizes = [(s, q) for s in range(1, pressures + 1) for q in range(1, windows + 1)]
    cells = group_cells([point(float(s), q, 6.0) for s, q in sizes])
    assert len({style(cell, cells) for cell in cells}) == (20 if len(cells) == 20 else 17)


def test_published_results_hold_a_little_about_single_samples(study, tmp_path):
    out = tmp_path / "published"
    result = CliRunner().invoke(app, ["publish", str(study), "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert all(line and (tmp_path / line).exists() for line in result.stdout.split())
    # One seed of each method, and no record of every sample.
    assert [len(list(out.glob(f"runs/*/{name}"))) for name in (GALLERY, TRAILS, "*")] == [2, 2, 4]
    for place in (out / "runs").iterdir():
        assert (read_samples(place), read_trails(place).epochs, len(read_gallery(place)) > 0) == (
            None,
            5,
            True,
        )
    assert len(read_runs(out)) == 4
    # The figures are made from what was published.
    assert kinds(out.glob("*.png")) == ["curves", "index", "losses", "trails"]


def test_a_damaged_file_is_named(study):
    for file in study.glob(f"runs/*/{TRAILS}"):
        file.write_bytes(b"no archive")
    result = CliRunner().invoke(app, ["figures", str(study)])
    assert (result.exit_code, f"{TRAILS} is damaged" in result.stderr) == (2, True)


def test_a_title_is_set_smaller_where_it_is_long_and_never_larger():
    for words, smaller in (("short", False), ("long " * 40, True)):
        figure = new_figure(6, 3)
        head(figure, words)
        assert (figure.texts[0].get_fontsize() < 12) == smaller
        assert_inside(figure)


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("random", {}),
        ("random", {"draws": "systematic"}),
        ("online", {"losses": "evaluate", "pressure_lag": 1}),
        ("active", {}),
        ("active", {"mode": "reweight", "renewal": "step"}),
        ("recency", {"window_start": "zeros", "last_batch": "filled", "draws": "independent", "batch_size": 9}),
        ("recency", {"schedule": "constant", "window": 3, "warm_up": 3}),
    ],
)  # fmt: skip
def test_figure_2_is_made_from_any_run(make_configs, tmp_path, method, changes):
    Study(tmp_path / "study", make_configs(method, **changes)).train()
    (run,) = read_runs(tmp_path / "study")
    assert all(run.config[name] == value for name, value in changes.items())
    files = write_figures([run], [tmp_path / "study"], tmp_path / "figures", formats=["png"])
    assert "trails" in kinds(files)


def test_figure_2_is_made_from_a_set_of_options_that_stands_for_no_method(make_configs, tmp_path):
    folder = tmp_path / "study"
    Study(folder, [*make_configs("recency"), *make_configs("recency", pressure=7.0)]).train()
    runs = read_runs(folder)
    shown = plain_and_varied(group_cells(runs))[0][0].runs[0]
    (run_folder(folder, shown.hash) / TRAILS).unlink()
    assert "trails" in kinds(write_figures(runs, [folder], tmp_path / "figures", formats=["png"]))
