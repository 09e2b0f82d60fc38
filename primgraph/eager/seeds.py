"""Random numbers of eager code: keys for operators, generators for initial parameters."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import final

import numpy as np

from primgraph.base.locks import make_lock
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.node import Node, array_node
from primgraph.eager.tensor import Tensor
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.types import INT64, TensorType


@final
class _SeedStreams:
    """Streams from one seed: a sequence of keys, and a generator for each parameter."""

    def __init__(self, seed: int) -> None:
        self._seed = seed % 2**64
        self._keys: Iterator[int] | None = None
        self._parameters = count(2**32)

    def _generator(self, stream: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=np.array((self._seed, stream), np.uint64)))

    def next_key(self) -> int:
        # Created on first use: loading NumPy's generators is slow.
        if self._keys is None:
            with _LOCK:
                self._keys = self._keys or self._first_run_keys()
        return next(self._keys)

    def _first_run_keys(self) -> Iterator[int]:
        """Yield the keys of the first run of a program with this seed."""
        first = self._generator(zlib.crc32(b"random_counter")).uniform(0.0, 2.0**62)
        return count(int(first) + 1)

    def reserve_generator(self) -> Callable[[], np.random.Generator]:
        return partial(self._generator, next(self._parameters))


_KEY = TensorType((), INT64)
_LOCK = make_lock()
_seeded: list[_SeedStreams] = [_SeedStreams(0)]


@check_arguments
def seed(seed: int) -> None:
    """Set the seed of eager random numbers: initial values of layers, and dropout masks.

    It is 0 at the start, so that a script gives the same numbers each time. All threads draw from
    one stream. Programs have their own `random_seed`. Raises `ArgumentError` for what is no
    integer.

    >>> pg.seed(0)
    >>> layer = pg.nn.Linear(2, 1)
    """
    _seeded[0] = _SeedStreams(int(seed))


def next_key() -> Tensor:
    """Return a fresh integer key for random operators; it is data and not in the cache key.

    In a compiled function the key is fresh at each call.
    """
    if adopting.get() is not None:
        return _Keys()
    return Tensor(array_node(np.array(_seeded[0].next_key(), np.int64)))


@final
class _Keys(Tensor):
    """Key tensor that yields a fresh key each time it is read."""

    __slots__ = ()

    family = Tensor

    def __init__(self) -> None:
        super().__init__(array_node(np.zeros((), np.int64)))

    @property
    def type(self) -> TensorType:
        return _KEY

    @property
    def node(self) -> Node:
        return array_node(np.array(_seeded[0].next_key(), np.int64))

    @node.setter
    def node(self, node: Node) -> None:
        """Ignore the first key, which is never read."""


def reserve_generator() -> Callable[[], np.random.Generator]:
    """Return a function that returns the generator of the next parameter's initial value."""
    return _seeded[0].reserve_generator()
