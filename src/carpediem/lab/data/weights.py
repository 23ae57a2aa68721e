"""Files of weights that networks were trained to on ImageNet."""

from __future__ import annotations

from pathlib import Path

from .find import find_data

FILES = {
    "efficientnet-lite0": ("efficientnet_lite0.npz",),
    "densenet-121": ("densenet121-a639ec97.pth", "densenet121.pth"),
}
# How the images were normalised that they were trained on.
NORMALISATIONS = {"efficientnet-lite0": "efficientnet", "densenet-121": "imagenet"}


def find_weights(net: str, data_dir: Path | None = None) -> Path:
    """The file with the ImageNet weights of a network, looked for where data is.

    Raises:
        ValueError: no such file is known for the network.
        DataNotFoundError: the file is not there.
    """
    if net not in FILES:
        raise ValueError(f"weights='imagenet' goes with {', '.join(FILES)}, got the network {net!r}")

    def locate(folder: Path) -> Path | None:
        return next((folder / name for name in FILES[net] if (folder / name).is_file()), None)

    expected = " or ".join(FILES[net])
    return find_data(
        f"the file of {net}'s ImageNet weights",
        locate,
        expected=expected,
        downloadable=False,
        data_dir=data_dir,
    )
