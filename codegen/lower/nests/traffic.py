"""Memory traffic of lowered items: the estimate by which a schedule is run in blocks or not."""

from __future__ import annotations

from math import prod

from primgraph.codegen.ir.statements import (
    Blocks,
    Item,
    Nest,
    Nests,
    Product,
    values_written,
)
from primgraph.ir.dims import typical

# A byte in a block of rows is in the cache, and costs this share of one in memory.
_CACHED = 0.25


def traffic(plan: Nests) -> float:
    """Return the estimated bytes that the items of a plan read and write."""
    return sum(_traffic_of(plan, item) for item in plan.items)


def _traffic_of(plan: Nests, item: Item) -> float:
    written = sum(_nbytes(plan, v) for v in values_written(item))
    if isinstance(item, Blocks):
        read = sum(_nbytes(plan, rows.root) for rows in item.given.values())
        return read + written + _CACHED * traffic(item.bodies[0]) * typical(item.count)
    if isinstance(item, Nest):
        size = prod(map(typical, item.domain))
        roots = {o.root for node in item.nodes for o in node.operands if o.root >= 0}
        return written + sum(min(_nbytes(plan, v), 8 * size) for v in roots)
    if isinstance(item, Product):
        return written + _nbytes(plan, item.left.root) + _nbytes(plan, item.right.root)
    return written + sum(_nbytes(plan, v) for v in item.operands)


def _nbytes(plan: Nests, value: int) -> float:
    return typical(plan.types[value].nbytes)
