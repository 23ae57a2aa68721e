"""Files of weights that networks were trained to on ImageNet."""

from __future__ import annotations

from pathlib import Path

from .find import find_data

FILES = {
    "efficientnet-lite0": ("efficientnet_lite0.npz",),
    "densenet-121": ("densenet121-a639ec97.pth", "densenet121.pth"),
}
_PUBLISHED_AT = {"densenet-121": "https://download.pytorch.org/models/densenet121-a639ec97.pth"}
# How the images were normalised that they were trained on.
_NORMALISATIONS = {"efficientnet-lite0": "efficientnet", "densenet-121": "imagenet"}


def normalisation_of_weights(net: str) -> str:
    """How a network's images are normalised when it starts from its ImageNet weights.

    Raises:
        ValueError: no such weights are known.
    """
    if net not in FILES:
        raise ValueError(
            f"weights must be none for {net}, got imagenet; take {' or '.join(FILES)}, or say --weights none to start "
            "from random ones"
        )
    return _NORMALISATIONS[net]


def find_weights(net: str, data_dir: Path | None = None) -> Path:
    """The file with the ImageNet weights of a network, looked for where data is.

    Raises:
        ValueError: no such weights are known.
        DataNotFoundError: the file is not there.
    """
    normalisation_of_weights(net)

    def locate(folder: Path) -> Path | None:
        return next((folder / name for name in FILES[net] if (folder / name).is_file()), None)

    address = _PUBLISHED_AT.get(net)
    expected = " or ".join(FILES[net]) + (f", published at {address}" if address else "")
    return find_data(
        f"the file of {net}'s ImageNet weights",
        locate,
        expected=expected,
        downloadable=False,
        data_dir=data_dir,
    )
