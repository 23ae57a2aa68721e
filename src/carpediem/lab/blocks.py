"""The rows of a table that belong together: the methods of one network, data set and optimizer."""

from __future__ import annotations

from dataclasses import dataclass, field

from carpediem.lab.compared_cells import setting_key
from carpediem.lab.results import Cell
from carpediem.lab.titles import setting_parts
from carpediem.lab.versions import Version

Key = tuple[str, str, str]  # network, data, optimizer


@dataclass
class Block:
    """The cells of one setting.

    Args:
        printed_key: where the paper's numbers are found.
        beside: Random Batch that draws otherwise, to compare with too.
    """

    key: Key
    printed_key: Key
    cells: list[Cell] = field(default_factory=list)
    beside: list[Cell] = field(default_factory=list)

    def of(self, method: str) -> Cell | None:
        """The cell of a method, or None where it was not run."""
        return next((cell for cell in self.cells if cell.method == method), None)

    @property
    def labels(self) -> tuple[str, str, str]:
        """Data, network and optimizer, each as the paper writes it."""
        return setting_parts(dict(zip(("net", "data", "optimizer"), self.key, strict=True)))


def blocks(version: Version, *, whole: bool) -> list[Block]:
    """One for each setting of a version, in the paper's order.

    Args:
        whole: also those of the paper of which nothing has been run.
    """
    shape = version.shape
    own = [(version.net, data, optimizer) for optimizer in shape.optimizers for data in shape.datasets]
    found = {key: Block(key, shape.printed_key(key)) for key in own}
    for cell in version.cells:
        key = setting_key(cell)
        found.setdefault(key, Block(key, shape.printed_key(key))).cells.append(cell)
    for cell in version.beside:
        found[setting_key(cell)].beside.append(cell)
    return [block for block in found.values() if whole or block.cells]
