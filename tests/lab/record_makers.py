"""Records of runs that never ran, for tables."""

import hashlib

from carpediem.lab.recipes import recipe_of
from carpediem.lab.records import RunRecord

SETTING = {"recipe": "paper", "data": "cifar10", "net": "resnet-50", "optimizer": "momentum"}


def run(method, seed, errors, *, done=True, seconds=10.0, fields=None, **config):
    """A run with these test errors, epoch by epoch.

    Args:
        fields: what each epoch's record holds besides: one for all of them, or a list.
    """
    chosen = SETTING | config | {"method": method, "seed": seed}
    config = recipe_of(chosen) | chosen
    more = fields if isinstance(fields, list) else [fields or {}] * len(errors)
    epochs = [
        {
            "epoch": n,
            "iteration": 5 * (n + 1),
            "train_loss": 1 / (n + 1),
            "test_error": e,
            "seconds": seconds * (n + 1),
        }
        | more[n]
        for n, e in enumerate(errors)
    ]
    name = hashlib.sha256(str(config).encode()).hexdigest()[:12]
    return RunRecord(name, config, epochs, {"finished": "2026-01-01T00:00:00+00:00"} if done else None)


def study(errors, **config):
    """Runs of each method whose best errors, seed by seed, are those given."""
    return [
        run(method, seed, [best + 3, best, best + 1], **config)
        for method, bests in errors.items()
        for seed, best in enumerate(bests)
    ]
