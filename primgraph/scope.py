"""Scopes: where the values of parameters live between runs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, final

import numpy as np

from primgraph.errors import FeedError
from primgraph.ir.types import TensorType

_versions = itertools.count()


@final
class Scope:
    """Arrays by name: the state that runs of a program read and write.

    Each program has one of its own; an executor with a scope uses that one instead, so that two
    executors with two scopes do not see each other. What is stored is the scope's alone: it is
    copied on the way in, and `get` gives copies out.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._version = next(_versions)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    @property
    def version(self) -> int:
        """A number that no scope had before the last change of this one."""
        return self._version

    def held(self, name: str) -> np.ndarray[Any, Any] | None:
        """The scope's own array of that name, if it holds one; who writes to it calls `changed`."""
        return self._arrays.get(name)

    def hold(self, name: str, array: np.ndarray[Any, Any]) -> None:
        """Store `array` itself, which nobody else may write to from now on."""
        self._arrays[name] = array
        self.changed()

    def changed(self) -> None:
        """Note that arrays of the scope have been written to."""
        self._version = next(_versions)

    def get(self, name: str) -> np.ndarray[Any, Any]:
        """A copy of the array of that name. Raises `FeedError` if there is none."""
        if name not in self._arrays:
            raise FeedError(f"the scope holds no {name!r}")
        return self._arrays[name].copy()

    def set(self, name: str, value: Any, type: TensorType | None = None) -> None:
        """Store a copy of `value`, which must have that type if one is given.

        Raises `FeedError` for another shape, or a dtype that does not convert within its kind.
        """
        array = np.asarray(value)
        if type is not None:
            same_kind = np.can_cast(array.dtype, type.dtype, "same_kind")
            if array.shape != type.shape or not same_kind:
                raise FeedError(
                    f"{name!r} is {type}; an array of shape {array.shape} and dtype "
                    f"{array.dtype} is given"
                )
            array = array.astype(type.dtype)
        self.hold(name, np.array(array, order="C"))
