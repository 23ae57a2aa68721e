"""What a result was obtained on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import torch


def describe_machine(device: torch.device | str = "cpu") -> dict[str, Any]:
    """Processor, device and versions; nothing that names a computer or its user.

    >>> sorted(describe_machine())
    ['machine', 'versions']
    """
    machine: dict[str, Any] = {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
    }
    if torch.device(device).type == "cuda":
        machine["device"] = torch.cuda.get_device_name(device)
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "carpediem": _carpediem_version(),
    }
    for package in ("numpy", "triton"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {"machine": machine, "versions": versions}


def _carpediem_version() -> str:
    from carpediem import __version__

    return __version__
