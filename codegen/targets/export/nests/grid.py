"""The loops of a nest: one per axis, or per group of collapsed axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final

from primgraph.codegen.ir.access import row_major
from primgraph.codegen.ir.statements import Nest
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.dims import typical


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """The axes of loops, their iteration counts, and the names of their variables.

    A collapsed loop is represented by its last axis.
    """

    axes: list[int]
    extents: list[int]
    variables: list[str]

    def loop_strides(self, strides: Sequence[int]) -> list[int]:
        """Return the strides of each loop, from strides by axis."""
        return [strides[a] for a in self.axes]


def grid_of(nest: Nest, names: Sequence[str]) -> Grid:
    """Return the loops of a nest, with variables of these names."""
    rows: list[Sequence[int]] = [row_major(nest.domain)] if nest.stored else []
    for node in nest.nodes:
        rows += [o.strides for o in node.operands if o.strides]
        if node.strides:
            rows.append(node.strides)
    axes = collapse_axes(nest.domain, rows) if nest.domain else []
    begins = [0, *[a + 1 for a in axes[:-1]]]
    extents = [prod(nest.domain[b : a + 1]) for b, a in zip(begins, axes, strict=False)]
    return Grid(axes, extents, list(names[: len(axes)]))


def collapse_axes(domain: Sequence[int], rows: Sequence[Sequence[int]]) -> list[int]:
    """Return the axes that remain as loops after collapsing contiguous ones.

    `rows` are the strides of all accesses.
    """
    kept: list[int] = []
    extent: list[int] = []
    for axis, n in enumerate(domain):
        if kept and all(r[kept[-1]] == r[axis] * n for r in rows):
            kept[-1], extent[-1] = axis, extent[-1] * n
        else:
            kept.append(axis)
            extent.append(n)
    return kept


def is_apart(strides: Sequence[int], extents: Sequence[int]) -> bool:
    """Return whether all elements at these strides are known to be distinct."""
    reach = 0
    pairs = [(s if typical(s) >= 0 else -s, n) for s, n in zip(strides, extents, strict=False)]
    for stride, n in sorted(pairs, key=lambda pair: (typical(pair[0]), typical(pair[1]))):
        if not is_at_least(stride, reach + 1):
            return False
        reach += stride * (n - 1)
    return True
