"""Printer of one C function, item by item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.statements import (
    Blocks,
    Control,
    HostCall,
    Item,
    Nest,
    Nests,
    Product,
    Routine,
    values_written,
)
from primgraph.codegen.ops.c.spellings import may_fail
from primgraph.codegen.targets.export.control import control
from primgraph.codegen.targets.export.nests.nest import nest
from primgraph.codegen.targets.export.nests.product import product
from primgraph.codegen.targets.export.nests.routine import routine
from primgraph.codegen.targets.export.page import Page, Part, use_code
from primgraph.codegen.targets.export.places import Place
from primgraph.codegen.targets.export.scope import scope_of
from primgraph.errors import CompileError
from primgraph.ir.dims import is_open

# Maximum number of steps in one function: compile time is superlinear in its length.
CHUNK = 400


def write_function(page: Page, places: Mapping[int, Place]) -> None:
    """Write the function; `places` are those of inputs and results."""
    plan = page.top.plan
    page.top.places.update(places)
    groups = _groups(plan)
    page.crossing = _crossing_values(plan, groups) - places.keys()
    for k, group in enumerate(groups):
        page.parts.append(Part(f"{page.own}_part{k + 1}" if len(groups) > 1 else page.own))
        page.said = None
        for at in group:
            _write(page, at)


def _write(page: Page, at: int) -> None:
    """Write an item of the scope."""
    item = page.scope.items[at]
    page.scope.at = at
    if item is None:
        page.give(at)
        return
    if isinstance(item, HostCall):
        raise _unsupported_error(item, page.own)
    page.write_source_comment(_source(item))
    page.take(at)
    if isinstance(item, Nest):
        some = not is_zero(prod(item.domain))
        if some and any(node.reach or may_fail(node.step) for node in item.nodes):
            page.watch()
        use_code(page, *(node.step for node in item.nodes))
        nest(page, item)
    elif isinstance(item, Product):
        product(page, item)
    elif isinstance(item, Control):
        control(page, item, _write_body)
    elif isinstance(item, Routine):
        use_code(page, item.step)
        routine(page, item)
    page.give(at)


def _unsupported_error(item: HostCall, name: str) -> CompileError:
    source = item.step.eqn.source
    hint = "compute it outside and make it an input, or save NumPy source: kernel.save('{}.py')"
    if any(is_open(t.shape) for t in (*item.step.operands, *item.step.results)):
        hint = "give the loop max_trips; or take derivatives forward, which keep nothing"
    return CompileError(
        f"{item.reason}, so {name} cannot be saved as C",
        origin=() if source is None else (f"{source}   {source.text}",),
        hint=hint.format(name),
    )


def _write_body(page: Page, plan: Nests, places: Mapping[int, Place]) -> None:
    """Write the items of a body at the current position."""
    around = page.scope
    page.scope = scope_of(plan, places)
    for at in range(len(plan.items)):
        _write(page, at)
    for at in list(page.scope.given):
        page.give(at)
    page.scope = around


def _source(item: Item) -> Source | None:
    """Return the user's source line of an item's first step."""
    if not isinstance(item, Nest):
        return None if isinstance(item, Blocks) else item.step.source
    steps = [n.step for n in item.nodes if n.step is not None]
    told = [s.source for s in steps if s.source is not None and s.source.is_readable]
    return told[0] if told else None


def _groups(plan: Nests) -> list[list[int]]:
    """Return the indices of items, in groups that become one function each."""
    groups: list[list[int]] = [[]]
    size = 0
    for at, item in enumerate(plan.items):
        weight = len(item.nodes) if isinstance(item, Nest) else 1
        if isinstance(item, Control):
            weight += sum(len(body.items) for body in item.bodies)
        if size and size + weight > CHUNK:
            groups.append([])
            size = 0
        size += weight
        groups[-1].append(at)
    return groups


def _crossing_values(plan: Nests, groups: Sequence[Sequence[int]]) -> set[int]:
    """Return values that one group writes, and another one reads or accumulates into."""
    group_of = {at: k for k, group in enumerate(groups) for at in group}
    first: dict[int, int] = {}
    found = set()
    for at, item in enumerate(plan.items):
        for v in values_written(item):
            begin = group_of[first.setdefault(v, at)]
            last = max(plan.last.get(v, at), at)
            if {begin, group_of[at], group_of.get(last, begin)} != {begin}:
                found.add(v)
    return found
