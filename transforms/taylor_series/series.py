"""Taylor series: coefficients of one value, computed when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, final

from primgraph.ir.graph import Value
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import filled_constant

# One coefficient per result of an equation; None for zero everywhere.
Row: TypeAlias = Sequence[Value | None]


def scale_value(value: Value, factor: float) -> Value:
    """Return `factor * value`, or `value` itself for factor 1."""
    return value if factor == 1 else value * factor


class _Given(Protocol):
    def __call__(self, k: int, /) -> Row: ...


@final
class Series:
    """Taylor coefficients of one value, computed lazily.

    A `fixed` series has only the coefficient of order 0. Coefficients that are zero everywhere are
    None.
    """

    __slots__ = ("_place", "_row", "fixed", "type")

    def __init__(
        self, type: TensorType, row: _Given, place: int = 0, *, fixed: bool = False
    ) -> None:
        self.type = type
        self.fixed = fixed
        self._row = row
        self._place = place

    def __getitem__(self, k: int) -> Value | None:
        return None if self.fixed and k else self._row(k)[self._place]

    def first(self) -> Value:
        """Return the value itself, zeros if it is None."""
        found = self[0]
        return filled_constant(0, self.type) if found is None else found


@final
class Rows:
    """Memoised rows of coefficients by order, computed in order from 0."""

    __slots__ = ("_find", "_found")

    def __init__(self, find: Callable[[int], Row]) -> None:
        self._find = find
        self._found: list[Row] = []

    def __call__(self, k: int, /) -> Row:
        while len(self._found) <= k:
            self._found.append(self._find(len(self._found)))
        return self._found[k]
