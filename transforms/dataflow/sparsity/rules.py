"""Sparsity patterns of single primitives, by their index maps.

Beside the maps only values that are known matter: positions that are read, factors of zero, and
what a condition chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, final

import numpy as np

from primgraph.base.frames import is_interruption
from primgraph.ir.facts.choices import CHOICE
from primgraph.ir.graph import Equation
from primgraph.ir.index_maps import Dependence, Index, IndexMap, Opaque, RowMajor, variables_of
from primgraph.ir.primitive import Primitive
from primgraph.sparsity import effects
from primgraph.sparsity.affine import MOST, Maps, Shape, Terms
from primgraph.sparsity.rows import Rows
from primgraph.transforms.dataflow.engine import Facts, Flow
from primgraph.transforms.dataflow.known_values import Known
from primgraph.transforms.dataflow.locality import is_elementwise
from primgraph.transforms.dataflow.sparsity.walk import Indices, Patterns, Reach, element_numbers


@final
@dataclass(slots=True)
class _Site:
    """An equation, the constants known at compile time, and the analysis."""

    walk: Sparsity
    eqn: Equation
    known: Known

    @property
    def params(self) -> dict[str, Any]:
        return self.eqn.kwargs

    def shape(self, position: int) -> Shape:
        return self.eqn.inputs[position].shape

    def array(self, position: int) -> Any:
        return self.known.array(self.eqn.inputs[position])


@final
class Sparsity(Patterns):
    """Dependencies of the values of a graph, by the index maps of primitives."""

    __slots__ = ()

    def transfer(self, eqn: Equation, given: Facts[Reach], flow: Flow[Reach]) -> list[Reach | None]:
        site = _Site(self, eqn, flow.scope)
        operands = [(i, r) for i, r in enumerate(given) if r is not None]
        return [
            self.join(v, [_apply_index_map(site, k, i, r) for i, r in operands])
            for k, v in enumerate(eqn.outputs)
        ]


def _apply_index_map(site: _Site, k: int, i: int, reach: Reach) -> Reach | None:
    """Apply the index map of a primitive to the pattern of its operand."""
    eqn, op = site.eqn, site.eqn.op
    assert isinstance(op, Primitive)
    if op.is_flat(i):
        return None
    if op.linear == "each":
        found: Reach | None = _mask_by_factor(site, i, reach)
        if found is not NotImplemented:
            return found
    if is_elementwise(eqn):
        choice, linear = op.fact(CHOICE), op.linear_operands(len(eqn.inputs), site.params)
        if choice is not None and choice.by is not None:
            return _mask_by_operand(site, choice.by, choice.sides[i], reach)
        # Derivatives along other operands are multiples of the only linear one.
        only = len(linear) == 1 and linear[0] != i
        return _mask_by_operand(site, linear[0], True, reach) if only else reach
    operands, results = (tuple([v.type for v in vs]) for vs in (eqn.inputs, eqn.outputs))
    dependence = op.dependence(k, i, operands, results, site.params)
    if not isinstance(reach, Rows):
        moved = _compose_maps(dependence, reach, site.shape(i))
        if moved is not None:
            return moved
    if isinstance(dependence, RowMajor):
        return site.walk.rows(reach, site.shape(i)) or site.walk.all_columns(results[k].shape)
    if op.moves:
        places = _places(site, k, i)
        if places is not None:
            return _gather_rows(site, reach, site.shape(i), places)
    return _compose_rows(site, dependence, k, i, reach)


def _compose_maps(dependence: Dependence, reach: Maps, shape: Shape) -> Maps | None:
    """Affine maps behind an affine index map; None where the result is not regular."""
    if isinstance(dependence, RowMajor):
        return effects.reshape_maps(reach, shape, dependence.result)
    if isinstance(dependence, Opaque) or dependence.order is not None:
        return None
    source, target = _terms(dependence.operand), _terms(dependence.result)
    if source is None or target is None:
        return None
    hole = dependence.hole
    if hole is not None and any(s != 1 < n for s, n in zip(hole.steps, hole.sizes, strict=True)):
        return None
    found = effects.map_elements(reach, dependence.extents, shape, source, target)
    if found is not None and hole is not None and 0 not in hole.sizes:
        ends = tuple([a + n for a, n in zip(hole.starts, hole.sizes, strict=True)])
        found = effects.cut_out_box(found, hole.starts, ends)
    return found if found is not None and len(found) <= MOST else None


def _terms(places: Any) -> list[Terms] | None:
    """Places along axes as plain numbers; None where some are looked up."""
    if not all(isinstance(p, Index) for p in places):
        return None
    return [(p.start, p.terms) for p in places]


def _places(site: _Site, k: int, i: int) -> Indices | None:
    """Return the operand element that each element of result `k` copies, negative if none."""
    arrays: list[Any] = []
    for n, value in enumerate(site.eqn.inputs):
        if n == i:
            arrays.append(element_numbers(value.shape) + 1)
        elif value.type.is_inexact:
            arrays.append(np.broadcast_to(np.int64(0), value.shape))
        else:
            found = site.array(n)
            if found is None:
                return None
            arrays.append(found)
    try:
        found = site.eqn.op.evaluate(arrays, site.params)[k]
    except Exception as error:
        # An index out of range raises when the program runs.
        if is_interruption(error):
            raise
        return None
    return np.asarray(found, np.int64) - 1


def _gather_rows(site: _Site, reach: Reach, shape: Shape, places: Indices) -> Reach:
    walk = site.walk
    rows = walk.rows(reach, shape)
    return walk.all_columns(places.shape) if rows is None else walk.take_reach(rows, places)


def _compose_rows(
    site: _Site, dependence: Dependence, k: int, i: int, reach: Reach
) -> Reach | None:
    """Pairs one by one where they say more than axes with the same places do, and if that pays."""
    shape, result = site.shape(i), site.eqn.outputs[k].shape
    if not isinstance(dependence, IndexMap):
        return site.walk.map_tied_axes(reach, shape, result, (None,) * len(shape))
    arrays = {n: site.array(n) for n in dependence.lookups()}
    loose = dependence.drop_lookups(result, shape)
    ties = _ties(loose)
    irregular = ties is None or dependence.order is not None or bool(arrays)
    count = prod(dependence.extents)
    known = not any(a is None for a in arrays.values())
    if irregular and known and 2 * count <= site.walk.most and site.walk.pays(2 * count):
        try:
            pairs = dependence.pairs(result, shape, arrays)
        except IndexError:
            # The program tells of it when it runs.
            return site.walk.all_columns(result)
        return site.walk.compose_reach(reach, shape, pairs, result)
    return site.walk.map_tied_axes(reach, shape, result, ties or (None,) * len(shape))


def _ties(found: IndexMap) -> list[int | None] | None:
    """For each axis of the operand that of the result with the same places, or None if all meet.

    None in place of these where an axis goes by other steps.
    """
    own = {}
    for axis, place in enumerate(found.result):
        if not isinstance(place, Index) or place.start or place.variable is None:
            return None
        own[place.variable] = axis
    ties = []
    for place in found.operand:
        if not isinstance(place, Index) or place.start or place.variable is None:
            return None
        ties.append(own.get(place.variable))
    return ties


def _mask_by_factor(site: _Site, i: int, reach: Reach) -> Any:
    """Only where the other factor is not known to be zero; `NotImplemented` if it is not known."""
    eqn, op = site.eqn, site.eqn.op
    assert isinstance(op, Primitive)
    if op.elementwise:
        return _mask_by_operand(site, 1 - i, True, reach)
    array = site.array(1 - i)
    nonzero = None if array is None else array != 0
    if nonzero is None or bool(nonzero.all()):
        return NotImplemented
    types, results = tuple([v.type for v in eqn.inputs]), (eqn.output.type,)
    own, other = (op.dependence(0, n, types, results, site.params) for n in (i, 1 - i))
    assert isinstance(own, IndexMap)
    assert isinstance(other, IndexMap)
    found = np.nonzero(nonzero)
    values = {
        p.variable: at
        for p, at in zip(other.operand, found, strict=True)
        if isinstance(p, Index) and p.variable is not None
    }
    rest = prod(n for v, n in enumerate(own.extents) if v not in variables_of(other.operand))
    total = len(found[0]) * rest
    if total > site.walk.most or not site.walk.pays(total):
        return NotImplemented
    pairs = own.pairs(eqn.output.shape, site.shape(i), values=values)
    return site.walk.compose_reach(reach, site.shape(i), pairs, eqn.output.shape)


def _mask_by_operand(site: _Site, other: int, nonzero: bool, reach: Reach) -> Reach | None:
    """Keep `reach` where an operand is nonzero, or else where it is zero, if that is known."""
    value = site.eqn.inputs[other]
    number = site.known.number(value)
    if number is not None:
        return reach if (number != 0) == nonzero else None
    array = site.known.array(value)
    return reach if array is None else site.walk.mask_reach(reach, (array != 0) == nonzero)
