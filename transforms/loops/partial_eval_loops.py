"""Partial evaluation of branches and loops: split into a known part and a linear part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from primgraph.errors import MissingRuleError
from primgraph.ir.builder import Builder
from primgraph.ir.dims import TRIPS
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import active_recorder
from primgraph.ir.slices import backward_slice, forward_slice
from primgraph.ir.types import TensorType
from primgraph.primitives.constants import filled_constant
from primgraph.primitives.control import Regions, cond, scan, while_loop
from primgraph.transforms.dataflow.activity import reached_inputs
from primgraph.transforms.loops.guarded_residuals import guard_residuals
from primgraph.transforms.loops.residuals import Residuals, residuals_of
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.optimize.loop_invariants import (
    after_raising,
    guarded,
    has_steps,
    surely_steps,
)
from primgraph.transforms.partial_eval import separate_linear


class _Loop(NamedTuple):
    """A loop body whose equations are separated, and the positions of its linear inputs.

    `results` are the positions of outputs that depend on these.
    """

    graph: Graph
    linear: set[int]
    results: set[int]
    consts: int
    carries: int

    @property
    def nonlinear_positions(self) -> list[int]:
        """Return the positions of the inputs that are not linear."""
        return [i for i in range(len(self.graph.inputs)) if i not in self.linear]

    def group(self, positions: Collection[int], number: int) -> list[int]:
        """Return those of `positions` in one group: constants (0), carries (1) or rows (2)."""
        begin = self.consts + self.carries
        ends = (0, self.consts, begin, len(self.graph.inputs))
        return [i for i in range(ends[number], ends[number + 1]) if i in positions]


@scan.separate
def _separate_scan(
    linear: tuple[bool, ...],
    *inputs: Value,
    body: Graph,
    consts: int,
    carries: int,
    length: int,
    reverse: bool,
    counted: bool,
) -> list[Value]:
    trips, given = inputs[:counted], inputs[counted:]
    loop = _loop(body, {i for i, is_one in enumerate(linear[counted:]) if is_one}, consts, carries)
    parts = _residuals(loop)
    known, firsts = _known_body(loop, parts)
    found: list[Value] = []
    options = {"length": length, "reverse": reverse, "counted": counted}
    if known.outputs:
        with _as_written():
            found = list(
                scan(
                    *trips,
                    *[given[i] for i in loop.nonlinear_positions],
                    body=known,
                    consts=len(loop.group(loop.nonlinear_positions, 0)),
                    carries=len(loop.group(loop.nonlinear_positions, 1)),
                    **options,
                )
            )
    return _linear_scan(loop, parts, trips, given, firsts, found, options)


@while_loop.separate
def _separate_while(
    linear: tuple[bool, ...],
    *inputs: Value,
    test: Graph,
    body: Graph,
    consts: int,
    limit: int | None,
) -> list[Value]:
    carries = len(inputs) - consts
    loop = _loop(body, {i for i, is_one in enumerate(linear) if is_one}, consts, carries)
    asked = forward_slice(test.body, [test.inputs[i] for i in loop.linear])
    if test.outputs[0] in asked:
        raise MissingRuleError(
            "the graph is not linear: while_loop asks for the truth of what is linear"
        )
    parts = _residuals(loop)
    known, firsts = _known_body(loop, parts)
    count = len(loop.group(loop.nonlinear_positions, 1))
    asked_of = Graph(
        [test.inputs[i] for i in loop.nonlinear_positions], test.body, test.outputs, test.name
    )
    asked_of, first = dead_code(asked_of), [inputs[i] for i in loop.nonlinear_positions]
    with _as_written():
        results = while_loop(
            *first,
            test=asked_of,
            body=known,
            consts=len(loop.group(loop.nonlinear_positions, 0)),
            limit=limit,
        )
    trips = results[count]
    found = [*results[:count], *results[count + 1 :]]
    length = TRIPS if limit is None else limit
    options = {"length": length, "reverse": False, "counted": True}
    # The condition at first is also that of what the known loop does not change: see
    # `equations_if_loop_runs`. Both loops then share it.
    runs = partial(_inlined, asked_of, first) if limit is None or limit > 0 else None
    merged = _linear_scan(loop, parts, (trips,), inputs, firsts, found, options, runs)
    return [*merged[:carries], trips, *merged[carries:]]


@cond.separate
def _separate_cond(
    linear: tuple[bool, ...], index: Value, *operands: Value, branches: tuple[Graph, ...]
) -> list[Value]:
    places = [i for i, is_one in enumerate(linear[1:]) if is_one]
    others = [i for i in range(len(operands)) if i not in places]
    whole = [separate_linear(b, [b.inputs[i] for i in places]) for b in branches]
    turned, parts = _turned_parts(whole, places, others)
    count = len(whole[0].outputs)
    plain = [k for k in range(count) if k not in turned]
    # Values that depend on constants only are computed in the branch, like other residuals.
    slots, filling = _slots([[*p.kept, *p.outside] for p in parts])
    found: list[Value] = []
    if plain or slots:
        known = [
            _known_branch(
                branch,
                part,
                others,
                [branch.outputs[k] for k in plain],
                [branch.outputs[k] for k in turned],
                slots,
                filled_by,
            )
            for branch, part, filled_by in zip(whole, parts, filling, strict=True)
        ]
        with _as_written():
            found = list(cond(index, *[operands[i] for i in others], branches=tuple(known)))
    taken = [
        i for i in others if any(b.inputs[i] in p.taken for b, p in zip(whole, parts, strict=True))
    ]
    after = [
        _linear_branch(branch, part, taken, places, turned, slots, filled_by)
        for branch, part, filled_by in zip(whole, parts, filling, strict=True)
    ]
    results = dict(zip(plain, found, strict=False))
    if turned:
        made = cond(
            index,
            *[operands[i] for i in taken],
            *found[len(plain) :],
            *[operands[i] for i in places],
            branches=tuple(after),
        )
        results.update(zip(turned, made, strict=True))
    return [results[k] for k in range(count)]


def _turned_parts(
    branches: Sequence[Graph], places: Sequence[int], others: Sequence[int]
) -> tuple[list[int], list[Residuals]]:
    """Return the numbers of results that are linear in some branch, and residuals of branches."""
    reached = [forward_slice(b.body, [b.inputs[i] for i in places]) for b in branches]
    pairs = list(zip(branches, reached, strict=True))
    count = len(branches[0].outputs)
    turned = [k for k in range(count) if any(b.outputs[k] in found for b, found in pairs)]
    parts = []
    for branch in branches:
        ends = [branch.inputs[i] for i in places]
        given = [branch.inputs[i] for i in others]
        parts.append(residuals_of(branch, ends, [branch.outputs[k] for k in turned], given))
    return turned, parts


@contextmanager
def _as_written() -> Iterator[None]:
    """Record equations of the known part with the source of the equation that was differentiated.

    This part computes values, as the forward pass does, and what derivatives need of them.
    """
    builder = active_recorder()
    assert isinstance(builder, Builder)
    before = builder.source
    builder.source = None if before is None else before.before_derivative()
    try:
        yield
    finally:
        builder.source = before


def _loop(body: Graph, linear: set[int], consts: int, carries: int) -> _Loop:
    """Separate the body; a carry is linear if it is linear in any iteration.

    The linear carries are found first. Separating bodies until they are known would double the time
    at each nesting level.
    """
    linear = reached_inputs(Regions.from_loop_body(body, consts, carries), linear)
    seeds = [body.inputs[i] for i in sorted(linear)]
    graph = separate_linear(body, seeds)
    found = forward_slice(graph.body, seeds)
    results = {k for k, v in enumerate(graph.outputs) if v in found}
    carried = {k for k in range(carries) if consts + k in linear}
    return _Loop(graph, linear, results | carried, consts, carries)


def _residuals(loop: _Loop) -> Residuals:
    graph = loop.graph
    fixed = {graph.inputs[i] for i in loop.group(loop.nonlinear_positions, 0)}
    given = fixed | {graph.inputs[i] for i in loop.group(loop.nonlinear_positions, 2)}
    ends = [graph.inputs[i] for i in loop.linear]
    wanted = [graph.outputs[k] for k in sorted(loop.results)]
    return residuals_of(graph, ends, wanted, given, fixed)


def _known_body(loop: _Loop, parts: Residuals) -> tuple[Graph, list[int]]:
    """Return the part that does not depend on linear inputs; it returns the residuals last.

    Also return the positions of its results among those of the whole body.
    """
    graph = loop.graph
    firsts = [k for k in range(len(graph.outputs)) if k not in loop.results]
    more, instead = guard_residuals(graph, parts, [graph.outputs[k] for k in sorted(loop.results)])
    kept = [instead.get(v, v) for v in parts.kept]
    outputs = [*[graph.outputs[k] for k in firsts], *kept]
    body = [*[e for e in graph.body if e.outputs[0] not in parts.linear], *more]
    known = Graph([graph.inputs[i] for i in loop.nonlinear_positions], body, outputs, graph.name)
    return dead_code(known), firsts


def _linear_scan(
    loop: _Loop,
    parts: Residuals,
    trips: Sequence[Value],
    given: Sequence[Value],
    firsts: Sequence[int],
    found: Sequence[Value],
    options: dict[str, Any],
    runs: Callable[[], Value] | None = None,
) -> list[Value]:
    """Merge the results `found` of the known part with those of the linear loop.

    `runs` records whether the loop has a step, by default from their number.
    """
    if not loop.results:
        return [*found]
    graph, place = loop.graph, {v: i for i, v in enumerate(loop.graph.inputs)}
    taken = [place[v] for v in parts.taken]
    fixed, rows = loop.group(taken, 0), loop.group(taken, 2)
    consts, carries, xs = (loop.group(loop.linear, n) for n in range(3))
    inputs = [
        *[graph.inputs[i] for i in fixed],
        *parts.outside,
        *[graph.inputs[i] for i in (*consts, *carries, *rows)],
        *parts.kept,
        *[graph.inputs[i] for i in xs],
    ]
    ends = sorted(loop.results)
    body = Graph(inputs, parts.body, [graph.outputs[k] for k in ends], graph.name)
    made = scan(
        *trips,
        *[given[i] for i in fixed],
        *_outside(loop, parts, trips, options["length"], given, runs),
        *[given[i] for i in (*consts, *carries, *rows)],
        *found[len(firsts) :],
        *[given[i] for i in xs],
        body=body,
        consts=len(fixed) + len(parts.outside) + len(consts),
        carries=len(carries),
        **options,
    )
    results = dict(zip(firsts, found, strict=False)) | dict(zip(ends, made, strict=True))
    return [results[k] for k in range(len(graph.outputs))]


def _inlined(graph: Graph, operands: Sequence[Value]) -> Value:
    """Record the only result of a graph."""
    builder = active_recorder()
    assert isinstance(builder, Builder)
    return builder.inline(graph, operands)[0]


def _outside(
    loop: _Loop,
    parts: Residuals,
    trips: Sequence[Value],
    length: int,
    given: Sequence[Value],
    runs: Callable[[], Value] | None,
) -> list[Value]:
    """Compute the loop-invariant residuals before the loop; raise only if it has a step."""
    if not parts.outside:
        return []
    builder = active_recorder()
    assert isinstance(builder, Builder)
    graph = loop.graph
    fixed = loop.group(loop.nonlinear_positions, 0)
    moved = {graph.inputs[i]: given[i] for i in fixed}
    body = backward_slice(graph.body, parts.outside)
    after = set() if surely_steps(trips, length) else after_raising(body)
    plain = [v for v in parts.outside if v not in after]
    builder.add_all(backward_slice(body, plain), moved)
    late = [v for v in parts.outside if v in after]
    if late:
        part = Graph([graph.inputs[i] for i in fixed], backward_slice(body, late), late, graph.name)
        has_step = has_steps(trips, length) if runs is None else runs()
        found = cond(has_step, *[given[i] for i in fixed], branches=guarded(part))
        moved.update(zip(late, found, strict=True))
    return [moved.get(v, v) for v in parts.outside]


def _slots(kept: Sequence[Sequence[Value]]) -> tuple[list[TensorType], list[dict[int, Value]]]:
    """Assign residuals of branches to shared slots; return slot types and slots per branch."""
    slots: list[TensorType] = []
    filling: list[dict[int, Value]] = []
    for values in kept:
        free = list(range(len(slots)))
        mine: dict[int, Value] = {}
        for value in values:
            at = next((s for s in free if slots[s] == value.type), None)
            if at is None:
                at = len(slots)
                slots.append(value.type)
            else:
                free.remove(at)
            mine[at] = value
        filling.append(mine)
    return slots, filling


def _known_branch(
    branch: Graph,
    part: Residuals,
    others: Sequence[int],
    plain: Sequence[Value],
    ends: Sequence[Value],
    slots: Sequence[TensorType],
    filled_by: dict[int, Value],
) -> Graph:
    """Return the results and residuals of a branch, zeros in slots of other branches."""
    builder = Builder(branch.name, active_recorder().source)
    for i in others:
        builder.share_input(branch.inputs[i])
    moved: dict[Value, Value] = {}
    more, instead = guard_residuals(branch, part, ends)
    body = [*[e for e in branch.body if e.outputs[0] not in part.linear], *more]
    kept_in = {s: instead.get(v, v) for s, v in filled_by.items()}
    with builder:
        builder.add_all(body, moved, shared=True)
        kept = [
            moved.get(kept_in[s], kept_in[s]) if s in kept_in else filled_constant(0, type)
            for s, type in enumerate(slots)
        ]
    return dead_code(builder.graph([*[moved.get(v, v) for v in plain], *kept]))


def _linear_branch(
    branch: Graph,
    part: Residuals,
    taken: Sequence[int],
    places: Sequence[int],
    turned: Sequence[int],
    slots: Sequence[TensorType],
    filled_by: dict[int, Value],
) -> Graph:
    inputs = [
        *[branch.inputs[i] for i in taken],
        *[filled_by.get(s) or Value(type) for s, type in enumerate(slots)],
        *[branch.inputs[i] for i in places],
    ]
    return Graph(inputs, part.body, [branch.outputs[k] for k in turned], branch.name)
