"""Windows of convolutions and pools, along the axes after samples and channels."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeAlias, final

from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.assumptions import assume_at_least
from primgraph.operators.call import operator
from primgraph.operators.promotion import entries_of, require_integer
from primgraph.operators.shape.shaping import permute_axes, reshape_to
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import windows as primitives
from primgraph.primitives.windows import span

# A number for all axes, or one for each.
Sizes: TypeAlias = int | Sequence[int]
Slices: TypeAlias = tuple[int, ...]
P = ParamSpec("P")


def numbers(name: str, role: str, value: Any, count: int, least: int) -> Slices:
    """Return `value`, a number or one for each axis, as integers of at least `least`."""
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
    """Return the padding before and after each axis of a convolution; "same" keeps sizes."""
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
    """Return `x` with batch and channel axes before `count` others, and whether it had a batch
    axis.

    A missing batch axis is added, with one sample.
    """
    if x.ndim == count + 2:
        return x, True
    if x.ndim == count + 1:
        return reshape_to(x, (1, *x.shape)), False
    raise ShapeError(
        f"{name} takes samples, channels and {count} more axes, not {x.type}",
        hint="a single sample may leave out its axis",
    )


def channels_only(x: Variable, had_samples: bool) -> Variable:
    """Remove the batch axis if `x` had none."""
    return x if had_samples else reshape_to(x, x.shape[1:])


def samples_last(x: Variable) -> Variable:
    """Move the batch axis last, so that samples are contiguous in memory.

    So windows are copied in long rows, and all samples are in one matrix product.
    """
    return permute_axes(x, (*range(1, x.ndim), 0))


def samples_first(x: Variable) -> Variable:
    return permute_axes(x, (x.ndim - 1, *range(x.ndim - 1)))


@final
@dataclass(frozen=True, slots=True)
class Sliding:
    """Windows along axes of an array: sizes, steps, and dilations."""

    name: str
    sizes: Slices
    steps: Slices
    dilations: Slices

    @property
    def spans(self) -> Slices:
        return tuple(span(n, d) for n, d in zip(self.sizes, self.dilations, strict=True))

    def require_fit(self, x: Variable, extents: Sequence[int]) -> None:
        """Raise `ShapeError` if no window fits along the axes."""
        if not all(assume_at_least(n, m) for n, m in zip(extents, self.spans, strict=True)):
            raise ShapeError(
                f"{self.name}: windows of {self.spans} elements do not fit {x.type}, "
                f"whose axes have {tuple(extents)} with padding"
            )

    def counts(self, extents: Sequence[int]) -> Slices:
        """Return the numbers of windows."""
        return tuple(
            (n - m) // s + 1 for n, m, s in zip(extents, self.spans, self.steps, strict=True)
        )

    def extract_windows(self, x: Variable, axis: int) -> Variable:
        """Replace the axes from `axis` on by as many for elements of a window, and as many for
        windows."""
        return emit(
            primitives.windows,
            x,
            axis=axis,
            sizes=self.sizes,
            steps=self.steps,
            dilations=self.dilations,
        )

    def add_windows(self, x: Variable, axis: int, extents: Slices) -> Variable:
        """Return the sums of overlapping windows, in axes of size `extents`."""
        return emit(
            primitives.overlap_add,
            x,
            axis=axis,
            extents=extents,
            steps=self.steps,
            dilations=self.dilations,
        )

    def reduce_windows(
        self, x: Variable, axis: int, function: Callable[[Variable, Slices], Variable]
    ) -> Variable:
        """Apply `function`, of an array and axes, over the elements of each window."""
        number = len(self.sizes)
        extents = x.shape[axis : axis + number]
        if self._tile(extents):
            split = [(n // m, m) for n, m in zip(extents, self.sizes, strict=True)]
            shape = (*x.shape[:axis], *(n for pair in split for n in pair))
            whole = reshape_to(x, (*shape, *x.shape[axis + number :]))
            return function(whole, tuple(axis + 1 + 2 * i for i in range(number)))
        return function(self.extract_windows(x, axis), tuple(axis + i for i in range(number)))

    def _tile(self, extents: Sequence[int]) -> bool:
        """Return whether the windows tile the axes exactly."""
        apart = zip(extents, self.sizes, self.steps, self.dilations, strict=True)
        return all(
            type(n) is int and m == s and (d == 1 or m == 1) and n % m == 0 for n, m, s, d in apart
        )


def along_axes(
    stem: str,
    operands: tuple[str, ...],
    function: Callable[Concatenate[str, int, P], Variable],
    *docs: str,
) -> tuple[Callable[P, Variable], Callable[P, Variable], Callable[P, Variable]]:
    """Return operators along one, two and three axes, `stem1d` and so on, with these docstrings.

    `function` takes the name of the operator and the number of axes before its parameters.
    """
    one, two, three = (
        _along(f"{stem}{n}d", n, operands, function, doc) for n, doc in enumerate(docs, 1)
    )
    return one, two, three


def _along(
    name: str,
    count: int,
    operands: tuple[str, ...],
    function: Callable[Concatenate[str, int, P], Variable],
    doc: str,
) -> Callable[P, Variable]:
    def along(*args: P.args, **kwargs: P.kwargs) -> Variable:
        return function(name, count, *args, **kwargs)

    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[2:]
    along.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    along.__name__ = along.__qualname__ = name
    along.__module__, along.__doc__ = function.__module__, doc
    return operator(*operands)(along)
