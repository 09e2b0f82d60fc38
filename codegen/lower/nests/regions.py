"""Cache blocking in native code: steps that run together for one block of rows at a time.

A region of the planner becomes a function for one block. Its values with rows are small, and stay
in cache from one nest or product to the next. Contractions over rows are accumulated block by block
within a group of blocks, and then group by group. The number of groups depends on shapes alone, so
that the number of threads changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import ceil, prod
from typing import NamedTuple, TypeAlias

from primgraph.codegen.ir.access import Access, loop_strides, row_major, whole
from primgraph.codegen.ir.axis_semantics import restrict_rows
from primgraph.codegen.ir.c_extents import is_one, is_zero
from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.schedule import Form, Schedule, Step, schedule
from primgraph.codegen.ir.statements import (
    Blocks,
    Control,
    HostCall,
    Item,
    Nest,
    Nests,
    Node,
    Product,
    Region,
    Routine,
    values_written,
)
from primgraph.codegen.lower.arrays.fusion_groups import arrange_regions
from primgraph.codegen.lower.nests.lowering_state import (
    LoweringState,
    constants_of,
    copy_value,
    memory_access,
)
from primgraph.codegen.ops.table import CARDS
from primgraph.errors import PrimgraphError
from primgraph.ir.dims import Dim, typical
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.sizes import type_at
from primgraph.ir.types import larger, smaller
from primgraph.primitives.linear_algebra.products import CONTRACTS

Add: TypeAlias = Callable[[LoweringState, Step], None]

# Conservative cache size of any machine, so that results are the same on all, and block sizes that
# suit products. The share is a minimum cost of a group, in nanoseconds of NumPy.
LIMITS = Limits(
    blas=False,
    cache=1 << 19,
    least_bytes=1 << 14,
    least_block=1 << 15,
    least_share=200_000,
    least_steps=1,
)
# Maximum number of groups, and of bytes of their totals. Clearing and adding a byte costs so many
# nanoseconds; at most this fraction of the work is spent on it.
_GROUPS, _MOST_ADDED = 16, 1 << 22
_ADDED, _ADDING = 0.03, 1 / 64
# Rows per tile of a matrix product.
_TILE = 8

# A byte in a block of rows is in the cache, and costs this share of one in memory.
_CACHED = 0.25


_KINDS = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min"}


def regions_of(steps: Schedule, limits: Limits) -> tuple[Schedule, tuple[Region, ...]]:
    """Return the steps, reordered, and those regions of them that may run in blocks."""
    if any(t.names for t in steps.types):
        return arrange_symbolic_regions(steps, limits, CARDS)
    return arrange_regions(steps, limits, CARDS)


def add_blocks(draft: LoweringState, region: Region, limits: Limits, add: Add) -> bool:
    """Lower a region to blocks; return whether that is possible."""
    rows = region.rows if limits.rows else _rows(region)
    rest = region.extent % rows
    bodies, given = list[Nests](), list[tuple[int, int | None]]()
    block = _local(draft.schedule, region, rows)
    if any(t.names for t in block.steps.types):
        # The number of rows of a block would depend on other sizes.
        return False
    for n in (rows,) if is_zero(rest) else (rows, rest):
        local = _local(draft.schedule, region, n)
        given = local.given
        _lay_factors(draft, local.steps, given)
        body = _body(draft, region, local, add)
        if body is None:
            return False
        bodies.append(body)
    groups = _groups(draft, region, block.steps, rows, limits)
    if limits.rows is None and is_one(groups) and len(bodies[0].items) == 1:
        # A single item has no other item to share the cache with.
        return False
    at = len(draft.items)
    places = {k: _rows_of(draft, v, axis, at) for k, (v, axis) in enumerate(given)
              if v not in draft.numbers}  # fmt: skip
    kept = [Access(v, 0, (row_major(draft.types[v].shape)[region.axis[v]],)) for v in region.kept]
    totals = {v: _KINDS[combine] for v, combine in region.totals.items()}
    for v in (*totals, *region.kept):
        draft.last_item(v, at)
    draft.reduced.update(totals, region.kept)
    constants = [constants_of(draft, body, at) for body in bodies]
    item = Blocks(
        region.extent, rows, groups, tuple(bodies), places, totals, tuple(kept), tuple(constants)
    )
    draft.items.append(item)
    for i in region.views:
        add(draft, draft.schedule.steps[i])
    return True


def _rows(region: Region) -> int:
    """Return the rows per block: near the planner's choice, with equal blocks if possible."""
    extent, wanted = region.extent, max(region.rows, 1)
    for rows in range(wanted, max(wanted // 2, 1), -1) if type(extent) is int else ():
        if extent % rows == 0 and (rows % _TILE == 0 or rows < _TILE):
            return rows
    return max(wanted - wanted % _TILE, min(wanted, _TILE))


def _groups(
    draft: LoweringState, region: Region, block: Schedule, rows: int, limits: Limits
) -> int:
    """Return the number of groups of blocks, which may be symbolic."""
    blocks = (region.extent + (rows - 1)) // rows
    added = sum(draft.types[v].nbytes for v in region.totals)
    most = min(_GROUPS, _MOST_ADDED // added if added else _GROUPS)
    # Minimum work of a group.
    least = max(limits.least_share, _ADDED * added / _ADDING)
    if type(blocks) is Dim:
        share = max(ceil(least / max(_work(block, block.steps), 1)), 1)
        return smaller(larger(blocks // share, 1), max(most, 1))
    work = _work(draft.schedule, draft.schedule.steps[region.start : region.stop])
    return max(1, min(blocks, most, int(work / least) if least else blocks))


def _work(schedule: Schedule, steps: Sequence[Step]) -> float:
    """Return the estimated nanoseconds of these steps."""
    return sum(CARDS[s.op].nanoseconds(s) for s in steps if not schedule.sees(s))


class _Local(NamedTuple):
    """The steps of one block, and the outer values it is `given`.

    A value is given as rows along an axis, or whole (None). The outputs are totals and kept rows.
    """

    steps: Schedule
    given: list[tuple[int, int | None]]


def _local(steps: Schedule, region: Region, rows: int) -> _Local:
    made: dict[int, Value] = {}
    given: dict[tuple[int, int | None], Value] = {}
    body: list[Equation] = []
    for i in range(region.start, region.stop):
        step, role = steps.steps[i], region.roles[i - region.start]
        eqn = restrict_rows(step, CARDS[step.op].blocking, role, rows).eqn
        inputs = [
            made[v] if v in made else given.setdefault((v, axis), fresh)
            for v, axis, fresh in zip(step.inputs, role.operands, eqn.inputs, strict=True)
        ]
        body.append(Equation(eqn.op, tuple(inputs), eqn.params, eqn.outputs, eqn.source))
        made.update(zip(step.outputs, eqn.outputs, strict=True))
    outputs = [made[v] for v in (*region.totals, *region.kept)]
    return _Local(schedule(Graph(given.values(), body, outputs)), list(given))


def _lay_factors(
    draft: LoweringState, steps: Schedule, given: list[tuple[int, int | None]]
) -> None:
    """Copy column-major matrices that each block reads as a whole to row-major order."""
    for step in steps.steps:
        v = step.inputs[-1]
        if not step.op.fact(CONTRACTS) or v >= len(given) or given[v][1] is not None:
            continue
        value = given[v][0]
        if value not in draft.numbers and draft.access[value].strides[-1] != 1:
            draft.access[value] = whole(copy_value(draft, value), draft.types[value].shape)


def _body(draft: LoweringState, region: Region, local: _Local, add: Add) -> Nests | None:
    """Lower one block; None if native code cannot do all of it."""
    steps = local.steps
    inside = LoweringState(steps)
    for k, (v, _) in enumerate(local.given):
        if v in draft.numbers:
            inside.numbers[k] = draft.numbers[v]
            if v in draft.exact:
                inside.exact[k] = draft.exact[v]
            del inside.access[k]
        else:
            inside.access[k] = Access(k, 0, draft.access[v].strides)
    for step in steps.steps:
        add(inside, step)
    count = len(region.totals)
    totals, kept = steps.outputs[:count], steps.outputs[count:]
    alone = any(isinstance(item, HostCall | Control | Routine) for item in inside.items)
    if alone or not set(_accumulated_values(inside)).issuperset(totals):
        return None
    outputs = list(totals)
    for v, value in zip(kept, region.kept, strict=True):
        axis = region.axis[value]
        if axis:
            outputs.append(_store_strided(inside, v, draft.types[value].shape))
            continue
        root = inside.own_memory(v)
        outputs.append(copy_value(inside, v) if root is None or root in outputs else root)
        inside.store_value(outputs[-1])
    return inside.finish_nests(outputs, set(totals))


def _accumulated_values(draft: LoweringState) -> list[int]:
    """Return the values that can be accumulated in place."""
    found = []
    for item in draft.items:
        if isinstance(item, Product):
            found.append(item.value)
        elif isinstance(item, Nest):
            found += [n.value for n in item.nodes if n.kind in _KINDS.values()]
    return found


def _store_strided(draft: LoweringState, value: int, shape: Sequence[int]) -> int:
    """Store a value into a larger one of `shape`, whose rows are not contiguous."""
    type = draft.types[value]
    spread = draft.new_value(type.with_shape(tuple(shape)))
    at = draft.nest_for(type.shape, (value,), draft.after_numpy)
    operand = draft.operand(value, type.shape, at)
    along = loop_strides(row_major(shape), type.shape)
    draft.node(at, Node(None, spread, "put", "", (operand,), along))
    return spread


def _rows_of(draft: LoweringState, value: int, axis: int | None, at: int) -> Access:
    access = memory_access(draft, value, at)
    return Access(access.root, access.offset, (0 if axis is None else access.strides[axis],))


def traffic(plan: Nests) -> float:
    """Return the estimated bytes that the items of a plan read and write."""
    return sum(_traffic_of(plan, item) for item in plan.items)


def _traffic_of(plan: Nests, item: Item) -> float:
    written = sum(_nbytes(plan, v) for v in values_written(item))
    if isinstance(item, Blocks):
        # A matrix and its transpose are the same memory.
        read = sum(_nbytes(plan, root) for root in {rows.root for rows in item.given.values()})
        return read + written + _CACHED * traffic(item.bodies[0]) * typical(item.count)
    if isinstance(item, Nest):
        size = prod(map(typical, item.domain))
        roots = {o.root for node in item.nodes for o in node.operands if o.root >= 0}
        return written + sum(min(_nbytes(plan, v), 8 * size) for v in roots)
    return written + sum(_nbytes(plan, v) for v in item.operands)


def _nbytes(plan: Nests, value: int) -> float:
    return typical(plan.types[value].nbytes)


# Sizes are multiples of this number, which is divisible by all small numbers.
_LARGE = 720_720


def arrange_symbolic_regions(
    steps: Schedule, limits: Limits, cards: Cards
) -> tuple[Schedule, tuple[Region, ...]]:
    """Return the steps, reordered so that regions are contiguous, and these regions."""
    try:
        known = _substitute_large_sizes(steps)
    except PrimgraphError:
        # These sizes violate the program's assumptions.
        return steps, ()
    found, regions = arrange_regions(known, limits, cards)
    places = {id(step.eqn): i for i, step in enumerate(steps.steps)}
    steps = steps.reorder([places[id(step.eqn)] for step in found.steps])
    taken = [region for r in regions if (region := _for_all(steps, r)) is not None]
    return steps, tuple(taken)


def _substitute_large_sizes(steps: Schedule) -> Schedule:
    """Return the steps with distinct large numbers in place of sizes."""
    names = sorted({n for type in steps.types for n in type.names})
    sizes = {name: _LARGE * (k + 3) for k, name in enumerate(names)}
    types = tuple([type_at(type, sizes) for type in steps.types])
    forms: dict[int, Form] = {}
    made = []
    for step in steps.steps:
        if id(step.form) not in forms:
            forms[id(step.form)] = Form(step.eqn, sizes)
        made.append(step._replace(form=forms[id(step.form)]))
    return replace(steps, types=types, steps=tuple(made))


def _for_all(steps: Schedule, region: Region) -> Region | None:
    """Return the region with its symbolic number of rows; None if sizes of rows differ."""
    extents = [steps.types[v].shape[axis] for v, axis in region.axis.items()]
    for step, role in zip(steps.steps[region.start : region.stop], region.roles, strict=True):
        pairs = zip(step.operands, role.operands, strict=True)
        extents += [type.shape[axis] for type, axis in pairs if axis is not None]
    first = extents[0]
    if any(n is not first and n != first for n in extents):
        return None
    return replace(region, extent=first)
