"""TensorBoard event files from the records of a run."""

from __future__ import annotations

import math
import os
import tempfile
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carpediem.lab.records import RunRecord, read_run

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

# One name for ever, so that writing again replaces the file. TensorBoard looks for "tfevents" in it.
_FILE = "events.out.tfevents.0000000000.carpediem"
_SCALARS = {
    "train_loss": "loss/drawn",
    "training_set_loss": "loss/training_set",
    "test_loss": "loss/test",
    "training_set_error": "error/training_set",
    "test_error": "error/test",
    "learning_rate": "schedule/learning_rate",
    "pressure": "schedule/pressure",
    "uncertainty": "selection/uncertainty",
    "distinct": "selection/distinct",
    "seconds": "time/training",
    "seconds_with_evaluation": "time/with_evaluation",
}


def write_events(run_dir: str | Path) -> Path:
    """Write what the run in `run_dir` has recorded so far to `run_dir/tensorboard`, and return the file.

    Steps are iterations, and TensorBoard's relative time is that of the run, evaluation included. Written from
    scratch each time: calling it again, as the run goes on or after its end, leaves one file that holds
    everything once.
    """
    run_dir = Path(run_dir)
    run = read_run(run_dir)
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("event files need tensorboard: pip install tensorboard") from error

    folder = run_dir / "tensorboard"
    folder.mkdir(exist_ok=True)
    # Written elsewhere and then moved: a TensorBoard that looks meanwhile sees the old file or the new one.
    with tempfile.TemporaryDirectory(dir=run_dir, prefix=".tensorboard-") as beside:
        writer = SummaryWriter(beside)
        _write(writer, run, start=_start(run, run_dir))
        writer.close()
        (written,) = Path(beside).iterdir()
        os.replace(written, folder / _FILE)
    return folder / _FILE


def _write(writer: SummaryWriter, run: RunRecord, *, start: float) -> None:
    rows = "\n".join(f"| {name} | {value} |" for name, value in sorted(run.config.items()))
    writer.add_text("configuration", f"| setting | value |\n| --- | --- |\n{rows}", 0, walltime=start)
    for epoch in run.epochs:
        step, time = int(epoch["iteration"]), start + _elapsed(epoch)
        scalars = {tag: epoch.get(name) for name, tag in _SCALARS.items()}
        for quantile, value in (epoch.get("loss_quantiles") or {}).items():
            scalars[f"drawn_loss/quantile_{quantile}"] = value
        for tag, value in scalars.items():
            if value is not None:
                writer.add_scalar(tag, value, step, walltime=time)
        if histogram := epoch.get("loss_histogram"):
            _write_histogram(writer, histogram, step, time)


def _write_histogram(writer: SummaryWriter, histogram: dict[str, Any], step: int, time: float) -> None:
    edges, counts = histogram["edges_log10"], histogram["counts"]
    if not sum(counts):
        return
    # TensorBoard's buckets are told by their upper limits alone: an empty one below the first holds its lower edge.
    # The outermost edges may be infinite; they stand in for whatever lies beyond.
    finite = [edge for edge in edges if math.isfinite(edge)]
    limits = [max(finite[0] - 1, min(finite[-1] + 1, edge)) for edge in edges]
    middles = [(low + high) / 2 for low, high in pairwise(limits)]
    writer.add_histogram_raw(
        "drawn_loss/log10",
        min=limits[0],
        max=limits[-1],
        num=sum(counts),
        sum=sum(count * middle for count, middle in zip(counts, middles, strict=True)),
        sum_squares=sum(count * middle**2 for count, middle in zip(counts, middles, strict=True)),
        bucket_limits=limits,
        bucket_counts=[0, *counts],
        global_step=step,
        walltime=time,
    )


def _start(run: RunRecord, run_dir: Path) -> float:
    """When the run began, in seconds since 1970: reckoned back from its end, which is on record."""
    finished = (run.done or {}).get("finished")
    if finished is not None and run.epochs:
        return datetime.fromisoformat(str(finished).replace("Z", "+00:00")).timestamp() - _elapsed(
            run.epochs[-1]
        )
    return (run_dir / "config.json").stat().st_mtime


def _elapsed(epoch: dict[str, Any]) -> float:
    return float(epoch.get("seconds_with_evaluation") or epoch["seconds"])
