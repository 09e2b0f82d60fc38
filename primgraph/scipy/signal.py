"""Signals by SciPy's names: SciPy's own on arrays, recorded with variables and tensors."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, ShapeError, unknown_name
from primgraph.operators.call import namespace_operator
from primgraph.operators.linear_algebra.products import tensordot
from primgraph.operators.promotion import lift, result_dtype
from primgraph.operators.shape.joining import flip
from primgraph.operators.shape.padding import pad
from primgraph.operators.shape.shaping import transpose
from primgraph.operators.signal.window_geometry import Sliding
from primgraph.operators.variable import Variable, handles

__all__ = ["convolve"]


def convolve(
    in1: Any,
    in2: Any,
    mode: str = "full",
    method: str = "auto",
    *,
    axes: Sequence[Sequence[int]] | None = None,
    dot_axes: Sequence[Sequence[int]] = ((), ()),
) -> Any:
    """Convolve two arrays: "full", or the part that is "valid" or as large as `in1` ("same").

    All axes are convolved. With `axes`, two lists, these are, one of `in1` with one of `in2`, and
    over those in `dot_axes` products are summed; the axes that are left of `in1` come first, then
    those of `in2`, then the convolved ones, as autograd has it. Sums are computed as products of
    matrices; `method` is for SciPy, which computes what has no variables and no `axes`.

    Raises `ArgumentError` for another mode and `ShapeError` for axes that do not fit.

    >>> from primgraph.scipy.signal import convolve
    >>> convolve(pg.tensor([1.0, 2.0, 3.0]), pg.tensor([1.0, 1.0]))
    tensor([1., 3., 5., 3.])
    """
    if not handles((in1, in2)):
        theirs = _scipys("convolve") if axes is None else None
        if theirs is not None:
            return theirs(in1, in2, mode, method)
        return np.asarray(_convolve_axes(in1, in2, mode, axes, dot_axes))
    return _convolve_axes(in1, in2, mode, axes, dot_axes)


def _scipys(name: str) -> Any:
    try:
        return getattr(importlib.import_module("scipy.signal"), name, None)
    except ImportError:
        return None


@namespace_operator
def _convolve_axes(in1: Any, in2: Any, mode: str, axes: Any, dot_axes: Any) -> Variable:
    dtype = result_dtype(in1, in2)
    x, y = lift(in1, dtype), lift(in2, dtype)
    if mode not in ("full", "valid", "same"):
        raise ArgumentError(f"convolve: mode is 'full', 'valid' or 'same', not {mode!r:.60}")
    if axes is None:
        if x.ndim != y.ndim:
            raise ShapeError(f"convolve takes arrays of as many axes, not {x.type} and {y.type}")
        axes = (range(x.ndim), range(y.ndim))
    rolled = [[i % v.ndim for i in a] for v, a in zip((x, y), axes, strict=True)]
    summed = [[i % v.ndim for i in a] for v, a in zip((x, y), dot_axes, strict=True)]
    left = [
        [i for i in range(v.ndim) if i not in (*r, *s)]
        for v, r, s in zip((x, y), rolled, summed, strict=True)
    ]
    x, y = (
        transpose(v, [*n, *s, *r]) for v, n, s, r in zip((x, y), left, summed, rolled, strict=True)
    )
    first, second, sums, count = len(left[0]), len(left[1]), len(summed[0]), len(rolled[0])
    found, swapped = _slid(x, y, (first, second), sums, count, mode)
    lead, rear = (second, first) if swapped else (first, second)
    # The axes are those that slid over, the windows, and the others.
    own = list(range(lead))
    windows = list(range(lead, lead + count))
    others = list(range(lead + count, lead + count + rear))
    return transpose(found, [*others, *own, *windows] if swapped else [*own, *others, *windows])


def _slid(
    x: Variable, y: Variable, left: tuple[int, int], sums: int, count: int, mode: str
) -> tuple[Variable, bool]:
    """The sums over windows of the longer array, and whether that is the second one."""
    lengths, sizes = x.shape[x.ndim - count :], y.shape[y.ndim - count :]
    swapped = False
    if mode == "valid" and not all(n >= m for n, m in zip(lengths, sizes, strict=True)):
        if not all(n <= m for n, m in zip(lengths, sizes, strict=True)):
            raise ShapeError(
                f"convolve: for 'valid' one array is at least as large as the other along all "
                f"axes, and they are {x.type} and {y.type}"
            )
        x, y, left, lengths, sizes, swapped = y, x, left[::-1], sizes, lengths, True
    if mode == "full":
        ends = [(m - 1, m - 1) for m in sizes]
    elif mode == "same":
        ends = [(m - 1 - (m - 1) // 2, (m - 1) // 2) for m in sizes]
    else:
        ends = [(0, 0)] * count
    lead = left[0] + sums
    placed = pad(x, [*[(0, 0)] * lead, *ends]) if any(a or b for a, b in ends) else x
    if count:
        placed = Sliding("convolve", sizes, (1,) * count, (1,) * count).extract_windows(
            placed, lead
        )
        y = flip(y, list(range(y.ndim - count, y.ndim)))
    inner = [list(range(left[0], lead + count)), list(range(left[1], left[1] + sums + count))]
    return tensordot(placed, y, inner), swapped


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else _scipys(name)
    if found is None:
        raise unknown_name("primgraph.scipy.signal", name, __all__)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
