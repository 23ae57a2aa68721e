"""Permutations that can be looked up anywhere: nothing is kept of them but a seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

Words = NDArray[np.unsignedinteger[Any]]

_ROUNDS = 8  # with six, two numbers that differ in one bit still showed a little which


class Permutations:
    """One permutation of 0..size-1 for each size.

    Numbers of as many bits as the size needs are permuted by steps that can each be undone: multiplication by an odd
    number, addition, and folding the upper half into the lower. What lands outside of 0..size-1 is sent on until it is
    inside.

    Args:
        sizes: (m,), integers of at least 1.
        seed: any integer; permutations of several sizes differ by a key of their own, and share the steps.

    >>> Permutations(np.array([9]), seed=2)(np.arange(9), np.array([0])).tolist()
    [5, 2, 3, 1, 7, 8, 4, 6, 0]
    """

    def __init__(self, sizes: NDArray[np.int64], seed: int) -> None:
        generator, count = torch.Generator("cpu").manual_seed(seed), 2 * _ROUNDS + len(sizes)
        drawn = torch.randint(-(2**63), 2**63 - 1, (count,), generator=generator, device="cpu")
        words = drawn.numpy().view(np.uint64)
        bits = np.frexp((sizes - 1).astype(np.float64))[1].astype(np.uint64)
        mask = (np.uint64(1) << bits) - np.uint64(1)
        # Where 32 bits are enough, they take half the time.
        self._type: Any = np.uint32 if sizes.max() <= 2**31 else np.uint64
        self._sizes: Words = sizes.astype(self._type)
        self._mask: Words = mask.astype(self._type)
        self._half: Words = ((bits + np.uint64(1)) // np.uint64(2)).astype(self._type)
        self._keys: Words = (words[2 * _ROUNDS :] & mask).astype(self._type)
        self._factors: Words = (words[: 2 * _ROUNDS : 2] | np.uint64(1)).astype(self._type)
        self._summands: Words = words[1 : 2 * _ROUNDS : 2].astype(self._type)

    def __call__(self, places: NDArray[np.int64], which: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where each place goes.

        Args:
            places: (n,), each less than its size.
            which: (n,), the permutation that each is looked up in; (1,) where all are looked up in the same.
        """
        found = self._permuted(places.astype(self._type), which)
        outside = np.flatnonzero(found >= self._sizes[which])
        while len(outside):
            chosen = which[outside] if len(which) > 1 else which
            found[outside] = again = self._permuted(found[outside], chosen)
            outside = outside[again >= self._sizes[chosen]]
        return found.astype(np.int64)

    def _permuted(self, numbers: Words, which: NDArray[np.int64]) -> Words:
        """The numbers below the next power of two, permuted."""
        mask, half = self._mask[which], self._half[which]
        numbers = numbers ^ self._keys[which]
        for factor, summand in zip(self._factors, self._summands, strict=True):
            numbers *= factor
            numbers += summand
            numbers &= mask
            numbers ^= numbers >> half
        return numbers
