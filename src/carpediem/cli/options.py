"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from carpediem.cli.config_file import config_option

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="TOML file with options of this command, such as iterations = 200.",
        callback=config_option,
        is_eager=True,
        exists=True,
        dir_okay=False,
    ),
]
Data = Annotated[
    str,
    typer.Option(
        help="digits, mnist, cifar10, cifar100, mit67, food100, flowers-102, a folder of images, or module:function."
    ),
]
Net = Annotated[
    str,
    typer.Option(
        help="small-cnn, resnet-50 and densenet-40-12 (for small images), efficientnet-lite0, densenet-121, or "
        "module:function."
    ),
]
Recipe = Annotated[
    str | None,
    typer.Option(
        help="paper, modern, fine-tuning, released (the authors' code) or demo. [default: reproduce: the study's; else "
        "demo for digits, modern for all other data]"
    ),
]
Optimizer = Annotated[
    str | None, typer.Option(help="momentum or sgd. [default: reproduce: the study's; else momentum]")
]
Epochs = Annotated[
    int | None, typer.Option(help="How long to train. [default: as long as the recipe]", min=1)
]
Iterations = Annotated[int | None, typer.Option(help="How long to train, in steps.", min=1)]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for the runs; the same folder continues them. [default: runs/NAME]"),
]
DataDir = Annotated[
    Path | None,
    typer.Option(help="Where data is looked for. [default: $CARPEDIEM_DATA, else the user's cache]"),
]
Device = Annotated[str | None, typer.Option(help="cpu or cuda. [default: cuda where there is one]")]
SideBySide = Annotated[
    int | None, typer.Option(help="Runs that train at once. [default: 1 on cpu, 4 on cuda]", min=1)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines and nothing else.")]
TensorBoard = Annotated[
    bool, typer.Option("--tensorboard", help="Also write TensorBoard event files beside each run.")
]
TestDropout = Annotated[
    bool,
    typer.Option(
        "--test-dropout",
        help="Also test with dropout left on, as the paper's released ResNet does; tables --stages shows both.",
    ),
]
TrainingLoss = Annotated[
    int | None,
    typer.Option(
        "--training-loss-every",
        metavar="M",
        help="Record the loss and error over the whole training set after every M-th epoch and the last; 0: never. It "
        "takes a test's time for as many images, outside the seconds of training. [default: reproduce: 1; else 0]",
        min=0,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Train nothing; print what would be trained, with --json as data."),
]
BatchSize = Annotated[int | None, typer.Option(help="[default: the recipe's]", min=1)]
Rate = Annotated[
    float | None,
    typer.Option("--learning-rate", "--lr", help="Learning rate at the start. [default: the recipe's]"),
]
Weights = Annotated[
    str | None,
    typer.Option(
        help="imagenet (efficientnet-lite0, densenet-121; the file is looked for with the data) or none. "
        "[default: the recipe's]"
    ),
]
Dropout = Annotated[float | None, typer.Option(help="[default: the recipe's]")]
DropoutInTesting = Annotated[
    bool | None,
    typer.Option(
        "--dropout-in-testing/--no-dropout-in-testing",
        help="Keep dropout at work in every test, as the authors' ResNet does. [default: the recipe's]",
    ),
]
Augmentation = Annotated[
    str | None,
    typer.Option(
        help="none, crop-flip, flip-jitter, or released-resnet and released-densenet (one random number an image; with "
        "-independent behind it one an operation). [default: the recipe's]"
    ),
]
Normalisation = Annotated[
    str | None,
    typer.Option(
        help="per-image, imagenet, efficientnet, unit or per-image-unit. [default: the recipe's, else what the "
        "weights need]"
    ),
]
Precision = Annotated[
    str | None, typer.Option(help="float32 or bf16. [default: bf16 on cuda, float32 on cpu]")
]
Momentum = Annotated[float | None, typer.Option(help="Of the momentum optimizer. [default: the recipe's]")]
Nesterov = Annotated[
    bool | None, typer.Option("--nesterov/--no-nesterov", help="[default: the recipe's]", show_default=False)
]
WeightDecay = Annotated[float | None, typer.Option(help="[default: the recipe's]")]
Decay = Annotated[
    str | None,
    typer.Option(help="step (a tenth at 50% and at 75%) or constant learning rate. [default: the recipe's]"),
]
LastBatch = Annotated[
    str | None,
    typer.Option(
        help="dropped or filled: what becomes of an epoch's last batch that is not whole. [default: the recipe's]"
    ),
]
ImageSize = Annotated[
    int | None,
    typer.Option(
        help="Side to which image files are brought, in pixels. [default: the recipe's, else 256 for mit67 and "
        "food100, 224 for others]",
        min=8,
    ),
]
WarmUp = Annotated[
    int | None, typer.Option(help="Uniform epochs at the start. [default: the recipe's, 10]", min=0)
]
Window = Annotated[
    int | None,
    typer.Option(
        help="Predictions that Recency Bias keeps, from 2 (one alone is never uncertain) to 32; the warm-up must be as "
        "long. [default: the recipe's, 10]",
        min=1,
    ),
]
Pressure = Annotated[
    float | None, typer.Option(help="Selection pressure at the start. [default: the recipe's, 100]")
]
Schedule = Annotated[
    str | None,
    typer.Option(
        help="decayed or constant pressure, of Online Batch and Recency Bias. [default: the recipe's]"
    ),
]
DrawsOption = Annotated[
    str | None, typer.Option("--draws", help="independent or systematic. [default: the recipe's]")
]
Losses = Annotated[
    str | None,
    typer.Option(
        help="observe or evaluate: where Online Batch takes its losses from. [default: the recipe's]"
    ),
]
PressureLag = Annotated[
    int | None,
    typer.Option(
        help="1: Online Batch's pressure comes an epoch late, as in the authors' code. [default: the recipe's]"
    ),
]
WindowStart = Annotated[
    str | None,
    typer.Option(help="empty or zeros: what Recency Bias's windows begin with. [default: the recipe's]"),
]
Renewal = Annotated[
    str | None,
    typer.Option(
        help="epoch or step: how often Active Bias's loss weights are renewed. [default: the recipe's]"
    ),
]
Smoothness = Annotated[
    float | None,
    typer.Option(help="What Active Bias adds to every sample's deviation. [default: 0.02]"),
]
Mode = Annotated[
    str | None, typer.Option(help="sample or reweight: what Active Bias does. [default: the recipe's]")
]
Methods = Annotated[
    str, typer.Option(help="Comma-separated; random-shuffle and the like say how a method draws.")
]
Folders = Annotated[
    list[Path], typer.Argument(metavar="DIR...", help="Folders of studies or of published results.")
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard", metavar="I/N", help="Train the I-th of N shares of the study alone, as one of a job array."
    ),
]
Ray = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Train over a Ray cluster: auto, HOST:PORT, or local (a new one on this machine) if no address is given.",
    ),
]
Seeds = Annotated[int, typer.Option(help="How many repeats, with seeds 0, 1, …", min=1)]
FirstSeed = Annotated[
    int,
    typer.Option(help="Where the seeds begin, to add repeats to those that there are.", min=0),
]


def run_settings(
    recipe: Recipe = None,
    optimizer: Optimizer = None,
    epochs: Epochs = None,
    iterations: Iterations = None,
    batch_size: BatchSize = None,
    learning_rate: Rate = None,
    decay: Decay = None,
    momentum: Momentum = None,
    nesterov: Nesterov = None,
    weight_decay: WeightDecay = None,
    dropout: Dropout = None,
    dropout_in_testing: DropoutInTesting = None,
    augmentation: Augmentation = None,
    normalisation: Normalisation = None,
    precision: Precision = None,
    weights: Weights = None,
    image_size: ImageSize = None,
    warm_up: WarmUp = None,
    window: Window = None,
    pressure: Pressure = None,
    schedule: Schedule = None,
    window_start: WindowStart = None,
    draws: DrawsOption = None,
    last_batch: LastBatch = None,
    losses: Losses = None,
    pressure_lag: PressureLag = None,
    smoothness: Smoothness = None,
    mode: Mode = None,
    renewal: Renewal = None,
) -> None:
    """The options of `compare`, `train` and `reproduce` that say how a run is trained."""
