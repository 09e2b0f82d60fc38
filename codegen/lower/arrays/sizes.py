"""Sizes of a region: rows per block, and the number of threads.

They depend on shapes, dtypes and the machine, never on the number of threads of a run. A total has
the same bits whichever thread adds its parts; other parts give other bits.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import ceil
from typing import NamedTuple

from primgraph.codegen.ir.axis_semantics import Role
from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.runtime import blas

# Minimum number of blocks per processor, so that all finish at about the same time.
_TURNS = 4
# Nanoseconds for which a call holds the interpreter's lock: with more threads they would wait.
_HELD = 1000
# Nanoseconds per byte of a total in each block, and the minimum ratio of a block's time to that.
_ADDED = 0.3
_LONGER = 8


class Size(NamedTuple):
    """The rows of a block, and the number of threads that pay; 1 for no extra thread."""

    rows: int
    threads: int


class Candidate(NamedTuple):
    """Steps that may run in blocks of `extent` rows, with their roles and the back end's cards.

    `constant` has the values that are single numbers, maybe broadcast.
    """

    schedule: Schedule
    steps: Sequence[Step]
    roles: Sequence[Role]
    extent: int
    constant: Set[int]
    cards: Cards


def has_products(steps: Sequence[Step], cards: Cards, limits: Limits) -> bool:
    """Return whether BLAS may be called for one of these steps."""
    by_blas = (s for s in steps if cards[s.op].blas) if limits.blas else ()
    return any(t.is_inexact for s in by_blas for t in s.results)


def size_of(of: Candidate, limits: Limits) -> Size | None:
    """Return the size of blocks for these steps; None if blocks do not pay."""
    extent, cards = of.extent, of.cards
    computing = [s for s in of.steps if not of.schedule.sees(s)]
    work = sum([cards[s.op].nanoseconds(s) for s in computing])
    shares = int(work / limits.least_share) if limits.least_share else extent
    if limits.processors == 1 or shares < 2:
        shares = 1
    if limits.rows is not None:
        rows = limits.rows if shares > 1 or len(computing) >= limits.least_steps else None
    else:
        rows = _rows_in_cache(of, limits)
        a_call = work / extent / len(computing)
        adding = _LONGER * _adding_time(of.steps, of.roles) * extent / work
        long = max(limits.least_call / a_call, adding, _worth_reading(of, limits))
        shared = _rows_per_thread(extent, long, rows, limits) if shares > 1 else None
        if shared is None:
            shares = 1
        else:
            rows, shares = shared, min(shares, int(a_call * shared / _HELD))
    if rows is None:
        return None
    rows = _avoid_single_row(extent, rows)
    if has_products(computing, cards, limits) and not blas.is_controlled():
        shares = 1
    return Size(rows, min(shares, ceil(extent / rows)))


def _rows_per_thread(extent: int, long: float, cached: int | None, limits: Limits) -> int | None:
    """Return the rows per block of a thread, at least `long`; None if more than half of all."""
    fair = extent / (_TURNS * limits.processors)
    count = round(extent / max(long, min(fair, cached or extent)))
    if count > limits.processors:
        # All processors are busy until the end.
        count -= count % limits.processors
    return ceil(extent / count) if count > 1 else None


def _adding_time(steps: Sequence[Step], roles: Sequence[Role]) -> float:
    """Return the nanoseconds for adding the partial results of one block to all totals."""
    totals = [s.results[0] for s, r in zip(steps, roles, strict=True) if r.axis is None]
    return _ADDED * sum(t.nbytes for t in totals)


def _rows_in_cache(of: Candidate, limits: Limits) -> int | None:
    """Return the rows that fit into the cache or outweigh a call; None if over half of all."""
    extent, constant = of.extent, of.constant
    computing = [k for k, s in enumerate(of.steps) if not of.schedule.sees(s)]
    if len(computing) < limits.least_steps:
        return None
    bytes_per_row = _peak(of) / extent
    if bytes_per_row * extent <= limits.cache:
        return None
    moved = sum(_traffic(of.steps[k], of.roles[k], constant) for k in computing) / len(computing)
    call = extent * limits.least_block / moved
    rows = int(max(limits.cache / bytes_per_row, call, _worth_reading(of, limits), 1))
    return rows if 2 * rows <= extent else None


def _worth_reading(of: Candidate, limits: Limits) -> float:
    """Return the rows with as many bytes as the operands that each block reads from memory.

    The cache keeps smaller operands from block to block.
    """
    least = 0.0
    for step, role in zip(of.steps, of.roles, strict=True):
        whole = {
            v: t.nbytes
            for t, v, a in zip(step.operands, step.inputs, role.operands, strict=True)
            if a is None and v not in of.constant and t.nbytes > limits.cache
        }
        moved = _traffic(step, role, of.constant)
        if whole and moved:
            least = max(least, of.extent * sum(whole.values()) / moved)
    return least


def _traffic(step: Step, role: Role, constant: Set[int]) -> int:
    """Return the bytes with rows that a step reads and writes."""
    operands = zip(step.operands, step.inputs, role.operands, strict=True)
    read = sum(t.nbytes for t, v, a in operands if a is not None and v not in constant)
    return read + (sum(t.nbytes for t in step.results) if role.axis is not None else 0)


def _peak(of: Candidate) -> int:
    """Return the peak of bytes of live values with rows, including operands from outside."""
    root, types, constant = of.schedule.root, of.schedule.types, of.constant
    last = {root[v]: k for k, s in enumerate(of.steps) for v in s.inputs}
    ends: dict[int, list[int]] = {}
    for value, k in last.items():
        ends.setdefault(k, []).append(value)
    alive: dict[int, int] = {}
    now = most = 0
    for k, (step, role) in enumerate(zip(of.steps, of.roles, strict=True)):
        operands = zip(step.inputs, role.operands, strict=True)
        rows = [v for v, a in operands if a is not None and v not in constant]
        for value in (*rows, *(step.outputs if role.axis is not None else ())):
            if root[value] not in alive:
                alive[root[value]] = types[root[value]].nbytes
                now += alive[root[value]]
        most = max(most, now)
        for value in ends.get(k, ()):
            now -= alive.pop(value, 0)
    return most


def _avoid_single_row(extent: int, rows: int) -> int:
    """Return at least `rows`, so that the last block has more than one row if each has.

    Products with a single row use another function, which treats special values differently.
    """
    while 1 < rows < extent and extent % rows == 1:
        rows += 1
    return min(rows, extent)
