"""The loops of a nest: one for each axis, or for several that are gone through as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final

from primgraph.codegen.export.extents import index
from primgraph.codegen.native.items import Nest
from primgraph.codegen.native.lower.access import row_major
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.dims import typical


@final
@dataclass(frozen=True, slots=True)
class Grid:
    """The axes of loops, how many trips they take, and the names of their variables.

    A loop over several axes is that of the last.
    """

    axes: list[int]
    extents: list[int]
    variables: list[str]

    def along(self, strides: Sequence[int]) -> list[int]:
        """How far apart elements are from trip to trip of each loop."""
        return [strides[a] for a in self.axes]

    def index(self, offset: int, strides: Sequence[int]) -> str:
        """The place of an element."""
        return index(offset, self.variables, self.along(strides))


def grid_of(nest: Nest, names: Sequence[str]) -> Grid:
    """The loops of a nest, with variables of these names."""
    rows: list[Sequence[int]] = [row_major(nest.domain)] if nest.stored else []
    for node in nest.nodes:
        rows += [o.strides for o in node.operands if o.strides]
        if node.strides:
            rows.append(node.strides)
    axes = joined(nest.domain, rows) if nest.domain else []
    begins = [0, *[a + 1 for a in axes[:-1]]]
    extents = [prod(nest.domain[b : a + 1]) for b, a in zip(begins, axes, strict=False)]
    return Grid(axes, extents, list(names[: len(axes)]))


def joined(domain: Sequence[int], rows: Sequence[Sequence[int]]) -> list[int]:
    """The axes that are left as loops when those are one that are gone through as one.

    `rows` are strides of all that is read or written.
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
    """Whether no two of the elements at these strides are one, as far as that is known."""
    reach = 0
    pairs = [(s if typical(s) >= 0 else -s, n) for s, n in zip(strides, extents, strict=False)]
    for stride, n in sorted(pairs, key=lambda pair: (typical(pair[0]), typical(pair[1]))):
        if not is_at_least(stride, reach + 1):
            return False
        reach += stride * (n - 1)
    return True
