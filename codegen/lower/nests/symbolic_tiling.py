"""Symbolic tiling: regions of steps with symbolic sizes, chosen as for large sizes.

The steps that run in blocks together, and the rows of a block, depend on the steps and on the size
of a row. They hardly depend on the number of rows. Regions are therefore found with large numbers
in place of sizes, and used if the number of rows is the same expression throughout.
"""

from __future__ import annotations

from dataclasses import replace

from primgraph.codegen.ir.card import Cards
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.schedule import Form, Schedule
from primgraph.codegen.ir.statements import Region
from primgraph.codegen.lower.arrays.fusion_groups import arrange_regions
from primgraph.errors import PrimgraphError
from primgraph.ir.sizes import type_at

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
