"""Branches and loops: primitives whose parameters hold graphs.

The bodies are closed: values captured from the enclosing graph are operands of the equation.
Derivatives, batching and partial evaluation are in `transforms/control`, because they transform the
bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import reduce
from typing import Any, final

import numpy as np

from primgraph.base.records import dataclass
from primgraph.errors import DTypeError, ShapeError
from primgraph.ir.assumptions import assume_at_least
from primgraph.ir.dims import TRIPS, is_open, single_row_size
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Fact, Primitive, Types, primitive
from primgraph.ir.types import BOOL, INT64, TensorType, add_leading_axis, drop_leading_axis, larger

COUNT = TensorType((), INT64)
TRUTH = TensorType((), BOOL)
_RULES = "rules of loops"


@final
class Flow(Enum):
    """How an op runs its bodies: one of them, or one per row of stacks, or while a test holds."""

    ONCE = "once"
    CHOICE = "choice"
    ROWS = "rows"
    TEST = "test"


@final
@dataclass(frozen=True, slots=True)
class Regions:
    """Layout of operands and results of an equation with bodies.

    The first `lead` operands belong to the equation itself. The body inputs are `consts` constants,
    then `carries` loop carries, then rows of stacks; without a loop all are constants. A loop's
    results are its carries, then stacks; with `counts`, the number of steps stands between them.
    `test` decides whether a loop goes on. `stacks` tells that the length of stacks is known; `rows`
    is that length, where stacks are operands, too. With `reverse` the last row is the first step.
    """

    bodies: tuple[Graph, ...]
    lead: int
    consts: int
    carries: int = 0
    is_loop: bool = False
    counts: bool = False
    stacks: bool = True
    test: Graph | None = None
    rows: Any = None
    reverse: bool = False

    @property
    def steps(self) -> Any:
        """Number of steps of a loop if that is known; None otherwise."""
        return None if self.lead else self.rows

    @classmethod
    def from_equation(cls, eqn: Equation) -> Regions:
        """Return the layout of a branch, a loop or a checkpoint."""
        rule = eqn.op.fact(REGIONS)
        assert rule is not None
        return rule(len(eqn.inputs), **eqn.kwargs)

    @classmethod
    def from_loop_body(cls, body: Graph, consts: int, carries: int) -> Regions:
        """Return the layout of a loop over `body`, whose operands are those of the body."""
        return cls((body,), 0, consts, carries, is_loop=True)

    @property
    def flow(self) -> Flow:
        if self.is_loop:
            return Flow.ROWS if self.test is None else Flow.TEST
        return Flow.CHOICE if self.lead else Flow.ONCE

    @property
    def graphs(self) -> tuple[Graph, ...]:
        """The test of a loop, if it has one, and the bodies."""
        return self.bodies if self.test is None else (self.test, *self.bodies)

    def result(self, k: int) -> int:
        """Map a body result index to the equation result index."""
        return k + 1 if self.counts and k >= self.carries else k

    def body_result(self, place: int) -> int | None:
        """Map an equation result index to the body result index; None for the step count."""
        if self.counts and place == self.carries:
            return None
        return place - 1 if self.counts and place > self.carries else place

    def is_carried(self, k: int) -> bool:
        """Return whether body result `k` is a loop carry."""
        return k < self.carries

    def is_row(self, i: int) -> bool:
        """Return whether body input `i` is a row of a stack."""
        return i >= self.consts + self.carries


# The rule `rule(operands, **params)` for the layout, by the number of operands; None for ops whose
# results do not follow from those of their bodies.
REGIONS: Fact[Callable[..., Regions] | None] = Fact("regions", None)


# The rule `rule(**params)` for the equation that the results solve: its body, as a function of the
# constants and the results, and the number of constants.
EQUATION: Fact[Callable[..., tuple[Graph, int]] | None] = Fact("equation", None)


def flow_of(eqn: Equation) -> Flow | None:
    """Return how an equation runs its bodies; None for one without a layout."""
    return None if eqn.op.fact(REGIONS) is None else Regions.from_equation(eqn).flow


# The rule `rule(bodies, constants, **params)` for the parameters with other bodies, which take
# constants of these types after their own.
EXTENDED: Fact[Callable[..., dict[str, Any]] | None] = Fact("extended regions", None)


def flops_of(graph: Graph) -> int:
    """Return the operation count of all equations of `graph`, which contains primitives only."""
    total = 0
    for eqn in graph.body:
        assert isinstance(eqn.op, Primitive)
        total += eqn.op.flops(tuple([v.type for v in eqn.inputs]), eqn.kwargs)
    return total


def branch_taken(index: Any, count: int) -> int:
    """Return the index of the branch taken: `index` clamped to the valid range."""
    return min(max(int(index), 0), count - 1)


def _cond(index: Any, *operands: Any, branches: tuple[Graph, ...]) -> list[Any]:
    return interpret(branches[branch_taken(index, len(branches))], *operands)


def _most_flops(index: TensorType, *operands: TensorType, branches: tuple[Graph, ...]) -> int:
    return reduce(larger, map(flops_of, branches))


@primitive(impl=_cond, multiple=True, singular=True, has_bodies=True, flops=_most_flops,
           rules_task=_RULES)  # fmt: skip
def cond(
    index: TensorType, *operands: TensorType, branches: tuple[Graph, ...]
) -> tuple[TensorType, ...]:
    """Return the outputs of the branch with number `index`; no other branch is computed.

    A boolean index chooses between two branches, the first for False. An integer out of range is
    clamped to the nearest branch.
    """
    if index.shape or index.dtype.kind not in "biu":
        raise DTypeError(f"cond chooses by a single boolean or integer, not {index}")
    if not branches or (index.dtype == BOOL and len(branches) != 2):
        raise ShapeError(f"cond has {len(branches)} branches to choose from by {index}")
    for branch in branches:
        _require_types("cond: a branch takes", branch.input_types, operands)
        _require_types("cond: a branch gives", branch.output_types, branches[0].output_types)
        _require_no_stacks("cond", branch)
    return _some("cond", branches[0].output_types)


@cond.declares(REGIONS)
def _cond_regions(operands: int, *, branches: tuple[Graph, ...]) -> Regions:
    return Regions(branches, lead=1, consts=operands - 1)


cond.declare(EXTENDED, lambda bodies, constants, **params: {"branches": bodies})


def trips_of(length: int, reverse: bool, trips: Any = None) -> Iterator[int]:
    """Return the step indices in execution order; `trips` is the dynamic number of steps."""
    count = length if trips is None else max(int(trips), 0)
    if length is not TRIPS:
        count = min(count, length)
    return iter(reversed(range(count)) if reverse else range(count))


def _scan(
    *arrays: Any,
    body: Graph,
    consts: int,
    carries: int,
    length: int,
    reverse: bool,
    counted: bool,
) -> list[Any]:
    given = arrays[counted:]
    fixed, state, xs = split_operands(given, consts, carries)
    types = body.output_types[carries:]
    order = [*trips_of(length, reverse, arrays[0] if counted else None)]
    rows = len(order) if length is TRIPS else length
    ys = [np.zeros(t.shape, t.dtype) for t in (add_leading_axis(rows, t) for t in types)]
    for k in order:
        found = interpret(body, *fixed, *state, *(x[k] for x in xs))
        state = found[:carries]
        for y, row in zip(ys, found[carries:], strict=True):
            y[k] = row
    return [*state, *ys]


def _flops_of_scan(*types: TensorType, body: Graph, length: int, **params: Any) -> int:
    """Return the operation count of all steps, or of one step for a growing stack."""
    return single_row_size(length) * flops_of(body)


@primitive(impl=_scan, multiple=True, singular=True, has_bodies=True, flops=_flops_of_scan,
           rules_task=_RULES)  # fmt: skip
def scan(
    *types: TensorType,
    body: Graph,
    consts: int,
    carries: int,
    length: int,
    reverse: bool,
    counted: bool,
) -> tuple[TensorType, ...]:
    """Apply `carry, y = body(*consts, *carry, *x)` per row `x`; return last carry, stacked `y`.

    Operands are the `consts`, the initial values of the `carries`, and `xs`, which have a leading
    axis of size `length`. With `reverse` the rows are taken from last to first. A `counted` scan
    has the number of steps, counted from the first row, as first operand; later rows of `y` are
    zeros. A scan of length `TRIPS` must be counted; it takes and returns stacks with one row per
    step.
    """
    if length is TRIPS and not counted:
        raise ShapeError("scan of a stack that grows needs the number of its rows")
    if (
        not assume_at_least(length, 0)
        or consts < 0
        or carries < 0
        or len(types) < counted + consts + carries
    ):
        raise ShapeError(
            f"scan has {len(types)} operands: not {consts} constants and {carries} carries"
        )
    if counted:
        _require_types("scan: the number of trips is", types[:1], (COUNT,))
    fixed, state, xs = split_operands(types[counted:], consts, carries)
    rows = [drop_leading_axis("scan", length, x) for x in xs]
    _require_types("scan: the body takes", body.input_types, (*fixed, *state, *rows))
    _require_types("scan: the body carries on", body.output_types[:carries], state)
    _require_no_stacks("scan", body)
    ys = [add_leading_axis(length, t) for t in body.output_types[carries:]]
    return _some("scan", (*state, *ys))


@scan.declares(REGIONS)
def _scan_regions(
    operands: int,
    *,
    body: Graph,
    consts: int,
    carries: int,
    length: int,
    reverse: bool,
    counted: bool,
) -> Regions:
    return Regions(
        (body,),
        int(counted),
        consts,
        carries,
        is_loop=True,
        stacks=not is_open((length,)),
        rows=length,
        reverse=reverse,
    )


@scan.declares(EXTENDED)
def _scan_extended(
    bodies: Sequence[Graph], constants: Types, *, consts: int, **params: Any
) -> dict[str, Any]:
    return {**params, "body": bodies[0], "consts": consts + len(constants)}


def _while_loop(
    *arrays: Any, test: Graph, body: Graph, consts: int, limit: int | None
) -> list[Any]:
    fixed, state = list(arrays[:consts]), list(arrays[consts:])
    carries, trips = len(state), 0
    types = body.output_types[carries:]
    stacks: list[list[Any]] = [[] for _ in types]
    while (limit is None or trips < limit) and interpret(test, *fixed, *state)[0]:
        found = interpret(body, *fixed, *state)
        state = found[:carries]
        for stack, row in zip(stacks, found[carries:], strict=True):
            stack.append(row)
        trips += 1
    rows = trips if limit is None else limit
    ys = [np.zeros((rows, *t.shape), t.dtype) for t in types]
    for y, stack in zip(ys, stacks, strict=True):
        for k, row in enumerate(stack):
            y[k] = row
    return [*state, np.array(trips), *ys]


def _flops_of_while(
    *types: TensorType, test: Graph, body: Graph, consts: int, limit: int | None
) -> int:
    """Return the operation count of `limit` steps, or of one step if there is no limit."""
    return (flops_of(test) + flops_of(body)) * (1 if limit is None else limit)


@primitive(impl=_while_loop, multiple=True, singular=True, has_bodies=True,
           flops=_flops_of_while, rules_task=_RULES)  # fmt: skip
def while_loop(
    *types: TensorType, test: Graph, body: Graph, consts: int, limit: int | None
) -> tuple[TensorType, ...]:
    """Repeat `carry, y = body(*consts, *carry)` while `test(*consts, *carry)` holds.

    Return the last carry, the number of steps, and the stacked `y`. A `limit` bounds the number of
    steps. With a limit the stacks have `limit` rows, with zeros for steps not taken. Without one
    they have a row per step, and their leading size is `TRIPS`.
    """
    if not 0 <= consts <= len(types) or (limit is not None and limit < 0):
        raise ShapeError(f"while_loop has {len(types)} operands, not {consts} constants")
    state = types[consts:]
    _require_types("while_loop: the test takes", test.input_types, types)
    _require_types("while_loop: the test gives", test.output_types, (TRUTH,))
    _require_types("while_loop: the body takes", body.input_types, types)
    _require_types("while_loop: the body carries on", body.output_types[: len(state)], state)
    _require_no_stacks("while_loop", body)
    ys = body.output_types[len(state) :]
    rows = TRIPS if limit is None else limit
    return (*state, COUNT, *[add_leading_axis(rows, t) for t in ys])


@while_loop.declares(REGIONS)
def _while_regions(
    operands: int, *, test: Graph, body: Graph, consts: int, limit: int | None
) -> Regions:
    carries = operands - consts
    return Regions((body,), 0, consts, carries, is_loop=True, counts=True, stacks=False, test=test)


@while_loop.declares(EXTENDED)
def _while_extended(
    bodies: Sequence[Graph], constants: Types, *, test: Graph, consts: int, **params: Any
) -> dict[str, Any]:
    """Let the test ignore the constants."""
    inputs = [*test.inputs[:consts], *map(Value, constants), *test.inputs[consts:]]
    asked = Graph(inputs, test.body, test.outputs, test.name)
    return {**params, "body": bodies[0], "test": asked, "consts": consts + len(constants)}


def _checkpoint(*operands: Any, body: Graph) -> list[Any]:
    return interpret(body, *operands)


@primitive(
    impl=_checkpoint,
    multiple=True,
    singular=True,
    has_bodies=True,
    rules_task=_RULES,
    flops=lambda *types, body: flops_of(body),
)
def checkpoint(*operands: TensorType, body: Graph) -> tuple[TensorType, ...]:
    """Return the outputs of the body; reverse mode stores only its operands as residuals.

    The body stays a graph of its own, so that recomputed values are not merged with the original
    ones by common subexpression elimination.
    """
    _require_types("checkpoint: the body takes", body.input_types, operands)
    return _some("checkpoint", body.output_types)


@checkpoint.declares(REGIONS)
def _checkpoint_regions(operands: int, *, body: Graph) -> Regions:
    return Regions((body,), lead=0, consts=operands)


checkpoint.declare(EXTENDED, lambda bodies, constants, **params: {"body": bodies[0]})


CONTROL = frozenset({cond, scan, while_loop, checkpoint})


def split_operands(
    items: Sequence[Any], consts: int, carries: int
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return `items` split into three lists: constants, carries, and rows or stacks."""
    begin = consts + carries
    return list(items[:consts]), list(items[consts:begin]), list(items[begin:])


def _require_types(what: str, found: Types | list[Any], wanted: Any) -> None:
    if tuple(found) == tuple(wanted):
        return
    texts = [", ".join(map(str, types)) or "nothing" for types in (found, wanted)]
    raise ShapeError(f"{what} {texts[0]}, not {texts[1]}")


def _require_no_stacks(name: str, body: Graph) -> None:
    """Refuse growing stacks as outputs of a body: they stay in the graph of their loop."""
    for type in (*body.input_types, *body.output_types):
        if is_open(type.shape):
            raise ShapeError(f"{name}: a body takes or gives {type}, a stack that grows")


def _some(name: str, types: Types) -> Types:
    if not types:
        raise ShapeError(f"{name} has no results")
    return types
