"""Compute symbolic sizes at call time (C helper)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from primgraph.codegen.ir.c_extents import PREFIX, divisors, extent
from primgraph.codegen.runtime.toolchain.code_cache import FIRST
from primgraph.ir.dims import Dim, extent_at
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import Fitting, assumptions
from primgraph.ir.types import Shape

# Stands for the numbers below among the values whose arrays C functions take.
SIZES = -1

# The first numbers: size of the workspace in bytes, and number of all elements processed.
ARENA, ELEMENTS = 0, 1


@final
class SizeArguments:
    """The numbers computed at call time from input shapes, each with its index.

    `ARENA` and `ELEMENTS` come first, then the sizes, then expressions of sizes.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph, self.names = graph, graph.sizes
        inputs = [(str(i), v.type) for i, v in enumerate(graph.inputs)]
        self.fitting = Fitting(inputs, graph.sizes)
        self.extents: dict[Dim, int] = {}

    def __len__(self) -> int:
        return FIRST + len(self.names) + len(self.extents)

    def declaration(self, array: str) -> str:
        """Return the declaration of size variables, read from an array."""
        parts = [
            f"{PREFIX}{n} = ((const long *){array})[{k + FIRST}]" for k, n in enumerate(self.names)
        ]
        unused = " ".join(f"(void){PREFIX}{n};" for n in self.names)
        return f"const long {', '.join(parts)}; {unused}"

    def encode_shape(self, shape: Shape) -> tuple[int, ...]:
        """Return a shape in which symbolic sizes are coded as -1 minus their index."""
        return tuple([n if type(n) is not Dim else -1 - self._place(n) for n in shape])

    def _place(self, dim: Dim) -> int:
        return self.extents.setdefault(dim, FIRST + len(self.names) + len(self.extents))

    def functions(self, name: str, arena: int, elements: int) -> Iterator[str]:
        """Yield two functions: one checks shapes and computes the numbers, one copies them."""
        yield f"int {name}_sizes(const long *const *d, long *z) {{"
        for size, (i, axis) in self.fitting.bare.items():
            yield f"    const long {PREFIX}{size} = d[{i}][{axis}];"
        for i, axis, whole, size in self.fitting.solved:
            if size:
                yield from self._solve_size(f"d[{i}][{axis}]", whole, size)
        conditions = [c for c, _ in assumptions(self.graph)]
        extents = [n for t in self.graph.input_types for n in t.shape]
        every = [*extents, *(c.difference for c in conditions), arena, elements, *self.extents]
        for y in dict.fromkeys(divisors(every)):
            yield f"    if ({extent(y)} == 0) return 0;"
        for i, axis in self.fitting.axes:
            wanted = extent(self.fitting.inputs[i][1].shape[axis])
            yield f"    if (d[{i}][{axis}] != {wanted}) return 0;"
        for condition in conditions:
            relation = ">=" if condition.lower else "=="
            yield f"    if (!({extent(condition.difference)} {relation} 0)) return 0;"
        yield f"    z[{ARENA}] = {extent(arena)}; z[{ELEMENTS}] = {extent(elements)};"
        for k, size in enumerate(self.names):
            yield f"    z[{k + FIRST}] = {PREFIX}{size};"
        for dim, k in self.extents.items():
            yield f"    z[{k}] = {extent(dim)};"
        if any(type(n) is Dim for n in (arena, elements)):
            # Sizes beyond any memory would wrap round.
            yield "    {"
            for k, size in enumerate(self.names):
                yield f"        const __int128 {PREFIX}{size} = z[{k + FIRST}];"
            yield f"        const __int128 most = {_wide(arena)}, all = {_wide(elements)};"
            yield "        if (most > INT64_MAX / 2 || all > INT64_MAX / 2) return 0;"
            yield "    }"
        yield "    return 1;"
        yield "}"
        yield f"int {name}_told(void *const *restrict a, char *restrict w) {{"
        yield f"    (void)w; memcpy(a[1], a[0], {len(self)} * sizeof(long)); return 0;"
        yield "}"

    def _solve_size(self, given: str, whole: Dim, size: str) -> Iterator[str]:
        """Yield the solution for a size that occurs linearly in an axis."""
        rest, first = extent_at(whole, {size: 0}), extent_at(whole, {size: 1})
        factor = first - rest
        yield f"    const long of_{size} = {given} - {extent(rest)};"
        yield f"    if (of_{size} % {extent(factor)} != 0) return 0;"
        yield f"    const long {PREFIX}{size} = of_{size} / {extent(factor)};"
        yield f"    if ({PREFIX}{size} < 0) return 0;"


def _wide(n: int) -> str:
    return f"(__int128){extent(n)}"
