"""Storage of a plan: buffers in two arenas, constants, and views."""

from __future__ import annotations

from typing import Any, final

from primgraph.codegen.ir.arena import AnyArena, Arena
from primgraph.codegen.ir.places import (
    Buffer,
    Constant,
    Fixed,
    Life,
    Number,
    Ones,
    Place,
    Stack,
    View,
    life_of_view,
)
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.views import How
from primgraph.ir.params import bits
from primgraph.ir.types import DType, Shape, TensorType


@final
class Store:
    """Factory of places, which are numbered in the order of creation.

    Buffers outside loops are in `arena`, those of loops in a `space` per thread.
    """

    def __init__(self, arena: AnyArena) -> None:
        self.arena, self.space = arena, Arena()
        self.buffers: list[Buffer] = []
        self.constants: list[Fixed] = []
        self.arrays: list[Buffer | Stack | View | Ones] = []
        self._small = self._large = self._stacks = 0
        self._array: dict[Any, int] = {}
        self._scalars: dict[Any, Number] = {}
        self._vectors: dict[Any, Ones] = {}
        self._views: dict[tuple[Place, How], View] = {}
        self._view_number: dict[Any, int] = {}

    # Buffers.

    def buffer(self, type: TensorType, loop: int = -1, axis: int | None = None) -> Buffer:
        """Allocate a buffer; in a loop with rows along `axis`, or without rows."""
        arena = self.arena if loop < 0 else self.space
        offset = arena.take(type.nbytes)
        count = len(self.buffers)
        number = self._array.setdefault((offset, type, loop, axis), count)
        made = Buffer(number, type, offset, loop, axis)
        self.buffers.append(made)
        if number == count:
            self.arrays.append(made)
        return made

    def release(self, buffer: Buffer) -> None:
        arena = self.arena if buffer.loop < 0 else self.space
        arena.give(buffer.offset, buffer.type.nbytes)

    def stack(self, type: TensorType) -> Stack:
        """Create a growing stack for a single value."""
        made = Stack(self._stacks, type)
        self._stacks += 1
        self.arrays.append(made)
        return made

    # Constants.

    def number(self, value: Any, dtype: DType) -> Number:
        key = (bits(value), dtype)
        if key not in self._scalars:
            made = self._scalars[key] = Number(self._next_small(), value, dtype)
            self.constants.append(made)
        return self._scalars[key]

    def ones(self, count: int, dtype: DType, loop: int = -1) -> Ones:
        """Return a vector of ones; in a loop with one element per row of a block."""
        key = (count, dtype, loop)
        if key not in self._vectors:
            made = self._vectors[key] = Ones(self._next_small(), count, dtype, loop)
            if loop < 0:
                self.constants.append(made)
            else:
                self.arrays.append(made)
        return self._vectors[key]

    def constant(self, step: Step, shape: Shape) -> Constant:
        made = Constant(self._large, step, shape)
        self._large += 1
        self.constants.append(made)
        return made

    def _next_small(self) -> int:
        self._small += 1
        return self._small - 1

    # Views.

    def view(self, of: Place, how: How, shape: Shape) -> View:
        """Return the view of that shape which `how` gives, created once."""
        found = self._views.get((of, how))
        if found is not None:
            return found
        count = len(self._view_number)
        number = self._view_number.setdefault((of.__class__, of.number, how), count)
        life = life_of_view(of, how)
        made = self._views[of, how] = View(number, of, how, shape, life)
        if number == count and life in (Life.KEPT, Life.BLOCK):
            self.arrays.append(made)
        return made
