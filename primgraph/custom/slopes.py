"""Derivatives of calls of custom functions, at sizes and batches of these."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TypeAlias, final

from primgraph.custom.primitives import Batched, Rules, Slope, Static
from primgraph.ir.builder import Builder
from primgraph.ir.dims import Dim
from primgraph.ir.graph import Graph
from primgraph.ir.params import bits
from primgraph.ir.primitive import Types
from primgraph.ir.sizes import specialize_graph, type_at
from primgraph.primitives.reductions import reduce_sum
from primgraph.transforms.batch_graphs import batch
from primgraph.transforms.optimize.edits import dead_code

# Derivatives by batches and numbers of symbolic sizes.
_Slopes: TypeAlias = "dict[tuple[Batched, tuple[tuple[str, int], ...]], Slope]"


class CallRules(Rules):
    """Rules of one call of a custom function, for operands of given types.

    `static` are its static arguments, and `floats` the places of the results with a derivative.
    """

    static: Static
    floats: Sequence[int]

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._slopes: _Slopes = {}

    @property
    @abstractmethod
    def operand_types(self) -> Types:
        """Types of the operands, with captured values."""

    @abstractmethod
    def recorded_slope(self) -> Slope:
        """Return the derivative for operands of these types."""

    def slope(self, static: Static, types: Types, batched: Batched) -> Slope | None:
        sizes = _sizes_of(self.operand_types, drop_batch_axes(types, batched))
        if bits(static) != bits(self.static) or sizes is None:
            return None
        key = batched, tuple(sizes.items())
        if key not in self._slopes:
            slope = self.recorded_slope()
            if sizes:
                slope = SizedSlope(slope, sizes)
            for size, separate in batched:
                slope = BatchedSlope(slope, len(self.floats), size, separate)
            self._slopes[key] = slope
        return self._slopes[key]


def select_cotangents(graph: Graph, floats: Sequence[int], present: Sequence[int]) -> Graph:
    """Return a graph of cotangents by the operands `floats` for those at `present` only."""
    return dead_code(graph.with_outputs([graph.outputs[floats.index(i)] for i in present]))


@final
class SizedSlope(Slope):
    """Derivative of a call that was traced for symbolic sizes, at numbers for some of them."""

    __slots__ = ("_inner", "_sizes")

    def __init__(self, inner: Slope, sizes: Mapping[str, int]) -> None:
        self._inner = inner
        self._sizes = sizes

    def push(self, present: tuple[int, ...]) -> Graph:
        return specialize_graph(self._inner.push(present), self._sizes)

    def pull(self, present: tuple[int, ...]) -> Graph:
        return specialize_graph(self._inner.pull(present), self._sizes)

    @property
    def floats(self) -> tuple[int, ...]:
        return self._inner.floats

    @property
    def defined_rules(self) -> tuple[bool, bool]:
        return self._inner.defined_rules


@final
class BatchedSlope(Slope):
    """Derivative of a batch of `size` calls, which may share some operands."""

    __slots__ = ("_inner", "_results", "_separate", "_size")

    def __init__(self, inner: Slope, results: int, size: int, separate: Sequence[bool]) -> None:
        self._inner = inner
        self._results = results
        self._size = size
        self._separate = tuple(separate)

    def push(self, present: tuple[int, ...]) -> Graph:
        tangents = [self._axis(i) for i in present]
        return batch(self._inner.push(present), self._size, [*self._axes(), *tangents])

    def pull(self, present: tuple[int, ...]) -> Graph:
        graph = self._inner.pull(present)
        whole = batch(graph, self._size, [*self._axes(), *[0] * self._results])
        builder = Builder(whole.name)
        for value in whole.inputs:
            builder.share_input(value)
        with builder:
            found = builder.inline(whole, whole.inputs, shared=True)
            return builder.graph([
                v if self._separate[i] else reduce_sum(v, axes=(0,))
                for i, v in zip(present, found, strict=True)
            ])  # fmt: skip

    @property
    def floats(self) -> tuple[int, ...]:
        return self._inner.floats

    @property
    def defined_rules(self) -> tuple[bool, bool]:
        return self._inner.defined_rules

    def _axis(self, operand: int) -> int | None:
        return 0 if self._separate[operand] else None

    def _axes(self) -> list[int | None]:
        """Return the batch axes of the operands and results."""
        return [*map(self._axis, range(len(self._separate))), *[0] * self._results]


def drop_batch_axes(types: Types, batched: Batched) -> Types:
    """Return the types of operands without batch axes."""
    found = list(types)
    for _, separate in reversed(batched):
        found = [
            t.with_shape(t.shape[1:]) if has else t for t, has in zip(found, separate, strict=True)
        ]
    return tuple(found)


def _sizes_of(symbolic: Types, types: Types) -> dict[str, int] | None:
    """Return the numbers of the sizes at which types are others; None if they never are."""
    if [t.ndim for t in symbolic] != [t.ndim for t in types]:
        return None
    whole = [n for t in symbolic for n in t.shape]
    known = [n for t in types for n in t.shape]
    sizes = {
        str(n): m
        for n, m in zip(whole, known, strict=True)
        if isinstance(n, Dim) and str(n) in n.names and isinstance(m, int)
    }
    return sizes if tuple([type_at(t, sizes) for t in symbolic]) == types else None
