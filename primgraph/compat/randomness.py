"""Random arrays of eager code and of traced functions, from a generator with a state of its own.

Eager arrays come from NumPy's generators. In a traced function arrays are operators of a key that
is new at each call of the compiled function.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from primgraph import operators as pg
from primgraph import random
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.seeds import SeedStreams, seeded
from primgraph.errors import ArgumentError, MissingMethodError
from primgraph.ir.types import DType

Array = npt.NDArray[Any]


class Generator:
    """Source of random numbers with a state of its own."""

    def __init__(self) -> None:
        self._streams = SeedStreams(67280421310721)

    def manual_seed(self, seed: int) -> Self:
        """Begin again with that seed."""
        self._streams.restart(int(seed))
        return self

    def initial_seed(self) -> int:
        """Return the seed that was set last."""
        return self._streams.seed

    def seed(self) -> int:
        """Begin again with a seed from the operating system, and return it."""
        self._streams.restart(int.from_bytes(os.urandom(8), "little"))
        return self._streams.seed

    def set_state(self, new_state: Any) -> None:
        """Go back to a state that `get_state` returned."""
        self._streams.set_state(np.asarray(new_state))

    def clone_state(self) -> Self:
        """Return a generator with the same state."""
        found = type(self)()
        found._streams.set_state(self._streams.state())
        return found


# How random numbers are drawn for the samples of a batch, which are computed together.
batch_randomness: ContextVar[str] = ContextVar("primgraph_batch_randomness", default="same")


def streams_of(generator: Any) -> SeedStreams:
    """Return the streams of a generator, by default of the global one.

    Raises `ArgumentError` within `vmap`, unless its samples share their random numbers.
    """
    if batch_randomness.get() == "error":
        raise ArgumentError(
            "vmap: called random operation while in randomness error mode. Please either use the "
            "'same' or 'different' randomness flags on vmap or perform the randomness operation "
            "out of vmap"
        )
    if batch_randomness.get() == "different":
        raise ArgumentError(
            "vmap: randomness='different' draws no numbers here",
            hint="draw them for all samples before, and pass them with in_dims=0",
        )
    if generator is None:
        return seeded
    if not isinstance(generator, Generator):
        raise ArgumentError(f"generator is a Generator, not {generator!r:.60}")
    return generator._streams


def draw_uniform(
    streams: SeedStreams, shape: Sequence[int], dtype: DType, low: float = 0.0, high: float = 1.0
) -> Any:
    """Return uniform numbers from `low` up to but without `high`."""
    if adopting.get() is not None:
        return pg.uniform(streams.key_tensor(), tuple(shape), low, high, dtype)
    found: Array = streams.generator.random(shape, _drawn(dtype))
    if (low, high) != (0.0, 1.0):
        found = found * (high - low) + low
    if dtype.itemsize == 2:
        # Rounding does not reach the upper bound.
        return np.minimum(found, np.nextafter(dtype.type(high), dtype.type(low))).astype(dtype)
    return found.astype(dtype, copy=False)


def draw_normal(streams: SeedStreams, shape: Sequence[int], dtype: DType) -> Any:
    """Return normal numbers of mean 0 and variance 1."""
    if adopting.get() is not None:
        return pg.normal(streams.key_tensor(), tuple(shape), dtype)
    return streams.generator.standard_normal(shape, _drawn(dtype)).astype(dtype, copy=False)


def draw_integers(
    streams: SeedStreams, shape: Sequence[int], low: int, high: int, dtype: DType
) -> Any:
    """Return integers from `low` up to but without `high`.

    Raises `ArgumentError` for an empty range.
    """
    if low >= high:
        raise ArgumentError(f"random integers from {low} up to but without {high}: there are none")
    if adopting.get() is not None:
        return pg.astype(random.randint(streams.key_tensor(), tuple(shape), low, high), dtype)
    return streams.generator.integers(low, high, shape).astype(dtype, copy=False)


def draw_permutation(streams: SeedStreams, n: int, dtype: DType) -> Any:
    """Return the integers below `n` in random order."""
    if adopting.get() is not None:
        return pg.astype(random.permutation(streams.key_tensor(), int(n)), dtype)
    return streams.generator.permutation(n).astype(dtype, copy=False)


def draw_categories(streams: SeedStreams, weights: Any, count: int, replacement: bool) -> Any:
    """Return `count` indices along the last axis of `weights`, with probabilities like these."""
    return gumbel_categories(streams.key_tensor(), weights, count, replacement)


def gumbel_categories(key: Any, weights: Any, count: int, replacement: bool) -> Any:
    """Return `count` indices along the last axis of `weights`, with probabilities like these.

    They are the largest of logarithms of weights with Gumbel noise added, drawn once for each
    index, or once for all where none is drawn twice.
    """
    lead, width = tuple(weights.shape[:-1]), weights.shape[-1]
    logits = pg.log(pg.astype(weights, "float64"))
    shape = (*lead, count, width) if replacement else (*lead, width)
    noise = random.gumbel(key, shape, "float64")
    if replacement:
        return pg.argmax(pg.expand_dims(logits, -2) + noise, -1)
    return pg.argsort(-(logits + noise), -1)[..., :count]


def _drawn(dtype: DType) -> Any:
    """Return the dtype in which NumPy draws floats."""
    if dtype.kind != "f":
        raise MissingMethodError(f"random numbers of {dtype} are not implemented, only of floats")
    return np.float32 if dtype.itemsize <= 4 else np.float64
