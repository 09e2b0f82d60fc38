"""Index maps: which elements of an operand each element of a result depends on, as data.

A map is a relation between two index spaces, given over a box of integer variables: at each point
of the box, the result element at one affine index depends on the operand element at another. A
permutation shares all variables, a reduction has variables that only the operand uses, a broadcast
some that only the result uses, a product contracts those that both operands and no result use.
(Affine index expressions with indirection are those of pytato's index lambdas; the relation
over a common box is the access relation of polyhedral compilers.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.types import Shape
from primgraph.ir.views import Expand, Permute, Reshape, Slice, View

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"


@final
@dataclass(frozen=True, slots=True)
class Index:
    """The place along one axis: `start` plus the sum of `step * variable` over `terms`."""

    start: int = 0
    terms: tuple[tuple[int, int], ...] = ()

    @property
    def variable(self) -> int | None:
        """The variable that the place is, up to a constant; None for anything else."""
        return self.terms[0][0] if len(self.terms) == 1 and self.terms[0][1] == 1 else None


@final
@dataclass(frozen=True, slots=True)
class Lookup:
    """The place along one axis that is read from an operand, at the place of `variables`."""

    operand: int
    variables: tuple[int, ...]


Place: TypeAlias = Index | Lookup


@final
@dataclass(frozen=True, slots=True)
class Strided:
    """The elements of an array at `starts`, `steps` apart, `sizes` of them along each axis."""

    starts: Shape
    sizes: Shape
    steps: Shape


@final
@dataclass(frozen=True, slots=True)
class IndexMap:
    """Pairs of a result element and an operand element, one for each point of a box.

    Variable `v` counts from 0 to before `extents[v]`. `order` names two variables of which the
    first is at most the second at all points. `hole` has elements of the result that depend on
    none of the operand. `exact` tells that all pairs depend on each other in general; otherwise
    all that do are among these pairs.
    """

    extents: Shape
    result: tuple[Place, ...]
    operand: tuple[Place, ...]
    order: tuple[int, int] | None = None
    hole: Strided | None = None
    exact: bool = True

    def drop_lookups(self, result: Shape, operand: Shape) -> IndexMap:
        """The map with any place along the axis in place of each that is looked up."""
        extents, sides = list(self.extents), []
        for places, shape in ((self.result, result), (self.operand, operand)):
            side: list[Place] = []
            for place, extent in zip(places, shape, strict=True):
                if isinstance(place, Lookup):
                    place = Index(0, ((len(extents), 1),))
                    extents.append(extent)
                side.append(place)
            sides.append(tuple(side))
        changed = len(extents) != len(self.extents)
        return replace(
            self,
            extents=tuple(extents),
            result=sides[0],
            operand=sides[1],
            exact=self.exact and not changed,
        )

    def lookups(self) -> set[int]:
        """The operands that places are read from."""
        return {p.operand for p in (*self.result, *self.operand) if isinstance(p, Lookup)}

    def shared_variables(self) -> set[int]:
        """The variables that both the result and the operand use."""
        return variables_of(self.result) & variables_of(self.operand)

    def pairs(
        self,
        result: Shape,
        operand: Shape,
        arrays: Mapping[int, Any] | None = None,
        values: Mapping[int, Numbers] | None = None,
    ) -> tuple[Numbers, Numbers]:
        """Row-major numbers of the result and operand elements of all pairs.

        `arrays` has the operands that places are read from. `values` has some of the variables at
        the points wanted, as arrays of one length, in place of all that they may be.
        """
        given = dict(values or {})
        free = [v for v in range(len(self.extents)) if v not in given]
        grid = {v: given[v].reshape(-1, *[1] * len(free)) for v in given}
        for n, v in enumerate(free):
            along = np.arange(self.extents[v], dtype=np.int64)
            shape = [1, *[1] * len(free)]
            shape[n + 1] = -1
            grid[v] = along.reshape(shape)
        size = len(next(iter(given.values()))) if given else 1
        whole = (size, *[self.extents[v] for v in free])
        target = numbers_at(self.result, result, grid, arrays or {})
        source = numbers_at(self.operand, operand, grid, arrays or {})
        target, source = (np.broadcast_to(n, whole).reshape(-1) for n in (target, source))
        if self.order is not None:
            first, second = self.order
            kept = np.broadcast_to(grid[first] <= grid[second], whole).reshape(-1)
            target, source = target[kept], source[kept]
        if self.hole is not None:
            kept = ~self._holes(result)[target]
            target, source = target[kept], source[kept]
        return target, source

    def _holes(self, result: Shape) -> np.ndarray[Any, np.dtype[np.bool_]]:
        assert self.hole is not None
        found = np.zeros(result, np.bool_)
        hole = self.hole
        ranges = zip(hole.starts, hole.sizes, hole.steps, strict=True)
        found[np.ix_(*[start + step * np.arange(n) for start, n, step in ranges])] = True
        return found.reshape(-1)


@final
@dataclass(frozen=True, slots=True)
class RowMajor:
    """The same elements in row-major order: those of `operand` are those of `result`."""

    result: Shape
    operand: Shape

    def refine_axes(self) -> IndexMap | None:
        """The map over axes that both shapes are products of; None if there are none such."""
        extents: list[int] = []
        sides: list[list[tuple[int, ...]]] = [[], []]
        rests = [list(self.result), list(self.operand)]
        open_: list[list[int]] = [[], []]
        left = [1, 1]
        while any(rests) or left != [1, 1]:
            for side in (0, 1):
                if left[side] == 1 and rests[side]:
                    if open_[side]:
                        sides[side].insert(0, tuple(open_[side]))
                    open_[side], left[side] = [], rests[side].pop()
                    if left[side] == 1:
                        sides[side].insert(0, ())
                        open_[side] = []
            a, b = left
            if 1 in (a, b):
                if (a == 1 and not rests[0] and b != 1) or (b == 1 and not rests[1] and a != 1):
                    return None
                continue
            small = min(a, b)
            if a % small or b % small:
                return None
            for side in (0, 1):
                open_[side].insert(0, len(extents))
                left[side] //= small
            extents.append(small)
        for side in (0, 1):
            if open_[side]:
                sides[side].insert(0, tuple(open_[side]))
        result, operand = (self._indices(s, extents) for s in sides)
        return IndexMap(tuple(extents), result, operand)

    @staticmethod
    def _indices(side: list[tuple[int, ...]], extents: list[int]) -> tuple[Index, ...]:
        found = []
        for variables in side:
            steps = [prod(extents[w] for w in variables[n + 1 :]) for n in range(len(variables))]
            found.append(Index(0, tuple(zip(variables, steps, strict=True))))
        return tuple(found)


@final
@dataclass(frozen=True, slots=True)
class Opaque:
    """Any element of the result may depend on any of the operand, for the `reason` given."""

    reason: str


Dependence: TypeAlias = IndexMap | RowMajor | Opaque


def variables_of(places: Iterable[Place]) -> set[int]:
    """The variables that places use."""
    found: set[int] = set()
    for place in places:
        if isinstance(place, Lookup):
            found.update(place.variables)
        else:
            found.update(v for v, _ in place.terms)
    return found


def numbers_at(
    places: Sequence[Place],
    shape: Shape,
    grid: Mapping[int, Numbers],
    arrays: Mapping[int, Any],
) -> Numbers:
    """Row-major numbers of elements, at points whose variables are in `grid`.

    Raises `IndexError` for a place that is looked up and not there.
    """
    total: Numbers = np.zeros((), np.int64)
    for place, extent in zip(places, shape, strict=True):
        if isinstance(place, Lookup):
            found = np.asarray(arrays[place.operand])[tuple([grid[v] for v in place.variables])]
            at = found.astype(np.int64)
            if bool(np.any((at < -extent) | (at >= extent))):
                raise IndexError("an index is out of range")
            at = np.where(at < 0, at + extent, at)
        else:
            at = np.asarray(place.start, np.int64)
            for v, step in place.terms:
                at = at + step * grid[v]
        total = total * extent + at
    return total


# Maps of common kinds.


def identity(shape: Shape) -> IndexMap:
    """Each element of the result with the operand element at the same place."""
    places = axes_at(range(len(shape)))
    return IndexMap(shape, places, places)


def axes_at(variables: Iterable[int]) -> tuple[Index, ...]:
    """Places that are variables."""
    return tuple([Index(0, ((v, 1),)) for v in variables])


def tied_map(
    operand: Shape, result: Shape, axes: Sequence[int | None], *, exact: bool = True
) -> IndexMap:
    """Elements at the same place along tied axes, whatever their places along the others.

    `axes` has for each axis of the operand that of the result, or None.
    """
    extents, places = list(result), []
    for axis, extent in zip(axes, operand, strict=True):
        if axis is None:
            axis = len(extents)
            extents.append(extent)
        places.append(axis)
    return IndexMap(tuple(extents), axes_at(range(len(result))), axes_at(places), exact=exact)


def reduction_map(
    operand: Shape, result: Shape, axes: Sequence[int], *, exact: bool = True
) -> IndexMap:
    """Elements of the result with all operand elements along `axes`, which the result lacks."""
    kept = iter(range(len(result)))
    ties = [None if a in axes else next(kept) for a in range(len(operand))]
    return tied_map(operand, result, ties, exact=exact)


def mixed_along(operand: Shape, result: Shape, axes: Sequence[int]) -> IndexMap:
    """Elements with all operand elements along `axes`, which the result has as well."""
    ties = [None if a in axes else a for a in range(len(operand))]
    return tied_map(operand, result, ties, exact=False)


def running_map(shape: Shape, axis: int, *, reverse: bool = False, exact: bool = True) -> IndexMap:
    """Elements with those before them along one axis and themselves; behind them if `reverse`."""
    whole = mixed_along(shape, shape, (axis,))
    own = len(shape)
    return replace(whole, order=(axis, own) if reverse else (own, axis), exact=exact)


def embedding_map(operand: Shape, starts: Shape, steps: Shape | None = None) -> IndexMap:
    """The operand at `starts` in the result, its elements `steps` apart."""
    apart = steps or (1,) * len(operand)
    places = [
        Index(start, ((v, step),))
        for v, (start, step) in enumerate(zip(starts, apart, strict=True))
    ]
    return IndexMap(operand, tuple(places), axes_at(range(len(operand))))


def view_map(view: View | None, operand: Shape, result: Shape) -> IndexMap | RowMajor:
    """The map of a result that is the operand, seen in another way."""
    rank = len(result)
    match view:
        case Reshape():
            return RowMajor(result, operand)
        case Permute(axes):
            places: list[Index] = [Index()] * rank
            for v, axis in enumerate(axes):
                places[axis] = Index(0, ((v, 1),))
            return IndexMap(result, axes_at(range(rank)), tuple(places))
        case Slice(ranges):
            ends = [*ranges, *[(None, None, 1)] * (rank - len(ranges))]
            found = [
                Index(_first(start, step, n), ((v, step),))
                for v, ((start, _, step), n) in enumerate(zip(ends, operand, strict=True))
            ]
            return IndexMap(result, axes_at(range(rank)), tuple(found))
        case Expand(new):
            seen = [*new, *[False] * (len(operand) - new.count(False))]
            lead = rank - len(seen)
            return IndexMap(
                result,
                axes_at(range(rank)),
                axes_at(lead + a for a, is_new in enumerate(seen) if not is_new),
            )
        case None:
            lead = rank - len(operand)
            return IndexMap(result, axes_at(range(rank)), axes_at(range(lead, rank)))


def _first(start: int | None, step: int, extent: int) -> int:
    if start is None:
        return 0 if step > 0 else extent - 1
    return start if is_at_least(start, 0) else extent + start
