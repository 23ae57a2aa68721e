"""What selection costs on the CPU, beside shuffling and beside other ways to draw by weight.

    python benchmarks/bench_selection.py [--quick] [--sizes N ...] [--json FILE] [--markdown FILE]

Every case runs in a process of its own; two things that are compared are timed in turns within one. No timing
makes the program fail: the table says which bars were kept.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from machine import describe_machine, describe_versions
from measure import in_fresh_process
from selection_cases import (
    BATCH,
    CLASSES,
    MULTINOMIAL_LIMIT,
    Raw,
    epoch_case,
    first_batch_case,
    memory_case,
    observe_case,
    random_memory_case,
    weighted_limit_case,
)
from selection_table import (
    Line,
    epoch_lines,
    first_batch_lines,
    markdown,
    memory_lines,
    observe_lines,
    plain,
    random_memory_lines,
    weighted_limit_lines,
)

from carpediem.lab.machine import source_fingerprint

SIZES = [50_000, 1_281_167, 16_000_000, 100_000_000]
QUICK_SIZES = SIZES[:2]
LIMIT = 900.0  # seconds that a case may take on a slow machine
WEIGHTED_LIMIT = 60.0


class Run:
    """Runs cases one after another; one that fails becomes a line of the table, and the rest goes on."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.raw: dict[str, Raw] = {}

    def case(
        self, name: str, n: int, case: Callable[..., Raw], *arguments: object, limit: float = LIMIT
    ) -> Raw:
        """The raw numbers of a case; empty where it failed."""
        start = time.perf_counter()
        try:
            raw: Raw = in_fresh_process(case, *arguments, limit=limit)
        except RuntimeError as error:
            self.raw[f"{name}, N = {n}"] = {"failed": str(error)}
            self.lines.append(Line(f"{name}: failed", n, beside=str(error).splitlines()[0]))
            return {}
        took = time.perf_counter() - start
        self.raw[f"{name}, N = {n}"] = raw
        print(f"{name}, N = {n:,}: took {took:.0f} s", file=sys.stderr, flush=True)
        return raw


def run_all(sizes: list[int], quick: bool) -> Run:
    """All cases, the small sizes first."""
    run, largest = Run(), sizes[-1]
    budget = 1.0 if quick else 20.0
    for n in sizes:
        if raw := run.case("epoch", n, epoch_case, n, budget):
            run.lines += epoch_lines(n, raw)
    if raw := run.case("first batch", largest, first_batch_case, largest, budget):
        run.lines += first_batch_lines(largest, raw)
    ends, calls = sorted({sizes[0], largest}), 500 if quick else 2000
    if raw := run.case("observe", largest, observe_case, ends, calls):
        run.lines += observe_lines(raw)
    if raw := run.case("memory", largest, memory_case, largest):
        run.lines += memory_lines(largest, raw)
    if raw := run.case("memory of RandomSampler", largest, random_memory_case, largest):
        run.lines += random_memory_lines(largest, raw)
    beyond = {MULTINOMIAL_LIMIT + 1, *(n for n in sizes if n > MULTINOMIAL_LIMIT)}
    for n in (MULTINOMIAL_LIMIT, *sorted(beyond)):
        if raw := run.case("WeightedRandomSampler", n, weighted_limit_case, n, limit=WEIGHTED_LIMIT):
            run.lines += weighted_limit_lines(n, raw)
    return run


def described(about: dict[str, Any]) -> str:
    """Machine and versions in one paragraph."""
    machine, versions = about["machine"], about["versions"]
    return (
        f"{machine['processor']} ({machine['architecture']}, {machine['system']}), {machine['cores']} cores, "
        f"{machine['memory_gib']} GiB, {machine['torch_threads']} torch threads, load {machine['load_before']} "
        f"before the run; Python {versions['python']}, torch {versions['torch']}, numpy {versions['numpy']}, "
        f"carpediem {versions['carpediem']} (source {about['source']}). Batches of {BATCH}, q = 10, "
        f"k = {CLASSES}, pressure 100. "
        f"{about['date']}, {about['minutes']} minutes."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--sizes", type=int, nargs="+", metavar="N", help=f"numbers of samples (default: {SIZES})"
    )
    parser.add_argument(
        "--quick", action="store_true", help=f"few rounds, and {QUICK_SIZES} unless --sizes says else"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write machine, versions and every raw timing"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table for a page")
    options = parser.parse_args()
    sizes = sorted(set(options.sizes or (QUICK_SIZES if options.quick else SIZES)))
    if sizes[0] < BATCH:
        parser.error(f"--sizes must be at least one batch of {BATCH}, got {sizes[0]}")
    for path in (options.json, options.markdown):
        if path is not None and not path.parent.is_dir():
            parser.error(f"there is no folder {path.parent}")

    about: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": describe_machine(),
        "versions": describe_versions(),
        "source": source_fingerprint(lab=False),
        "quick": options.quick,
        "sizes": sizes,
    }
    start = time.perf_counter()
    run = run_all(sizes, options.quick)
    about["minutes"] = round((time.perf_counter() - start) / 60, 1)
    if source_fingerprint(lab=False) != about["source"]:
        about["source"] += ", edited during the run"

    print(described(about), plain(run.lines), sep="\n\n")
    if options.json:
        lines = [asdict(line) | {"verdict": line.verdict} for line in run.lines]
        options.json.write_text(
            json.dumps(about | {"lines": lines, "raw": run.raw}, indent=1) + "\n", encoding="utf-8"
        )
    if options.markdown:
        note = "Written by `benchmarks/bench_selection.py --markdown`; `benchmarks/README.md` says what it means."
        page = ["# What selection costs", note, described(about), markdown(run.lines)]
        options.markdown.write_text("\n\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
