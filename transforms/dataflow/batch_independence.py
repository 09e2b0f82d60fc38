"""Where the samples of a batch lie in each value, and the first equation at which they may meet.

Samples are counted by axis 0 of what a graph is differentiated by. They stay apart if each
equation on the way to the outputs keeps them so: if no sample of its result has a derivative by
another sample of its operands. What has no derivative, such as comparisons, `floor` and
`stop_gradient`, may look at all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.types import Shape
from primgraph.primitives.constants import constant, iota
from primgraph.primitives.control import checkpoint, cond, scan, while_loop
from primgraph.primitives.elementwise import as_function_of, cast, steady, stop_gradient
from primgraph.primitives.fourier import fft, irfft, rfft
from primgraph.primitives.indexing import gather, placed, scatter_add
from primgraph.primitives.linear_algebra import matrix_functions as m
from primgraph.primitives.linear_algebra.assumptions import assumed
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.linear_algebra.spectra import eigh, eigvalsh, pinv, qr, svd, svdvals
from primgraph.primitives.linear_algebra.spectral_derivatives import (
    as_spectral_gradient,
    as_spectral_tangent,
)
from primgraph.primitives.linear_algebra.systems import (
    as_cholesky_of,
    as_symmetric,
    cholesky,
    cholesky_slope,
    cholesky_tangent,
    cofactors,
    det,
    inv,
    slogdet,
    solve,
    triangular_solve,
)
from primgraph.primitives.linear_algebra.ties import if_distinct, unless_any
from primgraph.primitives.reductions import (
    argmax,
    argmin,
    as_softmax_of,
    cumsum,
    reduce_max,
    reduce_min,
    reduce_prod,
    reduce_sum,
    root_of_squares,
)
from primgraph.primitives.shapes import (
    broadcast,
    concat,
    pad,
    permute,
    reshape,
    reverse,
    slice_,
    slice_assign,
    split,
)
from primgraph.primitives.windows import overlap_add, windows
from primgraph.transforms.dataflow.body_transfer import (
    Analysis,
    Fault,
    through_checkpoint,
    through_cond,
    through_scan,
    through_while,
)
from primgraph.transforms.dataflow.locality import looking_into, slopes_of


@dataclass(frozen=True, slots=True)
class Place:
    """Where samples lie in a value: along `axis`, between `before` and `after` other elements.

    The extent of the axis is the product of `before`, the number of places for samples, and
    `after`: more than those where a reshape has joined axes. Place `i` has sample `i + shift`;
    where there is no such sample it has nothing that depends on any.
    """

    axis: int
    before: int = 1
    after: int = 1
    shift: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether each element along the axis is of another sample."""
        return self.before == self.after == 1


@dataclass(frozen=True, slots=True)
class Mixing:
    """An equation at which samples may meet, and what it does to them."""

    equation: Equation
    why: str


# One for each operand, None for what has no derivative by any sample.
Places: TypeAlias = Sequence[Place | None]
# One for each result, or what is done to samples that does not keep them apart.
Found: TypeAlias = list[Place] | str
# Of branches and loops, results may have none, and an equation of a body may be what mixes.
_Any: TypeAlias = Places | str | Mixing
_Rule: TypeAlias = Callable[[Equation, Places, "Counts"], _Any]

_UNKNOWN = "is not known to keep samples apart"
_DIFFERENT = "joins different samples of its operands"
_PARTS = "takes a part of the samples where these share an axis with others"


def mixing(graph: Graph, wrt: Sequence[Value]) -> Mixing | None:
    """The first equation of `graph` that may let samples of `wrt` meet on the way to outputs.

    None if samples stay apart, and axis 0 of all outputs counts them. One sample is never mixed.
    The answer takes one pass over the graph, and is on the safe side: what has no rule may mix.
    """
    if not wrt or wrt[0].shape[0] in (0, 1):
        return None
    found = _followed(graph, dict.fromkeys(wrt, Place(0)))
    if isinstance(found, Mixing):
        return found
    for value in graph.outputs:
        if found.get(value, Place(0)) != Place(0):
            made = next(e for e in graph.body if value in e.outputs)
            return Mixing(made, "moves samples to other places of the result")
    return None


