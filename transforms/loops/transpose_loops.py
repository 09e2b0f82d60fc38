"""Reverse-mode rules of branches and loops: transposed bodies, last iteration first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, final

from primgraph.base.records import dataclass
from primgraph.errors import MissingRuleError
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.builder import Builder
from primgraph.ir.facts.choices import ADDS
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Linear, active_recorder
from primgraph.ir.rebuild import full_value
from primgraph.ir.slices import forward_slice
from primgraph.ir.views import Permute
from primgraph.primitives.constants import zeros_like
from primgraph.primitives.control import cond, scan, split_operands
from primgraph.primitives.elementwise import add
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.reductions import reduce_sum
from primgraph.primitives.shapes import permute, reshape
from primgraph.transforms.dataflow.locality import multiplies_sums, view_of
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.transpose import transpose_separated

# Cotangents of at most this many elements are stacked, and summed after the loop.
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
    """Transpose a scan; cotangents of constants are summed in the loop, or after it if cheaper.

    The body returns no rows for a growing stack without a cotangent.
    """
    present = [ct for ct in cts if ct is not None]
    body = _drop_unused_results(body, [ct is None for ct in cts])
    fixed, init, xs = split_operands(inputs[counted:], consts, carries)
    _require_zeros(init)
    begin = consts + carries
    places = [k for k, v in enumerate(fixed) if isinstance(v, Linear)]
    rows = [begin + k for k, v in enumerate(xs) if isinstance(v, Linear)]
    known, stacks = _present(fixed), _present(xs)
    turned = _TransposedBody.from_body(body, places, range(consts, begin), rows)
    # Unreached rows are zeros only if this loop has made them.
    given = {} if counted else dict(zip(turned.stacks, stacks, strict=True))
    open_ended = counted and type(length) is not int
    later = _DeferredSums(turned, given, None if open_ended else length)
    sums = [k for k in range(len(places)) if k not in later.found]
    found = scan(
        *_present(inputs[:counted]),
        *known,
        *[zeros_like(fixed[places[k]]) for k in sums],
        *present[:carries],
        *stacks,
        *present[carries:],
        body=turned.carry_sums(sums, list(later.kept)),
        consts=len(known),
        carries=len(sums) + carries,
        length=length,
        reverse=not reverse,
        counted=counted,
    )
    first = len(sums) + carries + len(rows)
    order = [*[places[k] for k in sums], *range(consts, begin), *rows]
    results: dict[int, Value | None] = dict(zip(order, found, strict=False))
    made = {**given, **dict(zip(later.kept, found[first:], strict=True))}
    results.update((places[k], later.total(k, made)) for k in later.found)
    known_places = [i for i, v in enumerate(inputs[counted:]) if not isinstance(v, Linear)]
    results.update(dict.fromkeys(known_places))
    return [*[None] * counted, *[results[i] for i in range(len(inputs) - counted)]]


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
class _TransposedBody:
    """The transposed body: `graph` returns cotangents of constants, of carries, and of rows.

    Its inputs are the loop-invariant `known`, the rows of `stacks`, and `cts`, with the cotangents
    of the `carries` carries first.
    """

    graph: Graph
    known: list[Value]
    stacks: list[Value]
    cts: list[Value]
    consts: int
    carries: int

    @classmethod
    def from_body(
        cls, body: Graph, consts: Sequence[int], carries: range, rows: Sequence[int]
    ) -> _TransposedBody:
        graph = transpose_separated(body, [*consts, *carries, *rows])
        cts = graph.inputs[len(graph.inputs) - len(body.outputs) :]
        known = [v for i, v in enumerate(body.inputs) if i < carries.start and i not in consts]
        stacks = [v for i, v in enumerate(body.inputs) if i >= carries.stop and i not in rows]
        return cls(graph, known, stacks, list(cts), len(consts), len(carries))

    def carry_sums(self, sums: Sequence[int], kept: Sequence[Value]) -> Graph:
        """Return the transposed body with carried sums for the constants at the positions `sums`.

        The values `kept` are stacked after its other results.
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
    """A product of two matrices, whose rows or columns are in stacks."""

    left: Value
    right: Value
    left_turned: bool
    right_turned: bool


