"""Text of tensors as Paddle prints them, by its algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError


@dataclass
class _Options:
    precision: int = 8
    threshold: int = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool = False


_options = _Options()


def set_printoptions(
    precision: int | None = None,
    threshold: int | None = None,
    edgeitems: int | None = None,
    sci_mode: bool | None = None,
    linewidth: int | None = None,
) -> None:
    """Set how tensors are printed: digits after the point, and how many elements.

    >>> paddle.set_printoptions(precision=3)
    >>> paddle.to_tensor([0.12345])
    Tensor(shape=[1], dtype=float32, place=Place(cpu), stop_gradient=True,
           [0.123])
    >>> paddle.set_printoptions(precision=8)
    """
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "sci_mode": sci_mode,
        "linewidth": linewidth,
    }
    for name, value in given.items():
        if value is not None:
            if not isinstance(value, int):
                raise ArgumentError(f"set_printoptions: {name} is an integer, not {value!r:.40}")
            setattr(_options, name, value)


def describe(array: np.ndarray[Any, Any], stop_gradient: bool, prefix: str = "Tensor") -> str:
    """Return the text of a tensor of these elements."""
    indent = len(prefix) + 1
    is_short = array.size > _options.threshold
    width, signed = _width(_edges(array))
    data = _Writer(is_short, width, signed).text(array, indent)
    shape = list(array.shape)
    return (
        f"{prefix}(shape={shape}, dtype={array.dtype}, place=Place(cpu), "
        f"stop_gradient={stop_gradient},\n{' ' * indent}{data})"
    )


def _edges(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the elements that are shown of a long array."""
    edge = _options.edgeitems
    for axis, extent in enumerate(array.shape):
        if extent > 2 * edge:
            places = [*range(edge), *range(extent - edge, extent)]
            array = np.take(array, places, axis)
    return array


def _item(value: Any) -> str:
    precision = _options.precision
    form = "e" if _options.sci_mode else "f"
    if value.dtype.kind == "f":
        if form == "f" and np.ceil(value) == value:
            return f"{value:.0f}."
        return f"{value:.{precision}{form}}"
    if value.dtype.kind == "c":
        sign = "+" if value.imag >= 0 else ""
        return f"({value.real:.{precision}{form}}{sign}{value.imag:.{precision}{form}}j)"
    return f"{value}"


def _width(array: np.ndarray[Any, Any]) -> tuple[int, bool]:
    """Return the length of the longest element, and whether one is negative."""
    items = array.ravel()
    signed = items.dtype.kind in "if" and bool((items < 0).any())
    return max((len(_item(v)) for v in items), default=0), signed


@dataclass
class _Writer:
    is_short: bool
    width: int
    signed: bool

    def text(self, array: np.ndarray[Any, Any], indent: int) -> str:
        """Return nested lists of elements."""
        if array.ndim == 0:
            return self.padded(array[()])
        count, edge = len(array), _options.edgeitems
        is_cut = self.is_short and count > 2 * edge
        rows = [*range(edge), *range(count - edge, count)] if is_cut else range(count)
        if array.ndim == 1:
            items = [self.padded(array[i]) for i in rows]
        else:
            items = [self.text(array[i], indent + 1) for i in rows]
        if is_cut:
            items.insert(edge, "...")
        if array.ndim > 1:
            between = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
            return f"[{between.join(items)}]"
        fit = max(1, (_options.linewidth - indent) // (self.width + 2))
        lines = [", ".join(items[i : i + fit]) for i in range(0, len(items), fit)]
        return "[" + f",\n{' ' * (indent + 1)}".join(lines) + "]"

    def padded(self, value: Any) -> str:
        """Return the text of an element, as wide as the others."""
        text = _item(value)
        if self.width <= len(text):
            return text
        if self.signed and not value < 0:
            return " " + text.ljust(self.width - 1)
        return text.ljust(self.width)
