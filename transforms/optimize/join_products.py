"""Merging of matrix products: products of parts of an array, and sums of products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.index_maps import Index, IndexMap, RowMajor, axes_at
from primgraph.ir.rebuild import NOWHERE, copy, rebuild
from primgraph.primitives.elementwise import SIGNS, add
from primgraph.primitives.linear_algebra.products import (
    CONTRACTS,
    matmul,
    swap_last,
    transpose_source,
)
from primgraph.primitives.shapes import concat, reshape, slice_
from primgraph.transforms.dataflow.contract import primitives_only, transform


@transform(requires=(primitives_only,), ensures=(primitives_only,))
def join_products(graph: Graph) -> Graph:
    """Merge products of parts of an array with one matrix, and sums of products.

    `a[:m] @ w` and `a[m:] @ w` are rows of `a @ w`; and `a.T @ b + c.T @ d`, where the sums of
    the products are shorter than the sides of the results, is the product of `a` above `c` with
    `b` above `d`. As real numbers both are the same; rounding differs.

    >>> graph = pg.trace(lambda a, w: (a[:2] @ w, a[2:] @ w), pg.spec((4, 3)), pg.spec((3, 5)))
    >>> print(pg.transforms.join_products(graph))
    graph f(%a: f64[4,3], %w: f64[3,5]) {
      %0: f64[2,3] = slice(%a, sizes=(2, 3), starts=(0, 0), steps=(1, 1))
      %1: f64[4,3] = reshape(%a, shape=(4, 3))
      %2: f64[4,5] = matmul(%1, %w)
      %3: f64[2,5] = slice(%2, sizes=(2, 5), starts=(0, 0), steps=(1, 1))
      %4: f64[2,3] = slice(%a, sizes=(2, 3), starts=(2, 0), steps=(1, 1))
      %5: f64[2,5] = slice(%2, sizes=(2, 5), starts=(2, 0), steps=(1, 1))
      return %3, %5
    }
    """
    for treat in (_join_part_products, _join_summed_products):
        graph = treat(graph)
    return graph


# Products of parts of one array with the same matrix.


class _Rows(NamedTuple):
    """Rows `start` to `stop` of `base` reshaped to the columns of the factor."""

    base: Value
    start: int
    stop: int


def _join_part_products(graph: Graph) -> Graph:
    made = {v: e for e in graph.body for v in e.outputs}
    groups: dict[tuple[Value, Value], dict[Equation, _Rows]] = {}
    for eqn in graph.body:
        rows = _rows(eqn.inputs[0], made) if _is_plain_product(eqn) else None
        if rows is not None:
            groups.setdefault((rows.base, eqn.inputs[1]), {})[eqn] = rows
    chosen = {e: (key, g[e]) for key, g in groups.items() if _fill_base(key[0], g) for e in g}
    if not chosen:
        return graph
    whole: dict[tuple[Value, Value], Value] = {}
    builder, moved = rebuild(graph)
    with builder:
        for eqn in graph.body:
            if eqn not in chosen:
                copy(builder, eqn, moved)
                continue
            builder.source = eqn.source or NOWHERE
            key, rows = chosen[eqn]
            if key not in whole:
                base, matrix = (moved[v] for v in key)
                columns = matrix.shape[0]
                flat = reshape(base, shape=(base.type.size // columns, columns))
                whole[key] = matmul(flat, matrix)
            moved[eqn.output] = slice_(
                whole[key],
                starts=(rows.start, 0),
                sizes=(rows.stop - rows.start, eqn.output.shape[1]),
                steps=(1, 1),
            )
    return builder.graph([moved[v] for v in graph.outputs])


def _is_plain_product(eqn: Equation) -> bool:
    return eqn.op.fact(CONTRACTS) and eqn.output.type.ndim == 2 and eqn.output.type.is_float


def _rows(value: Value, made: dict[Value, Equation]) -> _Rows | None:
    """Return the rows of a larger array that `value` consists of, or None."""
    columns, eqn, part = value.shape[1], made.get(value), value
    if eqn is not None and isinstance(eqn.dependence(eqn.outputs.index(part), 0), RowMajor):
        part = eqn.inputs[0]
        eqn = made.get(part)
    first = None if eqn is None or value.type.size == 0 else _first_row(eqn, part)
    if eqn is None or first is None:
        return None
    base = eqn.inputs[0]
    each = base.type.size // base.shape[0]
    if each % columns:
        return None
    start = first * each // columns
    return _Rows(base, start, start + value.shape[0])


def _first_row(eqn: Equation, part: Value) -> int | None:
    """Return the first of the consecutive rows of an array that a view consists of, or None."""
    shown = eqn.dependence(eqn.outputs.index(part), 0) if eqn.op.is_view else None
    if not isinstance(shown, IndexMap) or not shown.operand:
        return None
    axes, (first, *others) = axes_at(range(part.type.ndim)), shown.operand
    alike = part.shape[1:] == eqn.inputs[0].shape[1:] and (*others,) == axes[1:]
    if not (alike and isinstance(first, Index) and first.variable == 0 and shown.result == axes):
        return None
    return first.start


def _fill_base(base: Value, group: dict[Equation, _Rows]) -> bool:
    """Return whether several products together cover all rows exactly once."""
    reached = 0
    for rows in sorted(group.values(), key=lambda r: r.start):
        if rows.start != reached:
            return False
        reached = rows.stop
    columns = next(iter(group)).inputs[1].shape[0]
    return len(group) > 1 and reached * columns == base.type.size


# Sums of products.


class _Sum(NamedTuple):
    """A sum: the products to be joined, and the remaining terms.

    `inner` are the equations that are replaced, without the last addition.
    """

    products: list[Equation]
    rest: list[Value]
    inner: list[Equation]


def _join_summed_products(graph: Graph) -> Graph:
    sums = _sums(graph)
    if not sums:
        return graph
    inner = {e for found in sums.values() for e in found.inner}
    builder, moved = rebuild(graph)
    with builder:
        for eqn in graph.body:
            if eqn in inner:
                continue
            if eqn not in sums:
                copy(builder, eqn, moved)
                continue
            builder.source = eqn.source or NOWHERE
            found = sums[eqn]
            total = _join_factors(builder, [[moved[v] for v in e.inputs] for e in found.products])
            for value in found.rest:
                total = add(moved[value], total)
            moved[eqn.output] = total
    return builder.graph([moved[v] for v in graph.outputs])


def _sums(graph: Graph) -> dict[Equation, _Sum]:
    """Return sums with several products that are worth joining, by their last equation."""
    reads = Counter(chain(graph.outputs, chain.from_iterable(e.inputs for e in graph.body)))
    made = {e.outputs[0]: e for e in graph.body}
    place = {v: i for i, e in enumerate(graph.body) for v in e.outputs}
    inside: set[Equation] = set()
    sums: dict[Equation, _Sum] = {}

    def origin(product: Equation) -> int:
        """Return the position of the left factor's origin, which orders the parts of an array."""
        x = product.inputs[0]
        return place.get(transpose_source(x, made.get) or x, -1)

    for eqn in reversed(graph.body):
        if not _is_sum(eqn) or eqn in inside:
            continue
        terms, within = _terms(eqn, made, reads)
        inside.update(within)
        products = [made[v] for v in terms if reads[v] == 1 and _pays(made.get(v))]
        if len(products) > 1:
            joined = {e.output for e in products}
            rest = [v for v in terms if v not in joined]
            sums[eqn] = _Sum(sorted(products, key=origin), rest, [*within, *products])
    return sums