def _followed(graph: Graph, starts: dict[Value, Place]) -> dict[Value, Place] | Mixing:
    """Where samples lie in what outputs depend on, if each equation keeps them apart."""
    relevant = _relevant(graph)
    places = {v: p for v, p in starts.items() if v in relevant}
    counts = Counts(graph)
    for eqn in graph.body:
        outputs = [v for v in eqn.outputs if v in relevant]
        if not outputs or _is_constant(eqn) or places.keys().isdisjoint(_operands(eqn)):
            continue
        found = places_after(eqn, [places.get(v) for v in _operands(eqn)], counts)
        if isinstance(found, Mixing):
            return found
        if isinstance(found, str):
            return Mixing(eqn, found)
        for value, place in zip(eqn.outputs, found, strict=True):
            if value in relevant and place is not None and places.setdefault(value, place) != place:
                return Mixing(eqn, "moves samples")
    return places


def _relevant(graph: Graph) -> set[Value]:
    """The values with elements that outputs depend on in a way that has a derivative."""
    relevant = {v for v in graph.outputs if v.type.size != 0}
    for eqn in reversed(graph.body):
        if not relevant.isdisjoint(eqn.outputs) and not _is_constant(eqn):
            relevant.update(v for v in _operands(eqn) if v.type.is_inexact and v.type.size != 0)
    return relevant


def _is_constant(eqn: Equation) -> bool:
    return isinstance(eqn.op, Primitive) and eqn.op.constant


def _operands(eqn: Equation) -> tuple[Value, ...]:
    """The operands along which the equation has a derivative."""
    if eqn.op.own_slope:
        return eqn.inputs[1:]
    return eqn.inputs[:1] if eqn.op.formal else eqn.inputs


def places_after(eqn: Equation, places: Places, counts: Counts) -> _Any:
    """Where samples are in the results of an equation, or what it does to them."""
    rule = _RULES.get(eqn.op)
    if rule is not None:
        return rule(eqn, places, counts)
    if isinstance(eqn.op, Primitive) and eqn.op.elementwise:
        return _same(places)
    return _by_slopes(eqn, places)


def _by_slopes(eqn: Equation, places: Places) -> Found:
    """What the graphs of the derivative do, where parameters have it."""
    if not isinstance(eqn.op, Primitive) or eqn.op.slopes_rule is None:
        return _UNKNOWN
    ahead = len(eqn.inputs) - len(places)
    with_samples = [ahead + i for i, p in enumerate(places) if p is not None]
    extent = eqn.inputs[with_samples[0]].shape[:1]
    if any(p not in (None, Place(0)) for p in places) or eqn.output.shape[:1] != extent:
        return _UNKNOWN
    with looking_into(eqn) as is_new:
        for graph, operands, others in slopes_of(eqn, with_samples) if is_new else ():
            sources = [*operands, *others]
            if any(v.shape[:1] != extent for v in sources):
                return _UNKNOWN
            found = mixing(graph, sources)
            if found is not None:
                return found.why
    return [Place(0)]


