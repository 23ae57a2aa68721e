"""Small sets of runs for the paper's claims."""

from dataclasses import replace

from lab.record_makers import run

DENSENET = {"net": "densenet-40-12"}


def runs(method, errors, *, seeds=(0, 1, 2), fields=None, epochs=20, **config):
    """One run a seed, 20 epochs long and with a warm-up of ten, whose best errors are those given.

    Args:
        fields: of each epoch, by name: what it is in an epoch of a seed.
    """
    made = []
    for seed, best in zip(seeds, errors, strict=True):
        one = run(method, seed, [best + epochs - n for n in range(1, epochs + 1)], **config)
        told = [
            epoch | {name: of(epoch["epoch"], seed) for name, of in (fields or {}).items()}
            for epoch in one.epochs
        ]
        made.append(replace(one, epochs=told))
    return made