def _is_sum(eqn: Equation) -> bool:
    return eqn.op.fact(SIGNS) == (1, 1)


def _terms(
    root: Equation, made: dict[Value, Equation], reads: Counter[Value]
) -> tuple[list[Value], list[Equation]]:
    """Return the terms of the sum `root` in order, and its inner additions."""
    terms: list[Value] = []
    within: list[Equation] = []
    waiting = list(reversed(root.inputs))
    while waiting:
        value = waiting.pop()
        eqn = made.get(value)
        if eqn is None or not _is_sum(eqn) or reads[value] > 1:
            terms.append(value)
        else:
            within.append(eqn)
            waiting += reversed(eqn.inputs)
    return terms, within


def _pays(eqn: Equation | None) -> bool:
    """Return whether copying the factors is cheaper than adding the product to others."""
    if eqn is None or not _is_plain_product(eqn):
        return False
    (rows, inner), columns = eqn.inputs[0].shape, eqn.output.shape[1]
    return inner * (rows + columns) < rows * columns


def _join_factors(builder: Builder, factors: Sequence[Sequence[Value]]) -> Value:
    """Return the sum of the products of these pairs as one product."""
    left, right = zip(*factors, strict=True)
    swapped = [transpose_source(x, builder.definition) for x in left]
    columns = [x for x in swapped if x is not None]
    below = concat(*right, axis=0)
    if len(columns) == len(left):
        beside = swap_last(concat(*columns, axis=0))
    else:
        beside = concat(*left, axis=1)
    return matmul(beside, below)
