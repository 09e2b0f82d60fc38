"""Reverse mode through branches and loops: the transposed bodies, the last trip first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from primgraph.errors import MissingRuleError
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Linear, active_recorder
from primgraph.ir.rebuild import full_value
from primgraph.ir.slices import forward_slice
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import cond, parted, scan
from primgraph.primitives.elementwise import add
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import permute, reshape
from primgraph.transforms.optimize.dead_code import dead_code
from primgraph.transforms.transpose import transpose_separated

# Of no more numbers, but several, a cotangent is kept for each trip, and summed up after the loop.
_FEW = 512


@scan.transpose
def _scan_transpose(
    cts: Sequence[Value | None],
    *inputs: Value | Linear,
    body: Graph,
    consts: int,
    carries: int,
    length: int,
    reverse: bool,
    counted: bool,
) -> list[Value | None]:
    """What is linear in constants is summed up: beside the loop, or after it where that is less.

    Of a stack that grows and has no cotangent the body gives no rows.
    """
    present = [ct for ct in cts if ct is not None]
    if len(present) < len(cts):
        kept = [v for v, ct in zip(body.outputs, cts, strict=True) if ct is not None]
        body = dead_code(Graph(body.inputs, body.body, kept, body.name))
    fixed, init, xs = parted(inputs[counted:], consts, carries)
    for value in init:
        _require_zeros(value)
    begin = consts + carries
    places = [k for k, v in enumerate(fixed) if isinstance(v, Linear)]
    rows = [begin + k for k, v in enumerate(xs) if isinstance(v, Linear)]
    known, stacks = _present(fixed), _present(xs)
    turned = _Turned.of(body, places, range(consts, begin), rows)
    # Rows that are not reached are zeros only where this loop has made them.
    given = {} if counted else dict(zip(turned.stacks, stacks, strict=True))
    open_ended = counted and type(length) is not int
    later = _Later(turned, given, None if open_ended else length)
    sums = [k for k in range(len(places)) if k not in later.found]
    found = scan(
        *_present(inputs[:counted]),
        *known,
        *[zeros_like(fixed[places[k]]) for k in sums],
        *present[:carries],
        *stacks,
        *present[carries:],
        body=turned.summing(sums, list(later.kept)),
        consts=len(known),
        carries=len(sums) + carries,
        length=length,
        reverse=not reverse,
        counted=counted,
    )
    first = len(sums) + carries + len(rows)
    order = [*[places[k] for k in sums], *range(consts, begin), *rows]
    results: dict[int, Value] = dict(zip(order, found, strict=False))
    made = {**given, **dict(zip(later.kept, found[first:], strict=True))}
    results.update((places[k], later.total(k, made)) for k in later.found)
    ends = [
        results.get(i) if isinstance(v, Linear) else None for i, v in enumerate(inputs[counted:])
    ]
    return [*[None] * counted, *ends]


@cond.transpose
def _cond_transpose(
    cts: Sequence[Value],
    index: Value,
    *operands: Value | Linear,
    branches: tuple[Graph, ...],
) -> list[Value | None]:
    places = [i for i, v in enumerate(operands) if isinstance(v, Linear)]
    turned = tuple([transpose_separated(branch, places) for branch in branches])
    found = iter(cond(index, *_present(operands), *cts, branches=turned))
    return [None, *[next(found) if isinstance(v, Linear) else None for v in operands]]


@final
@dataclass(frozen=True, slots=True)
class _Turned:
    """The transposed body: `graph` gives the cotangents of constants, of carries, and of rows.

    Its inputs are what is `known` in all trips, `stacks` of what is known in each, and `cts`, of
    which those of `carries` carries come first.
    """

    graph: Graph
    known: list[Value]
    stacks: list[Value]
    cts: list[Value]
    consts: int
    carries: int

    @classmethod
    def of(cls, body: Graph, consts: Sequence[int], carries: range, rows: Sequence[int]) -> _Turned:
        graph = transpose_separated(body, [*consts, *carries, *rows])
        cts = graph.inputs[len(graph.inputs) - len(body.outputs) :]
        known = [v for i, v in enumerate(body.inputs) if i < carries.start and i not in consts]
        stacks = [v for i, v in enumerate(body.inputs) if i >= carries.stop and i not in rows]
        return cls(graph, known, stacks, list(cts), len(consts), len(carries))

    def summing(self, sums: Sequence[int], kept: Sequence[Value]) -> Graph:
        """The body of the turned loop, which carries sums for the constants at these positions.

        Behind its other results it has those that are `kept`.
        """
        outputs = self.graph.outputs
        totals = [Value(outputs[k].type) for k in sums]
        builder = Builder(self.graph.name, active_recorder().source)
        first = self.carries
        for value in (*self.known, *totals, *self.cts[:first], *self.stacks, *self.cts[first:]):
            builder.share_input(value)
        graph = self.graph.with_outputs([*outputs, *kept])
        with builder:
            found = builder.inline(graph, graph.inputs, shared=True)
            ends = [add(a, found[k]) for a, k in zip(totals, sums, strict=True)]
        return builder.graph([*ends, *found[self.consts :]])


class _Product(NamedTuple):
    """The product of two matrices, whose rows, or whose columns, stand in stacks."""

    left: Value
    right: Value
    left_turned: bool
    right_turned: bool


@final
class _Later:
    """Sums over trips that are made after the loop, where its trips are `length`.

    A product of matrices is summed up by one larger product of what has been stacked, and a few
    numbers as a sum of rows. `found` has for each such constant the terms of its cotangent, `kept`
    the values that are to be stacked, beside those that are `given` as stacks. These take no more
    memory than what the loop is given in stacks.
    """

    def __init__(self, turned: _Turned, given: Collection[Value], length: Any) -> None:
        self.turned, self.length = turned, length
        self.found: dict[int, list[_Product | Value]] = {}
        self.kept: dict[Value, None] = {}
        if length is None:
            return
        graph = turned.graph
        defined = {v: e for e in graph.body for v in e.outputs}
        varying = forward_slice(graph.body, [*turned.stacks, *turned.cts])
        room = sum([_numbers(v) for v in turned.stacks])
        for k in range(turned.consts):
            value = graph.outputs[k]
            if value not in varying:
                continue
            terms = [_product(v, defined, varying) for v in _terms(value, defined)]
            products = [t for t in terms if t is not None]
            if len(products) < len(terms):
                if value.shape == () or not is_at_least(_FEW, _numbers(value)):
                    continue
                found: list[_Product | Value] = [value]
                new = {value: None}
            else:
                found = list(products)
                new = {v: None for t in products for v in (t.left, t.right) if v not in given}
            more = sum([_numbers(v) for v in new if v not in self.kept])
            if not is_at_least(room, more):
                continue
            room = room - more
            self.found[k] = found
            self.kept.update(new)

    def total(self, k: int, stacks: Mapping[Value, Value]) -> Value:
        """The sum for the constant at that position, by the stacks of values."""
        parts = [self._sum(term, stacks) for term in self.found[k]]
        total = parts[0]
        for part in parts[1:]:
            total = add(total, part)
        return total

    def _sum(self, term: _Product | Value, stacks: Mapping[Value, Value]) -> Value:
        if isinstance(term, Value):
            return reduce_sum(stacks[term], axes=(0,))
        left = self._joined(stacks[term.left], not term.left_turned)
        right = self._joined(stacks[term.right], term.right_turned)
        return matmul(permute(left, axes=(1, 0)), right)

    def _joined(self, stack: Value, turns: bool) -> Value:
        """The matrices of all trips below each other."""
        if turns:
            stack = permute(stack, axes=(0, 2, 1))
        _, rows, columns = stack.shape
        return reshape(stack, shape=(self.length * rows, columns))


def _terms(value: Value, defined: Mapping[Value, Equation]) -> list[Value]:
    """What `value` is a sum of."""
    found, waiting = [], [value]
    while waiting:
        term = waiting.pop()
        eqn = defined.get(term)
        if eqn is not None and eqn.op is add:
            waiting += reversed(eqn.inputs)
        else:
            found.append(term)
    return found


def _product(
    value: Value, defined: Mapping[Value, Equation], varying: Collection[Value]
) -> _Product | None:
    """A product of two matrices, both of which are others in each trip."""
    eqn, across = defined.get(value), False
    if eqn is not None and _is_turn(eqn):
        eqn, across = defined.get(eqn.inputs[0]), True
    if eqn is None or eqn.op is not matmul or len(value.shape) != 2:
        return None
    sides = []
    for factor in eqn.inputs:
        turn = defined.get(factor)
        turns = turn is not None and _is_turn(turn)
        # The product the other way round has its factors so, too.
        sides.append((turn.inputs[0] if turn is not None and turns else factor, turns != across))
    (left, left_turned), (right, right_turned) = reversed(sides) if across else sides
    both = left in varying and right in varying
    return _Product(left, right, left_turned, right_turned) if both else None


def _is_turn(eqn: Equation) -> bool:
    return eqn.op is permute and eqn.kwargs["axes"] == (1, 0)


def _numbers(value: Value) -> Any:
    return value.type.size


def _require_zeros(value: Value | Linear) -> None:
    """A carry is linear if it begins with what is linear, or with zeros."""
    builder = active_recorder()
    assert isinstance(builder, Builder)
    if not isinstance(value, Linear) and full_value(builder, value) != 0:
        raise MissingRuleError(
            "the graph is not linear: scan begins with a constant, which makes it affine"
        )


def _present(values: Sequence[Value | Linear]) -> list[Value]:
    return [v for v in values if not isinstance(v, Linear)]
