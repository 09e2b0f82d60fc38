"""Base class of immutable objects: graphs, kernels and types."""

from __future__ import annotations

from typing import Any, NoReturn, Self


class Fixed:
    """Immutable object, which is its own copy."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        kind = self.__class__.__name__
        raise AttributeError(f"a {kind} never changes: cannot set {name!r}; make a new one")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self
