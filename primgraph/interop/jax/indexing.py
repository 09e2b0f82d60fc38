"""Rules of slices and elements at computed positions: gather and scatter in all modes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.interop.jax.elementwise import extremum_of_complex
from primgraph.interop.jax.rules import (
    Site,
    constant,
    convert,
    emit,
    full_like,
    permute,
    reshape,
    rule,
    sliced,
    spread,
)
from primgraph.interop.jax.segments import apply_in_order, fold_segments
from primgraph.interop.jax.shapes import counted
from primgraph.ir.types import INT64, Shape
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.variable import Variable
from primgraph.primitives import elementwise as e
from primgraph.primitives import indexing, logic

# Dynamic slices: starts are moved inside.


@rule("dynamic_slice")
def _dynamic_slice(at: Site, x: Variable, *starts: Variable) -> Variable:
    found = x
    for axis, size in enumerate(at["slice_sizes"]):
        if size != x.shape[axis]:
            start = _clipped(starts[axis], x.shape[axis] - size)
            places = emit(e.add, spread(start, (size,), ()), counted((size,), 0))
            found = emit(indexing.gather, found, places, axis=axis)
    return found


@rule("dynamic_update_slice")
def _dynamic_update_slice(at: Site, x: Variable, y: Variable, *starts: Variable) -> Variable:
    found, taken = y, None
    for axis, start in enumerate(starts):
        size, extent = y.shape[axis], x.shape[axis]
        if size == extent:
            continue
        if size == 0:
            return x
        place = spread(_clipped(start, extent - size), (extent,), ())
        place = emit(e.sub, counted((extent,), 0), place)
        inside = emit(
            logic.logical_and,
            emit(logic.greater_equal, place, full_like(place, 0)),
            emit(logic.less, place, full_like(place, size)),
        )
        if size == 1:
            shape = (*found.shape[:axis], extent, *found.shape[axis + 1 :])
            found = spread(found, shape, range(x.ndim))
        else:
            place = emit(e.maximum, place, full_like(place, 0))
            place = emit(e.minimum, place, full_like(place, size - 1))
            found = emit(indexing.gather, found, place, axis=axis)
        inside = spread(inside, x.shape, (axis,))
        taken = inside if taken is None else emit(logic.logical_and, taken, inside)
    return found if taken is None else emit(logic.select, taken, found, x)


def _clipped(start: Variable, largest: int) -> Variable:
    """Return starts moved into the range from 0 to `largest`."""
    whole = convert(start, INT64)
    low = emit(e.maximum, whole, full_like(whole, 0)) if start.dtype.kind == "i" else whole
    return emit(e.minimum, low, full_like(low, largest))


# Gather and scatter.


@final
@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of an array at computed starts.

    `places` are the indices of elements along the axes `along` of the array, in arrays with axes
    for the starts and for those axes of the windows that are shorter than the array's. `order`
    moves `along` to the front. The axes of gathered elements are the first `batch` ones, those of
    windows at `window`, in order, and those of the axes that a window spans. `inside` is whether a
    window is within the array, for each start; None if each is.
    """

    along: tuple[int, ...]
    order: tuple[int, ...]
    places: tuple[Variable, ...]
    batch: int
    window: tuple[int, ...]
    spanned: tuple[int, ...]
    inside: Variable | None

    def front(self, x: Variable) -> Variable:
        """Return the array with the indexed axes in front."""
        return permute(x, self.order)

    def back(self, x: Variable) -> Variable:
        """Return the array with the indexed axes in their places."""
        return permute(x, np.argsort(self.order).tolist())


def _windows(
    x: Shape,
    starts: Variable,
    sizes: Sequence[int],
    mapped: Sequence[int],
    dropped: Sequence[int],
    batching: tuple[Sequence[int], Sequence[int]],
    mode: str,
) -> Windows:
    """Return the windows of `sizes` in an array of shape `x`.

    `mapped` are the axes along which the last axis of `starts` counts, `dropped` axes of windows
    that results lack. Axes of `batching` are those of array and starts that go together.
    """
    number = starts.ndim - 1
    lead, pairs = starts.shape[:number], dict(zip(*batching, strict=True))
    mapped_axes = {a: k for k, a in enumerate(mapped)}
    spans = {
        a
        for a in range(len(x))
        if a not in pairs and sizes[a] == x[a] and a not in dropped
        and (a not in mapped_axes or mode != "fill")
    }  # fmt: skip
    along = tuple([a for a in range(len(x)) if a not in spans])
    window = tuple([a for a in along if a not in dropped and a not in pairs])
    shape = (*lead, *(sizes[a] for a in window))
    places, inside = [], None
    for a in along:
        if a in pairs:
            places.append(spread(counted(lead, pairs[a]), shape, range(number)))
            continue
        place = None
        if a in mapped_axes:
            start = convert(reshape(sliced(starts, number, mapped_axes[a], 1), lead), INT64)
            within = None if mode != "fill" else _is_within(start, x[a] - sizes[a])
            inside = within if inside is None else _both(inside, within)
            start = _clipped(start, x[a] - sizes[a])
            place = spread(start, shape, range(number))
        if a in window:
            offset = counted(shape, number + window.index(a))
            place = offset if place is None else emit(e.add, place, offset)
        places.append(constant(0, INT64, shape) if place is None else place)
    spanned = tuple(sorted(spans))
    return Windows(along, (*along, *spanned), tuple(places), number, window, spanned, inside)


