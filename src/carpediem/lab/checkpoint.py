"""Checkpoints that are whole or not there."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import torch

from carpediem.lab.atomic import write_whole

MAGIC = b"carpediem checkpoint 1\n"


class DamagedCheckpoint(ValueError):
    """A file that is no checkpoint, or not all of one."""


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Writes the state; the checkpoint that was there becomes the previous one."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    payload = buffer.getvalue()
    content = MAGIC + hashlib.sha256(payload).hexdigest().encode() + b"\n" + payload
    if path.exists():
        path.replace(previous(path))
    write_whole(path, content)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """The state in a file.

    Raises:
        DamagedCheckpoint: names the file.
    """
    content = path.read_bytes()
    head = len(MAGIC) + 65
    if not content.startswith(MAGIC) or len(content) <= head:
        raise DamagedCheckpoint(f"{path} is not a whole checkpoint")
    if hashlib.sha256(content[head:]).hexdigest().encode() != content[len(MAGIC) : head - 1]:
        raise DamagedCheckpoint(f"{path} is damaged: its content differs from its checksum")
    state: dict[str, Any] = torch.load(io.BytesIO(content[head:]), map_location="cpu", weights_only=True)
    return state


def latest_checkpoint(path: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """The newest undamaged state, or None, and what is wrong with each file that was passed over."""
    complaints: list[str] = []
    for candidate in (path, previous(path)):
        if candidate.exists():
            try:
                return load_checkpoint(candidate), complaints
            except DamagedCheckpoint as error:
                complaints.append(str(error))
    return None, complaints


def previous(path: Path) -> Path:
    """Where the checkpoint before the newest lies."""
    return path.with_name(path.stem + ".previous" + path.suffix)