class Counts:
    """Tells index arrays that count along one of their axes."""

    __slots__ = ("_known", "_made")

    def __init__(self, graph: Graph) -> None:
        self._made = {v: e for e in graph.body for v in e.outputs}
        self._known: dict[tuple[Value, int], tuple[int, int] | None] = {}

    def along(self, value: Value, after: int = 1) -> tuple[int, int] | None:
        """The axis and the start, if elements are the start plus their place along the axis.

        With `after` the positions are in an axis on which so many elements follow each other for
        each that is counted.
        """
        if (value, after) not in self._known:
            self._known[value, after] = self._found(value, after)
        return self._known[value, after]

    def _found(self, value: Value, after: int) -> tuple[int, int] | None:
        moves: list[Equation] = []
        eqn = self._made.get(value)
        while eqn is not None and eqn.op in (cast, steady, stop_gradient, broadcast):
            moves.append(eqn)
            eqn = self._made.get(eqn.inputs[0])
        if eqn is None:
            return None
        found = None
        if eqn.op is iota and after == 1:
            found = eqn.kwargs["axis"], 0
        elif eqn.op is constant:
            found = _counted(eqn.kwargs["value"].data // after)
        for move in reversed(moves):
            if found is not None and move.op is broadcast:
                found = _kept_axes(move)[found[0]], found[1]
        return found


def _counted(array: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> tuple[int, int] | None:
    for axis, extent in enumerate(array.shape):
        start = int(array.flat[0]) if array.size else 0
        column = [1] * array.ndim
        column[axis] = extent
        if extent > 1 and bool(np.all(array == np.arange(start, start + extent).reshape(column))):
            return (axis, start) if start >= 0 else None
    return None


# Rules. `_only` is the place in the operand that has one, of those that have one such operand.


def _only(places: Places) -> tuple[int, Place]:
    return next((i, p) for i, p in enumerate(places) if p is not None)


def _same(places: Places) -> Found:
    """The place that all operands with samples have them in."""
    different = {p for p in places if p is not None}
    return [different.pop()] if len(different) == 1 else _DIFFERENT


def _kept_axes(eqn: Equation) -> list[int]:
    new = eqn.kwargs["new_axes"]
    return [i for i in range(eqn.output.type.ndim) if i not in new]


def _broadcast(eqn: Equation, places: Places, counts: Counts) -> Found:
    _, place = _only(places)
    return [replace(place, axis=_kept_axes(eqn)[place.axis])]


def _permute(eqn: Equation, places: Places, counts: Counts) -> Found:
    _, place = _only(places)
    return [replace(place, axis=eqn.kwargs["axes"].index(place.axis))]


def _reshape(eqn: Equation, places: Places, counts: Counts) -> Found:
    """The axis that holds them between as many elements before and behind."""
    _, place = _only(places)
    old, new = eqn.inputs[0].shape, eqn.output.shape
    lead, trail = _around(old, place)
    for axis, extent in enumerate(new):
        first, last = math.prod(new[:axis]), math.prod(new[axis + 1 :])
        if lead % first == 0 and trail % last == 0:
            before, after = lead // first, trail // last
            if before * after * spread_over(old, place) == extent:
                return [Place(axis, before, after, place.shift)]
    return "spreads samples over several axes"


def _around(shape: Shape, place: Place) -> tuple[int, int]:
    """How many elements lie before the samples and behind them, in row-major order."""
    lead, trail = math.prod(shape[: place.axis]), math.prod(shape[place.axis + 1 :])
    return lead * place.before, place.after * trail


def spread_over(shape: Shape, place: Place) -> int:
    """How many places for samples there are in an array of that shape."""
    return shape[place.axis] // (place.before * place.after)


def _reduce(eqn: Equation, places: Places, counts: Counts) -> Found:
    (_, place), gone = _only(places), eqn.kwargs["axes"]
    if place.axis in gone:
        return "reduces the axis of the samples"
    return [replace(place, axis=place.axis - sum(a < place.axis for a in gone))]


def _position(eqn: Equation, places: Places, counts: Counts) -> Found:
    (_, place), gone = _only(places), eqn.kwargs["axis"]
    if place.axis == gone:
        return "looks for a place along the axis of the samples"
    return [replace(place, axis=place.axis - (gone < place.axis))]


def _root_of_squares(eqn: Equation, places: Places, counts: Counts) -> Found:
    whole, total = places
    found = [] if whole is None else _reduce(eqn, [whole], counts)
    return found if isinstance(found, str) else _same((*found, total))


def _within(eqn: Equation, places: Places, counts: Counts) -> Found:
    """Elements along some axes meet, and the result has these axes."""
    _, place = _only(places)
    return "mixes the axis of the samples" if place.axis in eqn.kwargs["axes"] else [place]


def _cumsum(eqn: Equation, places: Places, counts: Counts) -> Found:
    _, place = _only(places)
    if place.axis == eqn.kwargs["axis"]:
        return "runs along the axis of the samples"
    return [place]


def _fft(eqn: Equation, places: Places, counts: Counts) -> Found:
    _, place = _only(places)
    return "transforms the axis of the samples" if place.axis in eqn.kwargs["axes"] else [place]


def _reverse(eqn: Equation, places: Places, counts: Counts) -> Found:
    _, place = _only(places)
    return "turns the samples round" if place.axis in eqn.kwargs["axes"] else [place]


def _windows(eqn: Equation, places: Places, counts: Counts) -> Found:
    """Windows have twice as many axes in the place of those that they slide over."""
    _, place = _only(places)
    number = len(eqn.kwargs["sizes"])
    return _beside_windows(place, eqn.kwargs["axis"], number, number)


def _overlap_add(eqn: Equation, places: Places, counts: Counts) -> Found:
    _, place = _only(places)
    number = len(eqn.kwargs["extents"])
    return _beside_windows(place, eqn.kwargs["axis"], 2 * number, -number)


def _beside_windows(place: Place, axis: int, number: int, more: int) -> Found:
    if axis <= place.axis < axis + number:
        return "slides over the axis of the samples"
    if place.axis < axis:
        return [place]
    return [replace(place, axis=place.axis + more)]


def _matmul(eqn: Equation, places: Places, counts: Counts) -> Found:
    """Rows of the left and columns of the right factor stay apart, and what lies before both."""
    last = eqn.output.type.ndim - 1
    left, right = places
    if (left and left.axis == last) or (right and right.axis == last - 1):
        return "sums over the axis of the samples"
    found = _same(places)
    if isinstance(found, str) or None in places or found[0].axis < last - 1:
        return found
    return _DIFFERENT


def _concat(eqn: Equation, places: Places, counts: Counts) -> Found:
    axis, start = eqn.kwargs["axis"], 0
    moved: list[Place | None] = []
    for value, place in zip(eqn.inputs, places, strict=True):
        if place is not None and place.axis == axis:
            if not place.is_plain:
                return _PARTS
            place = replace(place, shift=place.shift - start)
        moved.append(place)
        start += value.shape[axis]
    found = _same(moved)
    return "puts samples in other places" if isinstance(found, str) else found


def _split(eqn: Equation, places: Places, counts: Counts) -> Found:
    (_, place), axis, sizes = _only(places), eqn.kwargs["axis"], eqn.kwargs["sizes"]
    if place.axis != axis:
        return [place] * len(sizes)
    if not place.is_plain:
        return _PARTS
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [replace(place, shift=place.shift + start) for start in starts]


def _pad(eqn: Equation, places: Places, counts: Counts) -> Found:
    _, place = _only(places)
    low, high = eqn.kwargs["low"][place.axis], eqn.kwargs["high"][place.axis]
    if not place.is_plain and (low, high) != (0, 0):
        return _PARTS
    return [replace(place, shift=place.shift - low)]


def _slice(eqn: Equation, places: Places, counts: Counts) -> Found:
    _, place = _only(places)
    start, size, step = (eqn.kwargs[name][place.axis] for name in ("starts", "sizes", "steps"))
    if step == 1 and size == eqn.inputs[0].shape[place.axis]:
        return [place]
    if not place.is_plain:
        return _PARTS
    if step != 1:
        return "takes samples by another step than 1"
    return [replace(place, shift=place.shift + start)]


def _slice_assign(eqn: Equation, places: Places, counts: Counts) -> Found:
    """What is assigned has its samples at other places of the result."""
    whole, part = places
    if part is not None:
        axis = part.axis
        start, step = eqn.kwargs["starts"][axis], eqn.kwargs["steps"][axis]
        if step != 1:
            return "assigns samples by another step than 1"
        if not part.is_plain and eqn.inputs[0].shape[axis] != eqn.inputs[1].shape[axis]:
            return _PARTS
        part = replace(part, shift=part.shift - start)
    return _same((whole, part))


def _gather(eqn: Equation, places: Places, counts: Counts) -> Found:
    """Indices that count the samples take each sample from itself."""
    _, place = _only(places)
    first, indices = eqn.kwargs["axis"], eqn.inputs[1:]
    if place.axis < first:
        return [place]
    if place.axis >= first + len(indices):
        shift = eqn.inputs[1].type.ndim - len(indices)
        return [replace(place, axis=place.axis + shift)]
    counted = counts.along(indices[place.axis - first], place.after)
    if counted is None or place.before != 1:
        return "takes samples by computed positions"
    axis, start = counted
    return [Place(first + axis, shift=place.shift + start)]


def _scatter_add(eqn: Equation, places: Places, counts: Counts) -> Found:
    """The axes of the indices in the second operand stand for the indexed ones of the first."""
    whole, part, *_ = places
    first, indices = eqn.kwargs["axis"], eqn.inputs[2:]
    rank, indexed = indices[0].type.ndim, range(first, first + len(indices))
    if part is not None and part.axis >= first + rank:
        part = replace(part, axis=part.axis - rank + len(indices))
    elif part is not None and part.axis >= first:
        # Of several indices one may count the samples.
        shape, extent = eqn.inputs[0].shape, eqn.inputs[1].shape[part.axis]
        goal = [
            (a, after, counted[1])
            for a, i in zip(indexed, indices, strict=True)
            for after in (1, shape[a] // extent if shape[a] % extent == 0 else 1)
            if (counted := counts.along(i, after)) is not None and counted[0] == part.axis - first
        ]
        if not goal or not part.is_plain:
            return "adds samples up at computed positions"
        axis, after, start = goal[0]
        part = Place(axis, after=after, shift=part.shift - start)
    if part is None and whole is not None and whole.axis in indexed:
        return [whole]
    return _same((whole, part))


def _placed(eqn: Equation, places: Places, counts: Counts) -> Found:
    """Leading axes of operands, along which nothing is put elsewhere, are those of the result."""
    lead = eqn.inputs[0].type.ndim - len(eqn.kwargs["strides"][0])
    if any(p is not None and p.axis >= lead for p in places):
        return "puts samples in other places"
    return _same(places)


def _stack(eqn: Equation, places: Places, counts: Counts) -> Found:
    """Matrices of a stack stay apart, and columns of right-hand sides."""
    found, last = _same(places), eqn.inputs[0].type.ndim - 1
    if isinstance(found, str):
        return found
    axis = found[0].axis
    columns = axis == last and places[0] is None and eqn.op in (solve, triangular_solve)
    if axis >= last - 1 and not columns:
        return "has a row or a column of a matrix for each sample"
    return found * len(eqn.outputs)


def _spectrum(eqn: Equation, places: Places, counts: Counts) -> Found:
    """Matrices of a stack stay apart from those of others, and vectors that belong to them."""
    found = _same(places)
    lead = max(v.type.ndim for v in eqn.inputs) - 2
    if eqn.op is not unless_any and not isinstance(found, str) and found[0].axis >= lead:
        return "has a row or a column of a matrix for each sample"
    return found


def _into_bodies(through: Callable[..., list[Place | None]]) -> _Rule:
    """The rule of a branch or a loop, which keeps samples apart if its bodies do in each trip."""

    def rule(eqn: Equation, places: Places, counts: Counts) -> _Any:
        try:
            return through(eqn, list(places), _BODIES)
        except Fault as fault:
            cause: str | Mixing = fault.cause
            return cause

    return rule


def _through_body(body: Graph, places: list[Place | None]) -> list[Place | None]:
    starts = {v: p for v, p in zip(body.inputs, places, strict=True) if p is not None}
    found = _followed(body, starts)
    if isinstance(found, Mixing):
        raise Fault(found)
    return [found.get(v) for v in body.outputs]


def _row(place: Place) -> Place:
    if place.axis == 0:
        raise Fault("goes along the axis of the samples")
    return replace(place, axis=place.axis - 1)


_BODIES = Analysis(
    _through_body,
    _row,
    lambda place: replace(place, axis=place.axis + 1),
    "moves samples from trip to trip, or in some branches only",
)


def _unchanged(eqn: Equation, places: Places, counts: Counts) -> Found:
    return _same(places)


_RULES: dict[Op, _Rule] = {
    as_function_of: _unchanged,
    as_softmax_of: _within,
    **dict.fromkeys((as_cholesky_of, as_symmetric, assumed, cholesky, cofactors, det, inv), _stack),
    **dict.fromkeys((cholesky_slope, cholesky_tangent, slogdet, solve, triangular_solve), _stack),
    **dict.fromkeys((as_spectral_tangent, as_spectral_gradient), _spectrum),
    **dict.fromkeys((if_distinct, unless_any), _spectrum),
    **dict.fromkeys((eigh, eigvalsh, pinv, qr, svd, svdvals), _stack),
    **dict.fromkeys((m.eig, m.expm, m.logm, m.lu, m.sqrtm, *m.SLOPES), _stack),
    cond: _into_bodies(through_cond),
    checkpoint: _into_bodies(through_checkpoint),
    scan: _into_bodies(through_scan),
    while_loop: _into_bodies(through_while),
    broadcast: _broadcast,
    concat: _concat,
    cumsum: _cumsum,
    rfft: _cumsum,
    irfft: _cumsum,
    fft: _fft,
    gather: _gather,
    matmul: _matmul,
    pad: _pad,
    permute: _permute,
    placed: _placed,
    argmax: _position,
    argmin: _position,
    reduce_max: _reduce,
    reduce_min: _reduce,
    reduce_prod: _reduce,
    reduce_sum: _reduce,
    reshape: _reshape,
    reverse: _reverse,
    root_of_squares: _root_of_squares,
    scatter_add: _scatter_add,
    slice_: _slice,
    slice_assign: _slice_assign,
    split: _split,
    windows: _windows,
    overlap_add: _overlap_add,
}
