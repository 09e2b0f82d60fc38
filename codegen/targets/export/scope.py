"""The scope of a graph or a body while its items are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import prod
from typing import final

from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.statements import Blocks, Control, Item, Nest, Nests, Node, Product
from primgraph.codegen.targets.export.places import Place, Room, number
from primgraph.codegen.targets.text.identifiers import name_values


@final
@dataclass(slots=True)
class Scope:
    """The items of a graph or a body, and the places of their values.

    `names` are the user's names of values, `read` the values in memory that are read. `given` has
    the memory that is freed after an item; `at` is the current item.
    """

    plan: Nests
    names: Mapping[int, str]
    places: dict[int, Place]
    items: Sequence[Item | None]
    read: Set[int]
    given: dict[int, list[Room]] = field(default_factory=dict)
    at: int = 0

    def same(self, value: int) -> str:
        """Return the number that all elements of a constant equal; empty if there is none."""
        array = self.plan.constants.get(value)
        if array is None or array.size == 0:
            return ""
        first = array.reshape(-1)[:1]
        is_same = array.tobytes() == first.tobytes() * array.size
        return number(first[0], array.dtype) if is_same else ""


def scope_of(plan: Nests, places: Mapping[int, Place]) -> Scope:
    """Return the initial scope of a plan."""
    return Scope(plan, hints_of(plan), dict(places), *needed_items(plan))


def hints_of(plan: Nests) -> dict[int, str]:
    """Return the user's names of values."""
    steps = plan.schedule
    return name_values(steps, (), ("",) * len(steps.outputs))


PLAIN = ("text", "call", "copy", "take")


def needed_items(plan: Nests) -> tuple[list[Item | None], set[int]]:
    """Return the needed items, with None for dead ones, and the values read from memory."""
    roots = set(plan.outputs)
    found: list[Item | None] = []
    for item in reversed(plan.items):
        if isinstance(item, Nest):
            left = _nest(plan, item, roots)
            found.append(left if left.nodes else None)
            continue
        # Export does not use blocks of rows.
        assert not isinstance(item, Blocks)
        if not any(v in roots and not is_zero(plan.types[v].size) for v in item.values):
            found.append(None)
            continue
        roots.update(values_read(plan, item))
        found.append(item)
    found.reverse()
    return found, roots


def values_read(plan: Nests, item: Item) -> set[int]:
    """Return the values in memory that an item reads."""
    if isinstance(item, Nest):
        if is_zero(prod(item.domain)):
            return set()
        return {o.root for n in item.nodes for o in n.operands if o.root >= 0}
    if isinstance(item, Product):
        sizes = plan.types[item.value].size, item.step.operands[0].size
        return set() if any(map(is_zero, sizes)) else set(item.operands)
    assert not isinstance(item, Blocks)
    return _control_reads(item) if isinstance(item, Control) else set(item.operands)


def _control_reads(item: Control) -> set[int]:
    """Return the values that a branch or loop and its bodies read, and the carries."""
    regions, most = item.step.regions, item.step.most_trips
    assert regions is not None
    begin, given = regions.consts, item.operands[regions.lead :]
    carried = given[begin : begin + regions.carries]
    if most is not None and is_zero(most):
        # No iteration runs: the results are the initial carries.
        return set(carried)
    found = {*item.operands[: regions.lead], *carried}
    for plan, constants in zip(item.bodies, item.constants, strict=True):
        used = reads(plan)
        found.update(own for v, own in constants.items() if v in used)
        found.update(v for k, v in enumerate(given) if k in used)
    return found


def reads(plan: Nests) -> set[int]:
    """Return the values of a body that its items read."""
    return {
        v for item in needed_items(plan)[0] if item is not None for v in values_read(plan, item)
    }


def _nest(plan: Nests, nest: Nest, roots: set[int]) -> Nest:
    values: set[int] = set()
    kept: list[Node] = []
    empty = is_zero(prod(nest.domain))
    for node in reversed(nest.nodes):
        left = node.value in roots and (node.value in nest.stored or node.kind not in PLAIN)
        left = left and not is_zero(plan.types[node.value].size)
        if (empty and node.kind in PLAIN) or not (left or node.value in values):
            continue
        kept.append(node)
        if not empty:
            values.update(o.value for o in node.operands if o.value >= 0)
            roots.update(o.root for o in node.operands if o.root >= 0)
    kept.reverse()
    stored = {v: None for v in nest.stored if v in roots}
    return Nest(nest.domain, kept, stored)
