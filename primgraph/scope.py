"""Scopes: where the values of parameters live between runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, final

import numpy as np

from primgraph.errors import FeedError
from primgraph.ir.signature import checked_methods
from primgraph.ir.types import TensorType


@final
@checked_methods()
class Scope:
    """Arrays by name: the state that runs of a program read and write.

    Each program has one of its own; an executor with a scope uses that one instead, so that two
    executors with two scopes do not see each other. What is stored is the scope's alone: it is
    copied on the way in, and `get` gives copies out.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def get(self, name: str) -> np.ndarray[Any, Any]:
        """A copy of the array of that name. Raises `FeedError` if there is none."""
        if name not in self.arrays:
            raise FeedError(f"the scope holds no {name!r}")
        return self.arrays[name].copy()

    def set(self, name: str, value: Any, type: TensorType | None = None) -> None:
        """Store a copy of `value`, which must have that type if one is given.

        Raises `FeedError` for another shape, or a dtype that does not convert within its kind.
        """
        known = repr(name) if type is None else f"{name!r} is {type}, and"
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise FeedError(f"{known} cannot be set to {value!r:.60}: {error}") from None
        if array.dtype.kind not in "biuf":
            raise FeedError(f"{known} cannot be set to {value!r:.60} of dtype {array.dtype}")
        if type is not None:
            same_kind = np.can_cast(array.dtype, type.dtype, "same_kind")
            if array.shape != type.shape or not same_kind:
                raise FeedError(
                    f"{name!r} is {type}; an array of shape {array.shape} and dtype "
                    f"{array.dtype} is given"
                )
            array = array.astype(type.dtype)
        self.arrays[name] = np.array(array, order="C")
