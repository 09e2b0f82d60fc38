"""Application of masks to tangents while a graph is differentiated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import final

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.logic import select
from primgraph.transforms.dataflow.masks.guard import Guards
from primgraph.transforms.dataflow.masks.masks import Masks
from primgraph.transforms.dataflow.region_interface import opened


@final
class Masking:
    """Masks of a graph by equation and operand; without a mask, arguments are returned unchanged.

    `moved` maps values of the graph to recorded values.
    """

    def __init__(self, masks: Masks, graph: Graph, moved: Mapping[Value, Value]) -> None:
        self.masks = masks
        self.moved = moved
        self.definitions = dict(masks.made)
        if masks.tangents or masks.factors or masks.results or masks.openings:
            self.definitions.update((v, e) for e in graph.body for v in e.outputs)

    def tangents(self, eqn: Equation, dx: Mapping[int, Value]) -> Mapping[int, Value]:
        """Return the operand tangents, set to zero where they do not matter."""
        guards = self.masks.tangents.get(eqn)
        return dx if guards is None else {i: self._guard(d, guards[i]) for i, d in dx.items()}

    def factors(self, eqn: Equation, x: Sequence[Value]) -> Sequence[Value]:
        """Return the factors of a matrix product, set to zero where they do not matter."""
        guards = self.masks.factors.get(eqn)
        return x if guards is None else list(map(self._guard, x, guards))

    def terms(
        self, eqn: Equation, found: Mapping[tuple[int, ...], Sequence[Value | None]]
    ) -> Iterable[Sequence[Value | None]]:
        """Return the contributions of tangents, keyed by the operands they come from.

        The contribution of a single operand is set to zero outside the support of its tangent.
        """
        where = self.masks.results.get(eqn)
        if where is None:
            return found.values()
        return [
            [self._mask_tangent(where[places[0]], d) for d in results]
            if len(places) == 1
            else results
            for places, results in found.items()
        ]

    def conditions(self, eqn: Equation) -> Iterator[Equation]:
        """Yield the equations that compute the masks of `eqn` and are not recorded yet, in order.

        Some of them may come after `eqn` in the graph. Record each equation before advancing the
        iterator.
        """
        guards = chain(self.masks.tangents.get(eqn, ()), self.masks.factors.get(eqn, ()))
        waiting = [g.condition for g in chain.from_iterable(guards)]
        waiting += [c for c in self.masks.results.get(eqn, ()) if c is not None]
        if eqn in self.masks.openings:
            waiting += self.masks.openings[eqn].conditions
        while waiting:
            if waiting[-1] in self.moved:
                waiting.pop()
                continue
            needed = self.definitions[waiting[-1]]
            missing = [v for v in needed.inputs if v not in self.moved]
            if missing:
                waiting += missing
            else:
                yield needed

    def opened(self, eqn: Equation) -> tuple[Equation, Sequence[int]]:
        """Return `eqn` with masks in its bodies, and the new positions of its operands."""
        opening = self.masks.openings.get(eqn)
        return (eqn, range(len(eqn.inputs))) if opening is None else opened(eqn, opening)

    def _mask_tangent(self, condition: Value | None, found: Value | None) -> Value | None:
        if condition is None or found is None:
            return found
        return select(self.moved[condition], found, zeros_like(found))

    def _guard(self, value: Value, guards: Guards) -> Value:
        for guard in guards:
            zero = zeros_like(value)
            sides = (value, zero) if guard.side else (zero, value)
            value = select(self.moved[guard.condition], *sides)
        return value