def _both(x: Variable, y: Variable | None) -> Variable:
    return x if y is None else emit(logic.logical_and, x, y)


def _is_within(start: Variable, largest: int) -> Variable:
    return emit(
        logic.logical_and,
        emit(logic.greater_equal, start, full_like(start, 0)),
        emit(logic.less_equal, start, full_like(start, largest)),
    )


def _mode(at: Site, *, promised: str) -> str:
    """Return what is done with windows that are not within: "fill" or "clip".

    JAX promises nothing where it is promised that all are within, and does `promised`.
    """
    name = str(at["mode"]).rpartition(".")[2].lower()
    return promised if "promise" in name else "fill" if name.startswith("fill") else "clip"


def _axes_of(at: Windows, rank: int, offsets: Sequence[int]) -> list[int]:
    """Return, for each axis of gathered elements, its axis in a result of this rank.

    `offsets` are the axes of the result that belong to windows.
    """
    lead = [a for a in range(rank) if a not in offsets]
    by_axis = dict(zip(sorted((*at.window, *at.spanned)), sorted(offsets), strict=True))
    return [*lead, *(by_axis[a] for a in (*at.window, *at.spanned))]


@rule("gather")
def _gather(at: Site, x: Variable, starts: Variable) -> Variable:
    numbers = at["dimension_numbers"]
    sizes, mode = at["slice_sizes"], _mode(at, promised="clip")
    if 0 in at.shape:
        return constant(0, at.dtype, at.shape)
    found = _windows(
        x.shape, starts, sizes, numbers.start_index_map, numbers.collapsed_slice_dims,
        (numbers.operand_batching_dims, numbers.start_indices_batching_dims), mode,
    )  # fmt: skip
    axes = _axes_of(found, len(at.shape), numbers.offset_dims)
    if not found.along:
        whole = spread(x, (*starts.shape[:-1], *x.shape), range(found.batch, found.batch + x.ndim))
    else:
        whole = emit(indexing.gather, found.front(x), *found.places, axis=0)
    result = permute(whole, np.argsort(axes).tolist())
    if found.inside is None:
        return result
    inside = spread(found.inside, at.shape, axes[: found.batch])
    return emit(logic.select, inside, result, constant(_fill(at), at.dtype, at.shape))


def _fill(at: Site) -> Any:
    """Return the number for windows outside."""
    if at["fill_value"] is not None:
        return at["fill_value"]
    if at.dtype.kind in "fc":
        return np.nan
    if at.dtype.kind == "b":
        return True
    info = np.iinfo(at.dtype)
    return info.min if at.dtype.kind == "i" else info.max


_COMBINED = {"mul": e.mul, "min": e.minimum, "max": e.maximum}


@rule("scatter", "scatter-add", "scatter_add", "scatter-sub", "scatter_sub", "scatter-mul",
      "scatter_mul", "scatter-min", "scatter_min", "scatter-max", "scatter_max")  # fmt: skip
def _scatter(at: Site, x: Variable, starts: Variable, y: Variable) -> Variable:
    if 0 in y.shape or 0 in x.shape:
        return x
    numbers, kind = at["dimension_numbers"], at.name.removeprefix("scatter").lstrip("-_")
    mode = _mode(at, promised="fill")
    offsets = numbers.update_window_dims
    dropped = numbers.inserted_window_dims
    pairs = (numbers.operand_batching_dims, numbers.scatter_indices_batching_dims)
    lengths = iter([y.shape[a] for a in sorted(offsets)])
    sizes = [1 if a in dropped or a in pairs[0] else next(lengths) for a in range(x.ndim)]
    found = _windows(
        x.shape, starts, sizes, numbers.scatter_dims_to_operand_dims, dropped, pairs, mode
    )
    part = permute(y, _axes_of(found, y.ndim, offsets))
    whole = found.front(x)
    if not found.along:
        # All windows span the whole array: the first axes of the updates count them.
        found_places: tuple[Variable, ...] = (constant(0, INT64, part.shape[: found.batch]),)
        whole = reshape(whole, (1, *whole.shape))
    else:
        found_places = found.places
    inside = found.inside
    if inside is not None:
        inside = spread(inside, found_places[0].shape, range(found.batch))
    result = _combine(at, kind, whole, part, found_places, inside, found.batch)
    return found.back(reshape(result, [x.shape[a] for a in found.order]))


