"""What a result was obtained on."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
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
        "source": source_fingerprint(),
    }
    for package in ("numpy", "triton"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    if (commit := _commit()) is not None:
        versions["commit"] = commit
    return {"machine": machine, "versions": versions}


def source_fingerprint(*, lab: bool = True) -> str:
    """A hash of the package's own files: two results of one fingerprint come of the same code.

    Args:
        lab: whether the lab's files count too.
    """
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if lab or "lab" not in path.relative_to(root).parts:
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def _commit() -> str | None:
    """The commit of the checkout that this package runs from, "-dirty" behind it where files were changed since."""
    package = Path(__file__).parents[1]
    root = package.parents[1]
    # An installed package may lie inside of somebody else's checkout.
    if not (root / ".git").exists() or root / "src" / "carpediem" != package:
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _carpediem_version() -> str:
    from carpediem import __version__

    return __version__
