"""Regions of steps whose extents depend on sizes: those that there are where sizes are large.

Which steps run in blocks together, and how many rows a block has, depends on the bytes of a row and
on what the steps do, and hardly on how many rows there are. So it is found for large numbers in the
place of sizes, and taken where what has rows has as many for all sizes.
"""

from __future__ import annotations

from dataclasses import replace

from primgraph.codegen.plan.card import Cards
from primgraph.codegen.plan.fusion_groups import Region, arranged
from primgraph.codegen.plan.schedule import Form, Schedule
from primgraph.codegen.plan.storage.limits import Limits
from primgraph.errors import PrimgraphError
from primgraph.ir.sizes import type_at

# Sizes are multiples of this, which is one of all small numbers.
_LARGE = 720_720


def of_sizes(steps: Schedule, limits: Limits, cards: Cards) -> tuple[Schedule, tuple[Region, ...]]:
    """The same steps, in an order in which regions stand together, and these regions."""
    try:
        known = _at_large(steps)
    except PrimgraphError:
        # These sizes are not as the program assumes.
        return steps, ()
    found, regions = arranged(known, limits, cards)
    places = {id(step.eqn): i for i, step in enumerate(steps.steps)}
    steps = steps.reordered([places[id(step.eqn)] for step in found.steps])
    taken = [region for r in regions if (region := _for_all(steps, r)) is not None]
    return steps, tuple(taken)


def _at_large(steps: Schedule) -> Schedule:
    """The steps with numbers in the place of sizes, no two of which are equal."""
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
    """A region whose rows are as many as one extent tells; None where some are of another one."""
    extents = [steps.types[v].shape[axis] for v, axis in region.axis.items()]
    for step, role in zip(steps.steps[region.start : region.stop], region.roles, strict=True):
        pairs = zip(step.operands, role.operands, strict=True)
        extents += [type.shape[axis] for type, axis in pairs if axis is not None]
    first = extents[0]
    if any(n is not first and n != first for n in extents):
        return None
    return replace(region, extent=first)
