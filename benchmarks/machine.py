"""What a measurement was made on: hardware and versions, and nothing that names the machine or its user."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import torch

import carpediem

Description = dict[str, str | int | float]


def describe_machine() -> Description:
    """Processor, cores, memory and how busy the machine was before the run."""
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "memory_gib": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1),
        "torch_threads": torch.get_num_threads(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def describe_versions() -> dict[str, str]:
    """Versions of all that is measured."""
    packages = {name: version(name) for name in ("torch", "numpy")}
    return {"python": platform.python_version(), **packages, "carpediem": carpediem.__version__}


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or "unknown"
