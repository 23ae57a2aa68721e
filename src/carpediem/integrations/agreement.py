"""What a selector and the trainer of a framework must agree on."""

from __future__ import annotations

from typing import Any

from carpediem.selectors.base import Selector


def refuse_another_length(selector: Selector, dataset: Any) -> None:
    """Refuse a selector of another number of samples than the data set has."""
    if len(dataset) != selector.num_samples:
        raise ValueError(
            f"the selector's num_samples must be the length of the data set = {len(dataset)}, got "
            f"{selector.num_samples}; build the selector with num_samples={len(dataset)}"
        )
