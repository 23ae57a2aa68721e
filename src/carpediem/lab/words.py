"""What settings are called where people read of them."""

from __future__ import annotations

from typing import Any

_WORDS = {
    ("augmentation", "none"): "no augmentation",
    ("decay", "constant"): "a constant learning rate",
    ("decay", "step"): "a falling learning rate",
    ("draws", "independent"): "independent draws",
    ("draws", "systematic"): "systematic draws",
    ("dropout_in_testing", False): "no dropout in testing",
    ("dropout_in_testing", True): "dropout in testing too",
    ("image_size", None): "images of their own size",
    ("last_batch", "dropped"): "the last batch dropped",
    ("last_batch", "filled"): "the last batch filled up",
    ("losses", "evaluate"): "losses evaluated",
    ("losses", "observe"): "losses observed",
    ("mode", "reweight"): "loss re-weighted",
    ("mode", "sample"): "drawn by Eq. 2",
    ("nesterov", False): "plain momentum",
    ("nesterov", True): "Nesterov's momentum",
    ("pressure_lag", 0): "pressure not late",
    ("pressure_lag", 1): "pressure an epoch late",
    ("renewal", "epoch"): "renewed each epoch",
    ("renewal", "step"): "renewed each step",
    ("schedule", "constant"): "constant pressure",
    ("schedule", "decayed"): "decaying pressure",
    ("weights", None): "random first weights",
    ("window_start", "empty"): "windows that start empty",
    ("window_start", "zeros"): "windows that start with zeros",
}
_NAMES = {"warm_up": "warm-up", "weights": "first weights"}
_COUNTED = {"image_size": "images of {} px", "iterations": "{} iterations"}


def told(name: str, value: Any) -> str:
    """A setting and its value.

    >>> told("batch_size", 64), told("warm_up", 15), told("iterations", 40_000), told("last_batch", "filled")
    ('batch size 64', 'warm-up 15', '40,000 iterations', 'the last batch filled up')
    """
    if (name, value) in _WORDS:
        return _WORDS[name, value]
    if name in _COUNTED:
        words = _COUNTED[name].format(f"{value:,}" if isinstance(value, int) else in_words(value))
        return words.removesuffix("s") if value == 1 and name == "iterations" else words
    return f"{_NAMES.get(name, name.replace('_', ' '))} {in_words(value)}"


def joined(words: list[str] | tuple[str, ...]) -> str:
    """Words as a list in a sentence.

    >>> joined(["dropout 0", "window 5", "13 iterations"])
    'dropout 0, window 5 and 13 iterations'
    """
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def in_words(value: Any) -> str:
    """A setting's value as people write it.

    >>> in_words(100.0), in_words("crop-flip"), in_words(None)
    ('100', 'crop-flip', 'none')
    """
    if value is None or isinstance(value, bool):
        return {None: "none", True: "on", False: "off"}[value]
    return format(value, ".10g") if isinstance(value, int | float) else str(value)
