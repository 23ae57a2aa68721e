"""Images a second of the lab's engine on one CUDA device, for several numbers of runs side by side.

    python benchmarks/bench_training.py --net resnet-50 --runs 1 2 4 8 --profile

Every run is a replayed step of the recipe with Recency Bias, on images of noise. `--profile` adds what one step of one
run spends its time on, kernel by kernel.
"""

from __future__ import annotations

import argparse
import time

import torch

from carpediem.lab.capture import Track
from carpediem.lab.config import RunConfig
from carpediem.lab.data import ImageData
from carpediem.lab.learner import Learner
from carpediem.lab.methods import build_selector
from carpediem.lab.network import Network
from carpediem.lab.recipes import RECIPES, recipe
from carpediem.lab.source import place

REPEATS = 3


def noise(samples: int) -> ImageData:
    """Random images in ten classes."""
    random = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (samples, 3, 32, 32), generator=random, dtype=torch.uint8)
    labels = torch.arange(samples) % 10
    return ImageData("noise", images, labels, images[:1000], labels[:1000], tuple("0123456789"))


def images_a_second(tracks: list[Track], steps: int) -> float:
    """The best of a few measurements of all tracks together."""
    best = 0.0
    for _ in range(REPEATS):
        for track in tracks:
            track.learner.rewind()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(steps):
            for track in tracks:
                with track.beside():
                    track.step()
        torch.cuda.synchronize()
        images = steps * sum(track.learner.config.batch_size for track in tracks)
        best = max(best, images / (time.perf_counter() - begin))
    return best


def print_kernels(track: Track, steps: int = 3, most: int = 60) -> None:
    """What the device does in a step, the longest first."""
    from torch.profiler import ProfilerActivity, profile

    track.learner.rewind()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as recorded:
        for _ in range(steps):
            track.step()
        torch.cuda.synchronize()
    events = sorted(recorded.key_averages(), key=lambda event: -event.self_device_time_total)
    for event in events[:most]:
        print(
            f"{event.self_device_time_total / steps:9.1f} µs {event.count / steps:6.1f} × {event.key[:100]}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--net", default="resnet-50")
    parser.add_argument("--recipe", default="paper", choices=sorted(RECIPES))
    parser.add_argument("--runs", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        parser.exit(2, "error: this benchmark needs a CUDA device, and torch sees none\n")
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    torch.set_float32_matmul_precision("high")
    settings = recipe(options.recipe)
    config = RunConfig.from_dict(
        {
            **settings,
            "recipe": options.recipe,
            "data": "noise",
            "data_fingerprint": "",
            "net": options.net,
            "net_fingerprint": "",
            "optimizer": "momentum",
            "precision": "bf16",
            "seed": 0,
            "method": "recency",
        }
    )
    source = place(noise(50_000), config.normalisation, device)
    network = Network(config, source.num_classes, 3, device)
    tracks: list[Track] = []
    begin = time.perf_counter()
    for count in sorted(options.runs):
        while len(tracks) < count:
            own = config.with_(seed=len(tracks))
            selector = build_selector(own, source.num_samples, source.num_classes, device)
            tracks.append(Track(Learner(own, network, source, [selector])))
            tracks[-1].learner.begin_epoch()
            tracks[-1].learner.set_rate()
        ready = time.perf_counter() - begin
        speed = images_a_second(tracks[:count], min(options.steps, tracks[0].learner.steps))
        print(
            f"{options.net}, {count:2d} runs: {speed:9,.0f} images/s (ready after {ready:.0f} s)", flush=True
        )
    if options.profile:
        print_kernels(tracks[0])


if __name__ == "__main__":
    main()