@final
class _DeferredSums:
    """Sums over `length` iterations that are computed after the loop.

    A sum of matrix products becomes one product of the stacked factors. A few elements are stacked
    and summed. `found` has the terms of the cotangent for each such constant. `kept` has the values
    to stack, beside those `given` as stacks. They take no more memory than the stacks that the loop
    reads.
    """

    def __init__(self, turned: _TransposedBody, given: Collection[Value], length: Any) -> None:
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
        """Return the sum for the constant at position `k`, from the stacked values."""
        parts = [self._sum(term, stacks) for term in self.found[k]]
        total = parts[0]
        for part in parts[1:]:
            total = add(total, part)
        return total

    def _sum(self, term: _Product | Value, stacks: Mapping[Value, Value]) -> Value:
        if isinstance(term, Value):
            return reduce_sum(stacks[term], axes=(0,))
        left = self._concat_matrices(stacks[term.left], not term.left_turned)
        right = self._concat_matrices(stacks[term.right], term.right_turned)
        return matmul(permute(left, axes=(1, 0)), right)

    def _concat_matrices(self, stack: Value, turns: bool) -> Value:
        """Concatenate the matrices of all iterations vertically."""
        if turns:
            stack = permute(stack, axes=(0, 2, 1))
        _, rows, columns = stack.shape
        return reshape(stack, shape=(self.length * rows, columns))


def _terms(value: Value, defined: Mapping[Value, Equation]) -> list[Value]:
    """Return the terms that `value` is a sum of."""
    found, waiting = [], [value]
    while waiting:
        term = waiting.pop()
        eqn = defined.get(term)
        if eqn is not None and eqn.op.fact(ADDS):
            waiting += reversed(eqn.inputs)
        else:
            found.append(term)
    return found


def _product(
    value: Value, defined: Mapping[Value, Equation], varying: Collection[Value]
) -> _Product | None:
    """Return `value` as a product of two matrices that both vary by iteration, or None."""
    eqn, across = defined.get(value), False
    if eqn is not None and _is_turn(eqn):
        eqn, across = defined.get(eqn.inputs[0]), True
    if eqn is None or not multiplies_sums(eqn.op) or len(value.shape) != 2:
        return None
    sides = []
    for factor in eqn.inputs:
        turn = defined.get(factor)
        turns = turn is not None and _is_turn(turn)
        # Transposing the product transposes its factors, too.
        sides.append((turn.inputs[0] if turn is not None and turns else factor, turns != across))
    (left, left_turned), (right, right_turned) = reversed(sides) if across else sides
    both = left in varying and right in varying
    return _Product(left, right, left_turned, right_turned) if both else None


def _is_turn(eqn: Equation) -> bool:
    return view_of(eqn) == Permute((1, 0))


def _numbers(value: Value) -> Any:
    return value.type.size


def _drop_unused_results(body: Graph, unused: Sequence[bool]) -> Graph:
    """Return the body without the unused results and what only they need."""
    if not any(unused):
        return body
    kept = [v for v, is_unused in zip(body.outputs, unused, strict=True) if not is_unused]
    return dead_code(Graph(body.inputs, body.body, kept, body.name))


def _require_zeros(init: Sequence[Value | Linear]) -> None:
    """Raise unless each carry begins with a linear value or with zeros."""
    builder = active_recorder()
    assert isinstance(builder, Builder)
    for value in init:
        if not isinstance(value, Linear) and full_value(builder, value) != 0:
            raise MissingRuleError(
                "the graph is not linear: scan begins with a constant, which makes it affine"
            )


def _present(values: Sequence[Value | Linear]) -> list[Value]:
    return [v for v in values if not isinstance(v, Linear)]
