"""Loops in programs: the body is traced once, and the loop is recorded as one equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from primgraph import tree
from primgraph.control.bodies import (
    Body,
    captured_values,
    format_types,
    inputs_of,
    record,
    require_equal,
    takes,
    trace_body,
)
from primgraph.control.carried import weak_leaves
from primgraph.control.checkpoints import checkpoint as checkpoint_of
from primgraph.control.numbers import promote_weak_numbers, with_numbers
from primgraph.control.world import own
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.types import BOOL, INT64, TensorType, drop_leading_axis
from primgraph.operators.promotion import convert_dtype
from primgraph.operators.shape.joining import concatenate
from primgraph.operators.shape.shaping import reshape
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import control
from primgraph.primitives.constants import iota


def record_scan(
    f: Callable[..., Any],
    length: int,
    reverse: bool,
    init: Any,
    xs: Any,
    operator: str = "scan",
    lengths: Sequence[int] = (),
) -> Any:
    leaves, rows = tree.flatten(xs)
    stacks = [own(leaf) for leaf in leaves]
    types = [drop_leading_axis(operator, length, v.type) for v in stacks]
    hints = [v.value.hint for v in stacks]

    def arguments(builder: Builder) -> list[Any]:
        made = [Variable(builder, v) for v in inputs_of(builder, types, hints)]
        return [tree.unflatten(rows, made)]

    state, structure, body = trace_stable_carry(operator, f, init, arguments)
    if lengths:
        begin, all_rows = tree.unflatten(structure, state), tree.unflatten(rows, stacks)
        return _scan_in_segments(f, length, reverse, begin, all_rows, operator, lengths)
    _, ys = _parts(operator, body)
    carries = len(state)
    if not body.found:
        return tree.unflatten(structure, []), tree.unflatten(ys, [])
    outside = captured_values([body])
    results = record(
        [*outside, *[v.value for v in (*state, *stacks)]],
        partial(
            control.scan,
            body=body.graph(outside),
            consts=len(outside),
            carries=carries,
            length=length,
            reverse=reverse,
            counted=False,
        ),
    )
    return tree.unflatten(structure, results[:carries]), tree.unflatten(ys, results[carries:])


def _scan_in_segments(
    f: Callable[..., Any],
    length: int,
    reverse: bool,
    init: Any,
    xs: Any,
    operator: str,
    lengths: Sequence[int],
) -> Any:
    """Build a loop over segments that are loops, plus a shorter segment for the remaining steps."""
    size, *inner = lengths
    count = length // size
    whole = count * size

    def segment(trips: int) -> Callable[..., Any]:
        def build_segment(carry: Any, x: Any) -> Any:
            fits = [n for n in inner if n < trips]
            return record_scan(f, trips, reverse, carry, x, operator, fits)

        build_segment.__name__ = getattr(f, "__name__", "body")
        return checkpoint_of(build_segment)

    # In step order, the shorter segment comes last.
    first, rest = (
        (slice(length - whole, None), slice(length - whole))
        if reverse
        else (slice(whole), slice(whole, None))
    )
    carry, ys = init, None
    if count:
        blocks = tree.map(lambda x: reshape(x[first], (count, size, *x.shape[1:])), xs)
        carry, ys = record_scan(segment(size), count, reverse, init, blocks, operator)
        ys = tree.map(lambda y: reshape(y, (whole, *y.shape[2:])), ys)
    if whole < length:
        carry, more = segment(length - whole)(carry, tree.map(lambda x: x[rest], xs))

        def join_stacks(y: Any, z: Any) -> Any:
            return concatenate([z, y] if reverse else [y, z])

        ys = tree.map(join_stacks, ys, more) if count else more
    return carry, ys


def record_fori(
    body_fun: Callable[..., Any],
    start: int,
    count: int,
    init: Any,
    lengths: Sequence[int] = (),
) -> Any:
    number = emit(iota, shape=(count,), axis=0, dtype=INT64)

    def step(val: Any, i: Any) -> Any:
        return body_fun(i, val), None

    step.__name__ = getattr(body_fun, "__name__", "body")
    return record_scan(step, count, False, init, number + start, "fori_loop", lengths)[0]


def record_while(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    limit: int | None,
    init: Any,
    operator: str = "while_loop",
    lengths: Sequence[int] = (),
    told: int | None = None,
) -> Any:
    def step(val: Any) -> Any:
        return body_fun(val), None

    step.__name__ = getattr(body_fun, "__name__", "body")
    state, structure, body = trace_stable_carry(operator, step, init, lambda builder: [], told)
    if not state:
        raise ArgumentError(f"{operator}: init_val has no array in it, so the loop cannot end")
    if lengths:
        assert limit is not None
        begin = tree.unflatten(structure, state)
        return _while_in_segments(cond_fun, body_fun, limit, begin, operator, lengths)
    types, hints = [v.type for v in state], [v.value.hint for v in state]

    def arguments(builder: Builder) -> list[Any]:
        made = [Variable(builder, v) for v in inputs_of(builder, types, hints)]
        return [tree.unflatten(structure, made)]

    named = getattr(cond_fun, "__name__", "").isidentifier()
    test = trace_body(operator, cond_fun, arguments, "" if named else "condition")
    _require_truth(operator, test)
    outside = captured_values([test, body])
    results = record(
        [*outside, *[v.value for v in state]],
        partial(
            control.while_loop,
            test=test.graph(outside),
            body=body.graph(outside),
            consts=len(outside),
            limit=limit,
        ),
    )
    return tree.unflatten(structure, results[: len(state)])


def _while_in_segments(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    limit: int,
    init: Any,
    operator: str,
    lengths: Sequence[int],
) -> Any:
    """Build a loop over segments that are loops, plus a shorter segment for the remaining steps."""
    size, *inner = lengths

    def segment(trips: int) -> Callable[..., Any]:
        def build_segment(val: Any) -> Any:
            fits = [n for n in inner if n < trips]
            return record_while(cond_fun, body_fun, trips, val, operator, fits)

        build_segment.__name__ = getattr(body_fun, "__name__", "body")
        return checkpoint_of(build_segment)

    val = init
    if limit >= size:
        val = record_while(cond_fun, segment(size), limit // size, val, operator)
    return segment(limit % size)(val) if limit % size else val


def trace_stable_carry(
    operator: str,
    f: Callable[..., Any],
    init: Any,
    more: Callable[[Builder], list[Any]],
    told: int | None = None,
    given: str = "",
) -> tuple[list[Variable], tree.Structure, Body]:
    """Trace the body, and return the initial carry in the dtypes that it keeps.

    Python's numbers begin in the dtype of the arrays that they meet in the body, as its code would
    give it; see `promote_weak_numbers`. One that takes its dtype from another one of them has it a
    round later. Of a carry whose last part alone is the user's, `told` is the number of that part.
    """
    leaves, structure = tree.flatten(init)
    state = [own(leaf) for leaf in leaves]
    hints = [v.value.hint for v in state]

    def trace(state: Sequence[Any]) -> Body:
        kept = [(v.type, h) for v, h in zip(state, hints, strict=True) if isinstance(v, Variable)]
        types, names = [t for t, _ in kept], [h for _, h in kept]

        def arguments(builder: Builder) -> list[Any]:
            made = iter([Variable(builder, v) for v in inputs_of(builder, types, names)])
            given = [next(made) if isinstance(v, Variable) else v for v in state]
            return [tree.unflatten(structure, given), *more(builder)]

        return trace_body(operator, f, arguments)

    weak = weak_leaves(init)
    state, body = promote_weak_numbers(operator, trace, leaves, state, weak, structure)
    state, body = _widened(operator, trace, leaves, weak, structure, state, body)
    carried, _ = _parts(operator, body)
    if carried == structure:
        body = with_numbers(body, state)
    before, after = [v.type for v in state], body.types[: tree.count(carried)]
    first, found = structure, carried
    if told is not None:
        # The parts before it are scalars.
        first, found = first.parts[told], found.parts[told]
        before, after = before[told:], after[told:]
    require_equal(
        operator,
        body.name,
        given or ("init is" if operator == "scan" else "init_val is"),
        (first, before),
        (found, after),
    )
    return state, structure, body


def _widened(
    operator: str,
    trace: Callable[[Sequence[Any]], Body],
    leaves: Sequence[Any],
    weak: Sequence[bool],
    structure: tree.Structure,
    state: list[Variable],
    body: Body,
) -> tuple[list[Variable], Body]:
    """Trace the body until the `weak` numbers of the carry keep their dtypes."""
    # A dtype is wider after a round, of which there are few.
    for _ in range(4 * sum(weak)):
        carried, _ = _parts(operator, body)
        if carried != structure:
            break
        wanted = [
            t.dtype if is_weak and not t.shape and takes(t.dtype, v.dtype, leaf) else v.dtype
            for leaf, v, t, is_weak in zip(leaves, state, body.types, weak, strict=False)
        ]
        if all(v.dtype == dtype for v, dtype in zip(state, wanted, strict=True)):
            break
        state = [convert_dtype(v, dtype) for v, dtype in zip(state, wanted, strict=True)]
        body = trace(state)
    return state, body


def _parts(operator: str, body: Body) -> tuple[tree.Structure, tree.Structure]:
    """Return the containers of the carry and of the stacked results of a body."""
    found = body.structure
    if found.kind not in (tuple, list) or len(found.parts) != 2:
        raise ArgumentError(
            f"{operator}: {body.name} returned {format_types(found, body.types)}, not a pair "
            "carry, y",
            hint="return carry, y; or return carry, None to stack nothing",
        )
    return found.parts[0], found.parts[1]


def _require_truth(operator: str, test: Body) -> None:
    if len(test.found) != 1 or test.found[0].type != TensorType((), BOOL):
        given = ", ".join([str(t) for t in test.types]) or "nothing"
        raise (ShapeError if test.found and test.types[0].shape else DTypeError)(
            f"{operator}: {test.name} returned {given}, not a single boolean",
            hint="cond_fun(val) compares, such as pg.any(val > 0) or pg.all(val > 0)",
        )
