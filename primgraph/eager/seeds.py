"""Random numbers of eager code: keys for operators, generators for initial parameters."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt

from primgraph.base.locks import make_lock
from primgraph.eager.inplace.adoption import adopting
from primgraph.eager.node import Node, array_node
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.types import INT64, TensorType

_KEY = TensorType((), INT64)
_LOCK = make_lock()


@final
class SeedStreams:
    """Streams from one seed: a sequence of keys, and generators of arrays and parameters."""

    def __init__(self, seed: int) -> None:
        self._first_key: int | None = None
        self._generator: np.random.Generator | None = None
        self.restart(seed)

    def next_key(self) -> int:
        """Return a new key; the first ones are those of the first run of a program."""
        with _LOCK:
            # Created on first use: loading NumPy's generators is slow.
            if self._first_key is None:
                drawn = _make_generator(self.seed, zlib.crc32(b"random_counter")).uniform(
                    0.0, 2.0**62
                )
                self._first_key = int(drawn)
            self._keys += 1
            return self._first_key + self._keys

    def key_tensor(self) -> Tensor:
        """Return a new key as a tensor; in a compiled function it is new at each call."""
        if adopting.get() is not None:
            return _Keys(self)
        return Tensor(array_node(np.array(self.next_key(), np.int64)))

    def reserve_generator(self) -> Callable[[], np.random.Generator]:
        """Return a function that returns a new generator."""
        with _LOCK:
            self._generators += 1
            return partial(_make_generator, self.seed, 2**32 - 1 + self._generators)

    @property
    def generator(self) -> np.random.Generator:
        """NumPy's generator of eager arrays, which goes on with each array."""
        with _LOCK:
            if self._generator is None:
                self._generator = _make_generator(self.seed, zlib.crc32(b"eager_arrays"))
            return self._generator

    def state(self) -> npt.NDArray[np.uint8]:
        """Return the seed and the position in each stream as bytes."""
        found: Any = self.generator.bit_generator.state
        inner = (*found["state"]["counter"], *found["state"]["key"], *found["buffer"])
        rest = (found["buffer_pos"], found["has_uint32"], found["uinteger"])
        numbers = (self.seed, self._keys, self._generators, *inner, *rest)
        return np.array(numbers, np.uint64).view(np.uint8)

    def set_state(self, state: npt.NDArray[np.uint8]) -> None:
        """Go back to a state that `state` returned. Raises `ArgumentError` for other arrays."""
        if state.dtype != np.uint8 or state.shape != (8 * 16,):
            raise ArgumentError(f"a state has 128 bytes, not {state.dtype}{list(state.shape)}")
        numbers = np.ascontiguousarray(state).view(np.uint64)
        seed, keys, generators = (int(n) for n in numbers[:3])
        self.restart(seed)
        self.generator.bit_generator.state = {
            "bit_generator": "Philox",
            "state": {"counter": numbers[3:7].copy(), "key": numbers[7:9].copy()},
            "buffer": numbers[9:13].copy(),
            "buffer_pos": int(numbers[13]),
            "has_uint32": int(numbers[14]),
            "uinteger": int(numbers[15]),
        }
        self._keys, self._generators = keys, generators

    def restart(self, seed: int) -> None:
        """Begin all streams again, with another seed."""
        with _LOCK:
            self.seed = seed % 2**64
            self._first_key = self._generator = None
            self._keys = self._generators = 0


def _make_generator(seed: int, stream: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=np.array((seed, stream), np.uint64)))


seeded = SeedStreams(0)


@check_arguments
def seed(seed: int) -> None:
    """Set the seed of eager random numbers: initial values of layers, and dropout masks.

    It is 0 at the start, so that a script gives the same numbers each time. All threads draw from
    one stream. Programs have their own `random_seed`. Raises `ArgumentError` for what is no
    integer.

    >>> pg.seed(0)
    >>> layer = pg.nn.Linear(2, 1)
    """
    seeded.restart(int(seed))


def next_key() -> Tensor:
    """Return a fresh integer key for random operators; it is data and not in the cache key.

    In a compiled function the key is fresh at each call.
    """
    return seeded.key_tensor()


@final
class _Keys(Tensor):
    """Key tensor that yields a fresh key each time it is read."""

    __slots__ = ("_streams",)

    family = Tensor

    def __init__(self, streams: SeedStreams) -> None:
        super().__init__(array_node(np.zeros((), np.int64)))
        self._streams = streams

    @property
    def type(self) -> TensorType:
        return _KEY

    @property
    def node(self) -> Node:
        return array_node(np.array(self._streams.next_key(), np.int64))

    @node.setter
    def node(self, node: Node) -> None:
        """Ignore the first key, which is never read."""


def reserve_generator() -> Callable[[], np.random.Generator]:
    """Return a function that returns the generator of the next parameter's initial value."""
    return seeded.reserve_generator()
