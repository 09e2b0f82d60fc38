"""Parts of a loop equation, which passes over loops change."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any, final

from primgraph.base.records import dataclass
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.params import freeze_all
from primgraph.ir.primitive import Op
from primgraph.primitives.control import Regions, split_operands

# Parameters that follow from the other parts.
_LAYOUT = frozenset({"body", "carries", "consts", "test"})


@final
@dataclass(frozen=True, slots=True)
class Loop:
    """Parts of a loop equation.

    `test` is None for a scan, and `count` is the iteration count that a while loop returns.
    `carried` and `stacked` are the other results. `rest` has the parameters that do not describe
    operands.
    """

    op: Op
    trips: tuple[Value, ...]
    consts: tuple[Value, ...]
    init: tuple[Value, ...]
    xs: tuple[Value, ...]
    body: Graph
    test: Graph | None
    carried: tuple[Value, ...]
    count: tuple[Value, ...]
    stacked: tuple[Value, ...]
    rest: tuple[tuple[str, Any], ...]
    eqn: Equation

    @classmethod
    def from_equation(cls, eqn: Equation) -> Loop:
        regions = Regions.from_equation(eqn)
        lead, carries = regions.lead, regions.carries
        stacked = carries + regions.counts
        consts, init, xs = split_operands(eqn.inputs[lead:], regions.consts, carries)
        return cls(
            eqn.op,
            eqn.inputs[:lead],
            tuple(consts),
            tuple(init),
            tuple(xs),
            regions.bodies[0],
            regions.test,
            eqn.outputs[:carries],
            eqn.outputs[carries:stacked],
            eqn.outputs[stacked:],
            tuple([p for p in eqn.params if p[0] not in _LAYOUT]),
            eqn,
        )

    @property
    def inputs(self) -> tuple[list[Value], list[Value], list[Value]]:
        """Return the body inputs: constants, carries and rows."""
        return split_operands(self.body.inputs, len(self.consts), len(self.init))

    def equation(self) -> Equation:
        """Return the loop as an equation; the original one if nothing has changed."""
        params: dict[str, Any] = {**dict(self.rest), "body": self.body, "consts": len(self.consts)}
        if self.test is None:
            params["carries"] = len(self.init)
        else:
            params["test"] = self.test
        inputs = (*self.trips, *self.consts, *self.init, *self.xs)
        outputs = (*self.carried, *self.count, *self.stacked)
        old = self.eqn
        # Graphs are compared by identity, as a comparison takes as long as construction.
        same = all(
            p is old.kwargs[k] if isinstance(p, Graph) else p == old.kwargs[k]
            for k, p in params.items()
        )
        if same and inputs == old.inputs and outputs == old.outputs:
            return old
        return Equation(self.op, inputs, freeze_all(params.items()), outputs, old.source)

    def with_operands(
        self,
        consts: Sequence[tuple[Value, Value]],
        carries: Collection[int] | None = None,
        rows: Sequence[tuple[Value, Value]] | None = None,
        stacks: Collection[int] | None = None,
        body: Iterable[Equation] | None = None,
    ) -> Loop:
        """Return the loop with other operands, each paired with its body input.

        Only the carries and stacks at these positions are kept.
        """
        _, states, xs = self.inputs
        count = len(self.init)
        kept = [k for k in range(count) if carries is None or k in carries]
        stays = [k for k in range(len(self.stacked)) if stacks is None or k in stacks]
        pairs = list(zip(self.xs, xs, strict=True)) if rows is None else rows
        graph, test = self.body, self.test
        outputs = [*[graph.outputs[k] for k in kept], *[graph.outputs[count + k] for k in stays]]
        inputs = [*[v for _, v in consts], *[states[k] for k in kept], *[v for _, v in pairs]]
        if test is not None:
            test = self._test_for([v for _, v in consts], kept)
        return replace(
            self,
            consts=tuple([v for v, _ in consts]),
            init=tuple([self.init[k] for k in kept]),
            xs=tuple([v for v, _ in pairs]),
            body=_graph(graph, inputs, graph.body if body is None else body, outputs),
            test=test,
            carried=tuple([self.carried[k] for k in kept]),
            stacked=tuple([self.stacked[k] for k in stays]),
        )

    def _test_for(self, consts: Sequence[Value], kept: Sequence[int]) -> Graph:
        """Return the test for these body constants; it ignores constants that it lacks so far."""
        assert self.test is not None
        fixed, states, _ = self.inputs
        known = dict(zip(fixed, self.test.inputs, strict=False))
        for state, mine in zip(states, self.test.inputs[len(fixed) :], strict=True):
            known[state] = mine
        inputs = [known[v] if v in known else Value(v.type) for v in consts]
        inputs += [self.test.inputs[len(fixed) + k] for k in kept]
        return _graph(self.test, inputs, self.test.body, self.test.outputs)


def _graph(
    old: Graph, inputs: Sequence[Value], body: Iterable[Equation], outputs: Sequence[Value]
) -> Graph:
    """Return `old` with these inputs, equations and outputs: itself if nothing changes."""
    kept = (tuple(inputs), tuple(body), tuple(outputs))
    return old if kept == (old.inputs, old.body, old.outputs) else Graph(*kept, old.name)
