"""Images a second of the lab's engine on one CUDA device, beside plain PyTorch, and what selection costs there.

    python benchmarks/bench_training.py [--net NET ...] [--runs N ...] [--only CASE ...] [--profile] [--json FILE]

Every engine runs the same step of the recipe on images of noise. Cases: `eager` (plain PyTorch with a DataLoader, and
with the data on the device), `captured` (the step as a CUDA graph of plain layers), `compiled` (that, compiled),
`runs` (as `carpediem` trains, several runs at once), `methods` (whole epochs with each selector beside Random Batch).
Rates are the best of a few rounds. `--profile` adds what one step of one run spends its time on, kernel by kernel.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import torch
from machine import describe_versions
from training_ceilings import demand_of_a_step, measured_ceilings
from training_eager import eager_step, from_device, from_loader
from training_table import bars, fastest_eager, share_line

from carpediem.lab.capture import Track
from carpediem.lab.config import RunConfig
from carpediem.lab.data import ImageData
from carpediem.lab.kernel_use import without_kernels
from carpediem.lab.learner import Learner
from carpediem.lab.machine import describe_machine, source_fingerprint
from carpediem.lab.methods import build_selector
from carpediem.lab.network import Network
from carpediem.lab.recipes import RECIPES, recipe
from carpediem.lab.source import Resident, place

CASES = ("eager", "captured", "compiled", "runs", "methods")
NETS = ("resnet-50", "densenet-40-12")
ROUNDS = 2
METHODS = ("random", "recency", "online", "active")


def noise(samples: int) -> ImageData:
    """Random images in ten classes."""
    random = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (samples, 3, 32, 32), generator=random, dtype=torch.uint8)
    labels = torch.arange(samples) % 10
    return ImageData("noise", images, labels, images[:1000], labels[:1000], tuple("0123456789"))


class Bench:
    """Measures one network; what it finds is printed as it comes and kept in `found`."""

    def __init__(self, config: RunConfig, data: ImageData, device: torch.device, steps: int) -> None:
        self.config, self.data, self.device, self.steps = config, data, device, steps
        self.source = cast(Resident, place(data, config.normalisation, device))
        self.found: dict[str, Any] = {}

    def say(self, what: str, rate: float, note: str = "") -> None:
        self.found[what] = rate
        best_eager = fastest_eager(self.found)
        ratio = f"{rate / best_eager:5.1f} × eager" if best_eager else ""
        print(f"{self.config.net:15} {what:34} {rate:9,.0f} images/s {ratio} {note}", flush=True)

    def eager(self) -> None:
        """Plain PyTorch: with a DataLoader and with resident data, in float32 and under autocast."""
        batch = self.config.batch_size
        for name, autocast in (("float32", False), ("bf16 autocast", True)):
            for where in ("DataLoader", "resident"):
                batches = (
                    from_loader(self.data, batch, self.device)
                    if where == "DataLoader"
                    else from_device(self.source, batch)
                )
                step = eager_step(self.config, self.source, batches, autocast=autocast)
                self.say(f"eager, {where}, {name}", self._rate([step], self.steps // 3))

    def captured(self) -> None:
        with without_kernels():
            self._one("captured", compiled=False)

    def compiled(self) -> None:
        with without_kernels():
            self._one("captured and compiled", compiled=True)

    def _one(self, what: str, *, compiled: bool) -> None:
        begin = time.perf_counter()
        track = self._track(self._network(compiled), "recency", 0)
        note = f"(ready after {time.perf_counter() - begin:.0f} s)"
        self.say(what, self._rate([_stepping(track)], self.steps), note)

    def runs(self, counts: list[int], *, profile: bool) -> None:
        """As a study trains: several runs at once, each on a track of its own."""
        begin = time.perf_counter()
        tracks: list[Track] = []
        network = self._network(None)
        for count in sorted(counts):
            while len(tracks) < count:
                tracks.append(self._track(network, "recency", len(tracks)))
            ready = time.perf_counter() - begin
            rate = self._rate([_stepping(track) for track in tracks], self.steps)
            self.say(f"{count} runs at once" if count > 1 else "1 run", rate, f"(ready after {ready:.0f} s)")
            self.found[f"seconds until {count} runs were ready"] = ready
            begin += time.perf_counter() - begin - ready  # measuring is no part of it
        if profile:
            print_kernels(tracks[0])

    def methods(self) -> None:
        """Seconds of an epoch, drawing and refresh included, for each method in turn beside Random Batch."""
        network = self._network(None)
        tracks = {method: self._track(network, method, 0) for method in METHODS}
        seconds: dict[str, list[float]] = {method: [] for method in METHODS}
        for _ in range(ROUNDS + 1):
            for method, track in tracks.items():
                torch.cuda.synchronize()
                begin = time.perf_counter()
                with track.beside():
                    for _ in range(track.learner.begin_epoch()):
                        track.step()
                torch.cuda.synchronize()
                seconds[method].append(time.perf_counter() - begin)
        least = {method: min(found[1:]) for method, found in seconds.items()}
        for method, found in least.items():
            ratio = found / least["random"]
            self.found[f"epoch with {method}, seconds"] = found
            self.found[f"epoch with {method}, ratio"] = ratio
            print(
                f"{self.config.net:15} epoch with {method:23} {found:9.3f} s        {ratio:6.4f} × random",
                flush=True,
            )

    def _network(self, compiled: bool | None) -> Network:
        return Network(self.config, self.source.num_classes, 3, self.device, compiled=compiled)

    def _track(self, network: Network, method: str, seed: int) -> Track:
        own = replace(self.config, seed=seed, method=method)
        selector = build_selector(own, self.source.num_samples, self.source.num_classes, self.device)
        track = Track(Learner(own, network, self.source, [selector]))
        # In the middle of the selection, where a method costs what it costs.
        track.learner.sampler.set_epoch(own.epochs(self.source.num_samples) // 2)
        with track.beside():
            track.learner.begin_epoch()
            track.learner.set_rate()
        return track

    def _rate(self, steps: list[Callable[[], None]], count: int) -> float:
        """Images a second of all of them in turns: the best of a few rounds."""
        best = 0.0
        for _ in range(ROUNDS):
            for step in steps:
                step()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(count):
                for step in steps:
                    step()
            torch.cuda.synchronize()
            images = count * len(steps) * self.config.batch_size
            best = max(best, images / (time.perf_counter() - begin))
        return best


def _stepping(track: Track) -> Callable[[], None]:
    done = 0

    def step() -> None:
        nonlocal done
        with track.beside():
            if done % track.learner.steps == 0:
                track.learner.rewind()
            track.step()
        done += 1

    return step


def print_kernels(track: Track, steps: int = 3, most: int = 60) -> None:
    """What the device does in a step, the longest first."""
    from torch.profiler import ProfilerActivity, profile

    track.learner.rewind()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as recorded:
        for _ in range(steps):
            track.step()
        torch.cuda.synchronize()
    events = sorted(recorded.key_averages(), key=lambda event: -event.self_device_time_total)
    total = sum(event.self_device_time_total for event in events) / steps
    print(f"{total:9.1f} µs of kernels a step, {sum(event.count for event in events) / steps:.0f} of them")
    for event in events[:most]:
        print(
            f"{event.self_device_time_total / steps:9.1f} µs {event.count / steps:6.1f} × {event.key[:100]}"
        )


def add_shares(net: str, found: dict[str, Any], device: torch.device) -> None:
    """Measures what the chip can do at most, and says how much of it the fastest case used."""
    rates = [v for k, v in found.items() if k.endswith("runs at once") or k == "1 run"]
    if rates:
        ceilings, demand = measured_ceilings(device), demand_of_a_step(net)
        found |= {"matrix rate": ceilings.matrix_rate, "bandwidth": ceilings.bandwidth}
        found["operations a second"] = max(rates) * demand.operations
        found["bytes a second"] = max(rates) * demand.bytes
        print(f"{net:15} {share_line(found)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--net", nargs="+", default=list(NETS))
    parser.add_argument("--recipe", default="paper", choices=sorted(RECIPES))
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 2, 4, 8, 12])
    parser.add_argument("--only", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write machine, versions and what was found, beside what FILE holds of the same source and machine",
    )
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(2, "error: this benchmark needs a CUDA device, and torch sees none\n")
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    data = noise(50_000)
    about: dict[str, Any] = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": describe_machine(device),
        "versions": describe_versions(),
        "source": source_fingerprint(),
        "recipe": options.recipe,
        "found": {},
    }
    if options.json and options.json.exists():
        before = json.loads(options.json.read_text(encoding="utf-8"))
        if _same(before) == _same(about):
            about["found"] = before["found"]
    for net in options.net:
        bench = Bench(_config(options.recipe, net), data, device, options.steps)
        for case in options.only:
            if case == "runs":
                bench.runs(options.runs, profile=options.profile)
            else:
                getattr(bench, case)()
        found = about["found"].get(net, {}) | bench.found
        add_shares(net, found, device)
        for what, value, bar, verdict in bars(net, found):
            print(f"{net:15} {what:34} {value:>12}   {bar:9} {verdict}")
        about["found"][net] = found
        if options.json:
            options.json.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def _same(about: dict[str, Any]) -> list[Any]:
    """What must be the same for two parts of one measurement. Not the commit: writing the file already changes that."""
    machine = about.get("machine", {})
    versions = {name: value for name, value in machine.get("versions", {}).items() if name != "commit"}
    return [machine.get("machine"), versions, *(about.get(name) for name in ("versions", "source", "recipe"))]


def _config(recipe_name: str, net: str) -> RunConfig:
    return RunConfig.from_dict(
        {
            **recipe(recipe_name),
            "recipe": recipe_name,
            "data": "noise",
            "data_fingerprint": "",
            "net": net,
            "net_fingerprint": "",
            "optimizer": "momentum",
            "precision": "bf16",
            "seed": 0,
            "method": "recency",
        }
    )


if __name__ == "__main__":
    main()
