"""What convolutions and pools share: how windows lie along the axes behind samples and channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.assumptions import at_least
from primgraph.operators.promotion import entries_of, require_integer
from primgraph.operators.shape.shaping import permuted, reshaped
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import windows as primitives
from primgraph.primitives.windows import span

# A number for all axes, or one for each.
Sizes: TypeAlias = int | Sequence[int]
Slices: TypeAlias = tuple[int, ...]


def numbers(name: str, role: str, value: Any, count: int, least: int) -> Slices:
    """`value`, a number or one for each axis, as integers of at least `least`."""
    given = [require_integer(f"{name}: {role}", n) for n in entries_of(value)]
    found = given * count if len(given) == 1 else given
    if len(found) != count or any(n < least for n in found):
        raise ArgumentError(
            f"{name}: {role} is an integer of at least {least}, or {count} of them, "
            f"not {value!r:.60}"
        )
    return tuple(found)


def both_ends(
    name: str, padding: Any, spans: Sequence[int], steps: Sequence[int]
) -> list[tuple[int, int]]:
    """How many elements a convolution has before and behind each axis; "same" keeps extents."""
    if padding == "valid":
        return [(0, 0)] * len(spans)
    if padding == "same":
        if any(n != 1 for n in steps):
            raise ArgumentError(f"{name}: padding 'same' is for a stride of 1")
        return [((n - 1) // 2, n // 2) for n in spans]
    if isinstance(padding, str):
        raise ArgumentError(
            f"{name}: padding {padding!r:.60}", hint="use integers, 'same' or 'valid'"
        )
    return [(n, n) for n in numbers(name, "padding", padding, len(spans), 0)]


def channels_first(name: str, x: Variable, count: int) -> tuple[Variable, bool]:
    """`x` with an axis of samples and one of channels before `count` others, and whether it had.

    Without samples it is one.
    """
    if x.ndim == count + 2:
        return x, True
    if x.ndim == count + 1:
        return reshaped(x, (1, *x.shape)), False
    raise ShapeError(
        f"{name} takes samples, channels and {count} more axes, not {x.type}",
        hint="a single sample may leave out its axis",
    )


def channels_only(x: Variable, had_samples: bool) -> Variable:
    """`x` without the axis of samples, if it had none."""
    return x if had_samples else reshaped(x, x.shape[1:])


def samples_last(x: Variable) -> Variable:
    """The samples lie in the last axis, where neighbours are neighbours in memory.

    So windows are copied in long rows, and all samples are in one product of matrices.
    """
    return permuted(x, (*range(1, x.ndim), 0))


def samples_first(x: Variable) -> Variable:
    return permuted(x, (x.ndim - 1, *range(x.ndim - 1)))


@final
@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows along axes of an array: their sizes, steps, and how far elements are apart."""

    name: str
    sizes: Slices
    steps: Slices
    dilations: Slices

    @property
    def spans(self) -> Slices:
        return tuple(span(n, d) for n, d in zip(self.sizes, self.dilations, strict=True))

    def require_fit(self, x: Variable, extents: Sequence[int]) -> None:
        """Raise `ShapeError` where the axes have no place for a window."""
        if not all(at_least(n, m) for n, m in zip(extents, self.spans, strict=True)):
            raise ShapeError(
                f"{self.name}: windows of {self.spans} elements do not fit {x.type}, "
                f"whose axes have {tuple(extents)} with padding"
            )

    def counts(self, extents: Sequence[int]) -> Slices:
        """How many windows there are."""
        return tuple(
            (n - m) // s + 1 for n, m, s in zip(extents, self.spans, self.steps, strict=True)
        )

    def over(self, x: Variable, axis: int) -> Variable:
        """For axes from `axis` on, as many for elements of a window, and as many for windows."""
        return emit(
            primitives.windows,
            x,
            axis=axis,
            sizes=self.sizes,
            steps=self.steps,
            dilations=self.dilations,
        )

    def added(self, x: Variable, axis: int, extents: Slices) -> Variable:
        """The sums of windows where they overlap, in axes of `extents`."""
        return emit(
            primitives.overlap_add,
            x,
            axis=axis,
            extents=extents,
            steps=self.steps,
            dilations=self.dilations,
        )

    def reduced(
        self, x: Variable, axis: int, function: Callable[[Variable, Slices], Variable]
    ) -> Variable:
        """`function` of an array and of its axes, over the elements of each window."""
        number = len(self.sizes)
        extents = x.shape[axis : axis + number]
        if self._tile(extents):
            split = [(n // m, m) for n, m in zip(extents, self.sizes, strict=True)]
            shape = (*x.shape[:axis], *(n for pair in split for n in pair))
            whole = reshaped(x, (*shape, *x.shape[axis + number :]))
            return function(whole, tuple(axis + 1 + 2 * i for i in range(number)))
        return function(self.over(x, axis), tuple(axis + i for i in range(number)))

    def _tile(self, extents: Sequence[int]) -> bool:
        """Whether the windows lie side by side and leave nothing."""
        apart = zip(extents, self.sizes, self.steps, self.dilations, strict=True)
        return all(
            type(n) is int and m == s and (d == 1 or m == 1) and n % m == 0 for n, m, s, d in apart
        )
