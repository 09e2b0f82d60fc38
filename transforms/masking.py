"""Zeros where masks have them, recorded while a graph is differentiated."""

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
    """The masks of a graph, asked by equation and operand; most give back what they are given.

    `moved` has the values of the graph that are recorded so far.
    """

    def __init__(self, masks: Masks, graph: Graph, moved: Mapping[Value, Value]) -> None:
        self.masks = masks
        self.moved = moved
        self.definitions = dict(masks.made)
        if masks.tangents or masks.factors or masks.results or masks.openings:
            self.definitions.update((v, e) for e in graph.body for v in e.outputs)

    def tangents(self, eqn: Equation, dx: Mapping[int, Value]) -> Mapping[int, Value]:
        """The tangents of operands, with zeros where these do not matter."""
        guards = self.masks.tangents.get(eqn)
        return dx if guards is None else {i: self._guarded(d, guards[i]) for i, d in dx.items()}

    def factors(self, eqn: Equation, x: Sequence[Value]) -> Sequence[Value]:
        """The factors of a product of matrices, with zeros where they do not matter."""
        guards = self.masks.factors.get(eqn)
        return x if guards is None else list(map(self._guarded, x, guards))

    def terms(
        self, eqn: Equation, found: Mapping[tuple[int, ...], Sequence[Value | None]]
    ) -> Iterable[Sequence[Value | None]]:
        """What tangents contribute, by the operands that these are of.

        What a single one contributes has zeros where that tangent has them by its structure.
        """
        where = self.masks.results.get(eqn)
        if where is None:
            return found.values()
        return [
            [self._within(where[places[0]], d) for d in results] if len(places) == 1 else results
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
        """`eqn` with what is masked in its bodies, and where its operands stand there."""
        opening = self.masks.openings.get(eqn)
        return (eqn, range(len(eqn.inputs))) if opening is None else opened(eqn, opening)

    def _within(self, condition: Value | None, found: Value | None) -> Value | None:
        if condition is None or found is None:
            return found
        return select(self.moved[condition], found, zeros_like(found))

    def _guarded(self, value: Value, guards: Guards) -> Value:
        for guard in guards:
            zero = zeros_like(value)
            sides = (value, zero) if guard.side else (zero, value)
            value = select(self.moved[guard.condition], *sides)
        return value