def _combine(
    at: Site,
    kind: str,
    x: Variable,
    y: Variable,
    places: tuple[Variable, ...],
    inside: Variable | None,
    batch: int,
) -> Variable:
    """Combine rows of `x` at places along the first axes with rows of `y`."""
    if kind in ("add", "sub") and x.dtype.kind != "b":
        part = emit(e.neg, y) if kind == "sub" else y
        if inside is not None:
            part = emit(logic.select, _over(inside, y), part, full_like(y, 0))
        return emit(indexing.scatter_add, x, part, *places, axis=0)
    count = math.prod(x.shape[: len(places)])
    rows = reshape(x, (count, *x.shape[len(places) :]))
    at_row = _row_numbers(places, x.shape)
    number = math.prod(at_row.shape)
    at_row = reshape(at_row, (number,))
    parts = reshape(y, (number, *y.shape[places[0].ndim :]))
    if inside is not None:
        at_row = emit(logic.select, reshape(inside, (number,)), at_row, full_like(at_row, count))
    combine = _combination(at, kind, x)
    is_single = bool(at.params.get("unique_indices")) or math.prod(places[0].shape[:batch]) == 1
    if kind == "" and combine is not None and not is_single:
        return apply_in_order(combine, rows, parts, at_row)
    return _merge_rows(combine, rows, parts, at_row, is_single)


def _combination(at: Site, kind: str, x: Variable) -> Callable[[Any, Any], Variable] | None:
    """Return the function that combines an element and an update; None for the update."""
    if kind == "" and not _is_assignment(at.params.get("update_jaxpr")):
        closed = at["update_jaxpr"]
        consts = at.params.get("update_consts", ())
        return lambda a, b: at.evaluator.run_elements(closed, consts, [a, b])[0]
    if kind == "":
        return None
    if x.dtype.kind == "b":
        op: Any = logic.logical_and if kind in ("mul", "min") else logic.logical_or
    elif x.type.is_complex and kind != "mul":
        return lambda a, b: extremum_of_complex(a, b, kind == "max")
    else:
        op = _COMBINED[kind]
    return lambda a, b: emit(op, a, b)


def _is_assignment(jaxpr: Any) -> bool:
    """Return whether the function of an element and an update returns the update."""
    if jaxpr is None:
        return True
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return not inner.eqns and inner.outvars[0] is inner.invars[1]


def _over(mask: Variable, y: Variable) -> Variable:
    return spread(mask, y.shape, range(mask.ndim))


def _row_numbers(places: tuple[Variable, ...], shape: Shape) -> Variable:
    """Return indices along the first axes as one index along these, joined."""
    found = places[0]
    for place, extent in zip(places[1:], shape[1:], strict=False):
        found = emit(e.add, emit(e.mul, found, full_like(found, extent)), place)
    return found


def _merge_rows(
    combine: Callable[[Any, Any], Variable] | None,
    x: Variable,
    y: Variable,
    at_row: Variable,
    is_single: bool,
) -> Variable:
    """Combine rows of `x` with those of `y` at the rows `at_row`; others than these stay.

    Rows beyond the last one are dropped. Unless each row occurs once at most (`is_single`),
    updates are sorted by rows, and those of one row combined first.
    """
    count, number = x.shape[0], y.shape[0]
    if is_single:
        # The number of the update for each row, counted from one; zero for none.
        counts = emit(e.add, counted((number,), 0), constant(1, INT64, (number,)))
        table = constant(0, INT64, (count + 1,))
        found = sliced(emit(indexing.scatter_add, table, counts, at_row, axis=0), 0, 0, count)
        is_there = emit(logic.greater, found, full_like(found, 0))
        chosen = emit(e.maximum, emit(e.sub, found, full_like(found, 1)), full_like(found, 0))
    else:
        order = call_named("argsort", at_row)
        ordered = emit(indexing.gather, at_row, order, axis=0)
        if combine is not None:
            y = fold_segments(combine, emit(indexing.gather, y, order, axis=0), ordered)
        rows = counted((count,), 0)
        last = call_named("searchsorted", ordered, rows, side="right")
        last = emit(e.sub, convert(last, INT64), full_like(rows, 1))
        at = emit(e.maximum, last, full_like(last, 0))
        is_there = emit(
            logic.logical_and,
            emit(logic.greater_equal, last, full_like(last, 0)),
            emit(logic.equal, emit(indexing.gather, ordered, at, axis=0), rows),
        )
        chosen = at if combine is not None else emit(indexing.gather, order, at, axis=0)
    update = emit(indexing.gather, y, chosen, axis=0)
    if combine is not None:
        update = combine(x, update)
    return emit(logic.select, _over(is_there, x), update, x)
