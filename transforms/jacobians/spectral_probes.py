"""Directional derivatives of gradients by eigenvalues or singular values."""

from __future__ import annotations

from collections.abc import Container
from typing import final

from primgraph.ir.facts.passes import SPECTRUM
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.index_maps import IndexMap, variables_of
from primgraph.ir.primitive import Op, Primitive
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.primitives.reductions import SUMS
from primgraph.transforms.dataflow.engine import Analysis, Facts, Flow


@final
class Probes:
    """Cache of directional derivatives of gradients by eigenvalues or singular values.

    The rule of `as_spectral_gradient` needs them. `closed` tells that all paths from values to
    their gradient are in the graph. In the body of a loop, a branch or a checkpoint, paths may
    leave the body.
    """

    def __init__(self, graph: Graph, *, closed: bool) -> None:
        self._graph = graph
        self._closed = closed
        self._even: Container[Value] | None = None
        self._summed: set[Value] | None = None
        # Results by values, gradient, and `at_zero`: chains of decompositions query them
        # repeatedly.
        self.found: dict[tuple[Value, Value, bool], Value] = {}

    def is_even(self, value: Value) -> bool:
        """Return whether all elements along the last axis are equal, by the graph's structure.

        The gradient of the sum of eigenvalues or singular values is of this form.
        """
        if self._even is None:
            self._even = _Even().run(self._graph, {}).facts
        return value in self._even

    def is_summed(self, value: Value) -> bool:
        """Return whether only sums over the last axis read `value`.

        Sums of tangents do not depend on how equal values split.
        """
        if self._summed is None:
            self._summed = {v for e in self._graph.body if _sums_last(e) for v in e.inputs}
            for eqn in self._graph.body:
                if not _sums_last(eqn):
                    self._summed.difference_update(eqn.inputs)
            self._summed.difference_update(self._graph.outputs)
        return value in self._summed

    def sources(self, w: Value) -> list[Value]:
        """Return all results of the graph that have the same values; none if that is not known."""
        if not self._closed:
            return []
        found: dict[tuple[Op, tuple[Value, ...]], list[Value]] = {}
        for eqn in self._graph.body:
            spectrum = eqn.op.fact(SPECTRUM)
            if spectrum is not None:
                place, alone = spectrum
                found.setdefault((alone, tuple(eqn.inputs)), []).append(eqn.outputs[place])
        return next((values for values in found.values() if w in values), [])

    def cut_subgraph(self, sources: list[Value], end: Value) -> Graph:
        """Return the part of the graph between `sources` and `end`."""
        needed = backward_slice(self._graph.body, [end])
        reached = forward_slice(needed, sources)
        body = [e for e in needed if not reached.isdisjoint(e.inputs)]
        made = {v for e in body for v in e.outputs}
        inputs = dict.fromkeys([*sources, *(v for e in body for v in e.inputs if v not in made)])
        return Graph(list(inputs), body, [end])


def _sums_last(eqn: Equation) -> bool:
    return eqn.op.fact(SUMS) and bool(eqn.inputs[0].type.ndim - 1 in eqn.kwargs["axes"])


@final
class _Even(Analysis[bool]):
    """Whether all elements along the last axis are equal; equations with bodies are not entered."""

    __slots__ = ()

    dense = True
    enters = False

    def transfer(self, eqn: Equation, given: Facts[bool], flow: Flow[bool]) -> Facts[bool]:
        return [_is_even(eqn, given) or None] * len(eqn.outputs)


def _is_even(eqn: Equation, even: Facts[bool]) -> bool:
    if eqn.number is not None:
        return True
    shown, last = eqn.dependence(0, 0) if eqn.op.is_view else None, eqn.outputs[0].type.ndim - 1
    if isinstance(shown, IndexMap) and last >= 0:
        repeated = last not in variables_of(shown.operand)
        in_place = variables_of(shown.operand[-1:]) == {last}
        return repeated or (in_place and bool(even[0]))
    if eqn.op.formal:
        return bool(even[0])
    elementwise = isinstance(eqn.op, Primitive) and eqn.op.elementwise
    return elementwise and bool(even) and all(even)
