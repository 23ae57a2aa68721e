"""Convergence curves: what the figure draws, that it is the same each time, and the terminal's lines."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from carpediem.lab.curves import convergence_figure, spread, write_curves
from carpediem.lab.records import RunRecord
from carpediem.lab.results import group_cells
from carpediem.lab.terminal_curves import sparkline, terminal_curves

CONFIG = {
    "recipe": "demo",
    "data": "digits",
    "net": "small-cnn",
    "optimizer": "momentum",
    "draws": "systematic",
    "warm_up": 2,
    "pressure": 100.0,
}


def run(method, seed, *, epochs=8, done=True, **config):
    config = CONFIG | {"method": method, "seed": seed} | config
    name = hashlib.sha256(str(config).encode()).hexdigest()[:12]
    noise = np.random.default_rng(int(name[:6], 16)).uniform(1, 1.3, (2, epochs))
    rows = [
        {
            "epoch": n,
            "iteration": 22 * (n + 1),
            "train_loss": 2 * 0.6**n * noise[0, n],
            "test_error": 40 * 0.7**n * noise[1, n],
            "seconds": 1.0 + n,
        }
        for n in range(epochs)
    ]
    return RunRecord(name, config, rows, {"finished": "2026-01-01T00:00:00+00:00"} if done else None)


def comparison(**config):
    return [
        run(method, seed, **config)
        for method in ("random", "online", "active", "recency")
        for seed in range(3)
    ]


def test_the_figures_lines_are_the_means_over_seeds_and_its_bands_their_range():
    cells = group_cells(comparison())
    figure = convergence_figure(cells)
    for axes, field in zip(figure.axes, ("train_loss", "test_error"), strict=True):
        assert axes.get_yscale() == "log"
        for cell, line, band in zip(cells, axes.get_lines(), axes.collections, strict=False):
            values = np.array([[epoch[field] for epoch in item.epochs] for item in cell.runs])
            np.testing.assert_allclose(line.get_xdata(), 22 * np.arange(1, 9))
            np.testing.assert_allclose(line.get_ydata(), values.mean(axis=0))
            heights = band.get_paths()[0].vertices[:, 1]
            assert (heights.min(), heights.max()) == (
                pytest.approx(values.min()),
                pytest.approx(values.max()),
            )


def evaluated(records, every=3):
    """The same runs with a loss over the whole training set after every so many epochs and the last."""
    for record in records:
        for n, epoch in enumerate(record.epochs, start=1):
            if n % every == 0 or n == len(record.epochs):
                epoch["training_set_loss"] = epoch["train_loss"] / 3
    return records


def test_the_loss_over_the_whole_training_set_is_drawn_where_all_have_it_at_the_epochs_that_have_it():
    cells = group_cells(evaluated(comparison()))
    axes = convergence_figure(cells).axes[0]
    assert axes.get_title(loc="left") == "Training loss (whole training set)"
    for cell, line in zip(cells, axes.get_lines(), strict=False):
        losses = [[run.epochs[n]["training_set_loss"] for run in cell.runs] for n in (2, 5, 7)]
        np.testing.assert_allclose(line.get_xdata(), [22 * 3, 22 * 6, 22 * 8])
        np.testing.assert_allclose(line.get_ydata(), np.mean(losses, axis=1))
    # Without it in one of the methods all lines are of the loss that all have.
    some = evaluated([one for one in comparison() if one.config["method"] != "random"])
    mixed = group_cells(some + [one for one in comparison() if one.config["method"] == "random"])
    axes = convergence_figure(mixed).axes[0]
    assert axes.get_title(loc="left") == "Loss of the drawn samples"
    assert all(len(line.get_xdata()) == 8 for line in axes.get_lines()[:4])


def test_an_epoch_that_one_seed_lacks_is_passed_over():
    records = evaluated([run("random", 0), run("random", 1)], every=1)
    del records[1].epochs[4]["training_set_loss"]
    (line, *_) = convergence_figure(group_cells(records)).axes[0].get_lines()
    assert line.get_xdata().tolist() == [22 * n for n in (1, 2, 3, 4, 6, 7, 8)]


def test_the_figure_by_seconds_has_the_mean_seconds_of_each_method_below():
    records = comparison(epochs=40)
    for record in records:
        for epoch in record.epochs:
            epoch["seconds"] *= 1 + record.config["seed"] + (record.config["method"] == "online")
    cells = group_cells(records)
    figure = convergence_figure(cells, along="seconds")
    assert len(figure.axes) == 2
    for axes in figure.axes:
        assert axes.get_xlabel() == "Seconds of training"
        for cell, line in zip(cells, axes.get_lines(), strict=False):
            seconds = np.mean([[epoch["seconds"] for epoch in one.epochs] for one in cell.runs], axis=0)
            np.testing.assert_allclose(line.get_xdata(), seconds)
        # The warm-up of the first method ends after two epochs: 2 s, doubled and tripled in the other seeds.
        (span,) = axes.patches
        assert span.get_x() + span.get_width() == pytest.approx(4)


def test_seconds_come_with_how_many_runs_shared_the_machine():
    records = comparison()
    for record in records:
        for n, epoch in enumerate(record.epochs):
            epoch["side_by_side"] = 4 if n < 7 else 1
    assert convergence_figure(group_cells(records), along="seconds").axes[0].get_xlabel() == (
        "Seconds of training, 4 runs at once"
    )
    for epoch in records[0].epochs:
        epoch["side_by_side"] = 2
    by_seconds, by_iteration = (
        convergence_figure(group_cells(records), along=along).axes[0] for along in ("seconds", "iteration")
    )
    assert by_seconds.get_xlabel() == "Seconds of training, 2 to 4 runs at once"
    assert by_iteration.get_xlabel() == "Iteration"


def test_the_end_of_a_long_run_is_drawn_once_more_on_a_scale_of_its_own():
    cells = group_cells(comparison(epochs=40))
    whole, end = convergence_figure(cells).axes[1:]
    assert (whole.get_yscale(), end.get_yscale()) == ("log", "linear")
    assert end.get_xlim() == (22 * 26, 22 * 40)
    for one, other in zip(whole.get_lines()[:4], end.get_lines()[:4], strict=True):
        np.testing.assert_array_equal(other.get_ydata(), one.get_ydata()[-15:])
    assert {text.get_text() for text in end.texts} == {
        "Random Batch",
        "Online Batch",
        "Active Bias",
        "Recency Bias",
    }


def test_a_method_that_ends_far_above_leaves_the_last_panel_to_the_others():
    failing = [run("active", seed, epochs=40) for seed in range(3)]
    for record in failing:
        for epoch in record.epochs:
            epoch["test_error"] = 50.0
    good = [run(method, seed, epochs=40) for method in ("random", "recency") for seed in range(3)]
    end = convergence_figure(group_cells(good + failing)).axes[2]
    assert end.get_ylim()[1] < 1.1 * max(epoch["test_error"] for item in good for epoch in item.epochs[-15:])
    assert "Active Bias" in {text.get_text() for text in end.texts}


def test_runs_that_diverged_have_a_figure_too():
    records = [run("random", seed, epochs=40) for seed in range(2)]
    for record in records:
        for epoch in record.epochs:
            epoch |= {"train_loss": float("nan"), "test_error": 90.0}
    assert len(convergence_figure(group_cells(records)).axes) == 3


def test_every_method_is_named_beside_its_line_in_a_colour_of_its_own():
    axes = convergence_figure(group_cells(comparison())).axes[1]
    names = {text.get_text(): text.get_color() for text in axes.texts}
    assert set(names) == {"Random Batch", "Online Batch", "Active Bias", "Recency Bias"}
    assert len(set(names.values())) == 4


@pytest.mark.parametrize("along", ["iteration", "seconds"])
@pytest.mark.parametrize("epochs", [8, 40])
def test_no_two_texts_of_the_figure_overlap(epochs, along):
    records = comparison(epochs=epochs)
    records += [run("random", seed, draws="independent", epochs=epochs) for seed in range(3)]
    figure = convergence_figure(group_cells(evaluated(records)), along=along)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    texts = [*figure.texts, *(text for axes in figure.axes for text in axes.texts)]
    texts += [
        title for axes in figure.axes for title in (axes._left_title, axes._right_title, axes.xaxis.label)
    ]
    texts = [text for text in texts if text.get_text()]
    boxes = [text.get_window_extent(renderer) for text in texts]
    for index, box in enumerate(boxes):
        assert 0 <= box.x0 < box.x1 <= figure.bbox.x1, texts[index]
        assert 0 <= box.y0 < box.y1 <= figure.bbox.y1, texts[index]
        assert not any(box.overlaps(other) for other in boxes[:index]), texts[index]


def test_the_warm_up_is_named_where_no_line_can_run_through_the_words():
    figure = convergence_figure(group_cells(comparison()))
    figure.canvas.draw()
    texts = [
        text
        for axes in figure.axes
        for text in (*axes.texts, axes._right_title)
        if "warm-up" in text.get_text()
    ]
    assert len(texts) == 1
    box = texts[0].get_window_extent(figure.canvas.get_renderer())
    assert not any(box.overlaps(axes.bbox) for axes in figure.axes)
    for axes in figure.axes:
        assert [patch.get_x() + patch.get_width() for patch in axes.patches] == [44]
    without = convergence_figure(group_cells(comparison(warm_up=0)))
    assert not any(axes.patches or axes.get_title("right") == "grey: the warm-up" for axes in without.axes)


def test_the_same_records_give_the_same_files(tmp_path):
    first = write_curves(comparison(), tmp_path / "first")
    second = write_curves(comparison()[::-1], tmp_path / "second")
    assert [file.name for file in first] == [
        f"curves_digits_small-cnn_momentum_demo-with-warm-up-2{along}.{form}"
        for along in ("", "_seconds")
        for form in ("png", "pdf")
    ]
    assert first[0].read_bytes().startswith(b"\x89PNG")
    assert first[1].read_bytes().startswith(b"%PDF")
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
        assert b"CreationDate" not in one.read_bytes()


def test_settings_and_variants_have_figures_of_their_own(tmp_path):
    records = comparison() + comparison(data="./my photos") + comparison(dropout=0.5)
    records += [run("recency", 0, pressure=10.0)]
    names = [file.name for file in write_curves(records, tmp_path, formats=["png"])]
    figures = (
        "curves_digits_small-cnn_momentum_demo-with-dropout-0.5-and-warm-up-2",
        "curves_digits_small-cnn_momentum_demo-with-warm-up-2",
        "curves_digits_small-cnn_momentum_demo-with-warm-up-2_variants",
        "curves_my-photos_small-cnn_momentum_demo-with-warm-up-2",
    )
    assert set(names) == {f"{name}{along}.png" for name in figures for along in ("", "_seconds")}
    assert len(names) == 8


def test_settings_that_are_called_the_same_are_numbered_and_no_picture_stays_of_one_alone(tmp_path):
    first = comparison(precision="bf16")
    alone = write_curves(first, tmp_path, formats=["png"])
    files = write_curves(first + comparison(precision="float32"), tmp_path, formats=["png"])
    assert {file.name for file in files} == {f"{one.stem}_{n}.png" for one in alone for n in (1, 2)}
    assert sorted(tmp_path.iterdir()) == sorted(files)


@pytest.mark.parametrize("epochs", [8, 40])
@pytest.mark.parametrize("start", [0, 4])
def test_an_error_of_zero_lies_within_a_linear_axis(epochs, start):
    records = [run(method, seed, epochs=epochs) for method in ("random", "recency") for seed in range(2)]
    for epoch in records[0].epochs[start:]:  # of one seed: the lower edge of a band
        epoch["test_error"] = 0.0
    for record in records[2:]:  # of all seeds: a line
        for epoch in record.epochs[start:]:
            epoch["test_error"] = 0.0
    losses, *errors = convergence_figure(group_cells(records)).axes
    assert losses.get_yscale() == "log"
    for axes in errors:
        low, high = axes.get_ylim()
        assert axes.get_yscale() == "linear"
        assert -0.1 * high < low < 0 < high
        for line in axes.get_lines()[:2]:
            assert low < min(line.get_ydata()) <= max(line.get_ydata()) < high


def test_a_single_seed_without_any_error_can_be_drawn():
    record = run("random", 0)
    for epoch in record.epochs:
        epoch["test_error"] = 0.0
    low, high = convergence_figure(group_cells([record])).axes[1].get_ylim()
    assert -0.1 < low < 0 < high


def test_curves_are_of_finished_runs_alone(tmp_path):
    records = [run("random", 0), run("random", 1, epochs=3, done=False)]
    (cell,) = group_cells(records)
    assert len(convergence_figure([cell]).axes[0].get_lines()[0].get_xdata()) == 8
    with pytest.raises(ValueError, match="no run of 1 has finished yet"):
        write_curves(records[1:], tmp_path)
    with pytest.raises(ValueError, match="cells must hold at least one finished run"):
        convergence_figure([])


def test_wrong_options_are_named(tmp_path):
    with pytest.raises(ValueError, match="formats must be among png, pdf, got svg"):
        write_curves(comparison(), tmp_path, formats=["svg"])


@pytest.mark.parametrize("seed", range(20))
def test_names_are_spread_apart_in_order_and_within_the_axis(seed):
    rng = np.random.default_rng(seed)
    places = sorted(rng.uniform(0, 1, 6) ** 3)
    found = spread(places, gap=0.1)
    assert np.diff(found).min() >= 0.1 - 1e-9
    assert min(found) >= -1e-9
    assert max(found) <= 1 + 1e-9
    assert spread([0.1, 0.5, 0.9], gap=0.1) == pytest.approx([0.1, 0.5, 0.9])
    assert spread([], gap=0.1) == []


def test_a_sparkline_falls_with_its_values_on_a_logarithmic_scale():
    assert sparkline([1000, 100, 10, 1], width=10) == "█▆▃▁"
    assert sparkline([1000, 100, 10, 1], width=10, ascii=True) == "#+-_"
    assert sparkline([8, 8, 2, 2], width=2, low=2, high=8**4) == "▂▁"
    assert sparkline([5.0], width=3) == "▁"
    assert sparkline([0.0, 0.0], width=3) == "▁▁"
    assert sparkline([], width=3) == ""
    assert len(sparkline(range(1, 1000), width=48)) == 48
    with pytest.raises(ValueError, match="width must be at least 1, got 0"):
        sparkline([1.0], width=0)


def test_the_terminal_has_a_line_a_method_with_the_tables_best_error():
    records = comparison()
    title, *lines = terminal_curves(records, width=20).splitlines()
    assert title == "Test error by epoch: digits, small-cnn, momentum"
    assert [line.split("  ")[1].strip() for line in lines] == [
        "Random Batch",
        "Online Batch",
        "Active Bias",
        "Recency Bias",
    ]
    best = np.mean([min(epoch["test_error"] for epoch in item.epochs) for item in records[:3]])
    assert lines[0].endswith(f"best {best:.2f}%")
    assert terminal_curves(records, ascii=True).isascii()


def test_an_error_of_zero_leaves_the_terminal_a_scale_that_tells_the_others_apart():
    assert sparkline([40, 20, 10, 0], width=4) == "█▅▃▁"
    assert sparkline([40, 20, 10, 5], width=4, low=0) == "█▅▃▂"
    record = run("random", 0)
    for epoch, error in zip(record.epochs, (70, 60, 50, 40, 30, 20, 10, 0), strict=True):
        epoch["test_error"] = error
    assert "█▇▆▅▄▃▂▁" in terminal_curves([record])


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, carpediem.lab.curves, carpediem.lab.tables; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_matplotlib_comes_with_a_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        convergence_figure(group_cells(comparison()))
