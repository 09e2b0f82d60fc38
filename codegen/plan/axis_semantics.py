"""What a primitive does to one axis: the axis along which a region of steps runs in blocks.

A step works row by row if the rows of its result depend on the same rows of its operands only,
and on other operands as a whole. It contracts if it sums over the rows, or takes their product,
maximum or minimum: the blocks then give partial results, to be combined from the first to the
last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from primgraph.codegen.plan.schedule import Step


class Role(NamedTuple):
    """How a step takes part: where the rows of the result are, and of which operands it has rows.

    `operands` has the axis of the rows for each operand, None for one that is read as a whole.
    A step that contracts has no `axis`, and a ufunc, `combine`, that joins partial results.
    """

    axis: int | None
    operands: tuple[int | None, ...]
    combine: str = ""


Axes: TypeAlias = Sequence[int | None]


class Blocking(NamedTuple):
    """How a primitive runs in blocks.

    `role` gives the role of a step, where axes say of which operands rows are given, and along
    which axis; the others are there as a whole, so that any rows of them can be had. It is None
    where the step needs all rows of something of which it is given a block. Where all operands
    are there as a whole, the rows are those of operand `led_by`. The parameter `resized`, if there
    is one of that name, has the shape of the result, of which a block has fewer rows.
    """

    role: Callable[[Step, Axes], Role | None]
    led_by: int
    resized: str


def common(axes: Axes) -> int | None:
    """The only axis among `axes`; None where there are several."""
    found = {a for a in axes if a is not None}
    return found.pop() if len(found) == 1 else None


def aligned(step: Step, axes: Axes) -> Role | None:
    """The role of what works on equal rows of all its operands."""
    axis = common(axes)
    return None if axis is None else Role(axis, (axis,) * len(axes))


ALIGNED = Blocking(aligned, 0, "")
