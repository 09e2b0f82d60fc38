"""Zeros where masks have them, recorded while a graph is differentiated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import final

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.logic import select
from primgraph.transforms.analysis.guards import ByOperand
from primgraph.transforms.analysis.masks import Masks


@final
class Masking:
    """The masks of a graph, asked by equation and operand; most give back what they are given.

    `moved` has the values of the graph that are recorded so far.
    """

    def __init__(self, masks: Masks, graph: Graph, moved: Mapping[Value, Value]) -> None:
        self.masks = masks
        self.moved = moved
        self.definitions = dict(masks.made)
        if masks.tangents or masks.factors or masks.results:
            self.definitions.update((v, e) for e in graph.body for v in e.outputs)

    def tangent(self, eqn: Equation, position: int, tangent: Value) -> Value:
        """The tangent of an operand, with zeros where the operand does not matter."""
        return self._guarded(self.masks.tangents, eqn, position, tangent)

    def factor(self, eqn: Equation, position: int, factor: Value) -> Value:
        """A factor of a product of matrices, with zeros where it does not matter."""
        return self._guarded(self.masks.factors, eqn, position, factor)

    def terms(
        self, eqn: Equation, found: Mapping[tuple[int, ...], Sequence[Value | None]]
    ) -> list[Sequence[Value | None]]:
        """What tangents contribute, by the operands that these are of.

        What a single one contributes has zeros where that tangent has them by its structure.
        """
        return [
            [d if d is None else self._held(eqn, places[0], d) for d in results]
            if len(places) == 1
            else results
            for places, results in found.items()
        ]

    def conditions(self, eqn: Equation) -> Iterator[Equation]:
        """What computes the conditions of the masks of `eqn` and is not recorded yet, in order.

        Some of it may stand behind `eqn` in the graph. Each equation is to be recorded before
        the next one is asked for.
        """
        guards = chain(self.masks.tangents.get(eqn, ()), self.masks.factors.get(eqn, ()))
        waiting = [g.condition for g in chain.from_iterable(guards)]
        waiting += [c for c in self.masks.results.get(eqn, ()) if c is not None]
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

    def _held(self, eqn: Equation, position: int, found: Value) -> Value:
        condition = self.masks.results[eqn][position] if eqn in self.masks.results else None
        if condition is None:
            return found
        result: Value = select(self.moved[condition], found, zeros_like(found))
        return result

    def _guarded(self, guards: ByOperand, eqn: Equation, position: int, value: Value) -> Value:
        for guard in guards[eqn][position] if eqn in guards else ():
            zero = zeros_like(value)
            sides = (value, zero) if guard.side else (zero, value)
            value = select(self.moved[guard.condition], *sides)
        return value
