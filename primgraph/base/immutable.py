"""What graphs, kernels and types have in common: they are never changed, so copies are needless."""

from __future__ import annotations

from typing import Any, NoReturn, Self


class Fixed:
    """What never changes once it has been made, and is its own copy."""

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
