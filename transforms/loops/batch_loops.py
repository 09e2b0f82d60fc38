"""Batching rules of branches and loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primgraph.ir.builder import Builder
from primgraph.ir.dims import TRIPS, Dim, is_open
from primgraph.ir.facts.choices import RAISES
from primgraph.ir.facts.passes import MESSAGE
from primgraph.ir.graph import Graph, Value
from primgraph.ir.primitive import Op, active_recorder
from primgraph.ir.slices import forward_slice
from primgraph.ir.types import BOOL, INT64, TensorType
from primgraph.primitives.constants import extent, filled_constant, iota, zeros_like
from primgraph.primitives.control import COUNT, Regions, cond, scan, split_operands, while_loop
from primgraph.primitives.elementwise import add, cast, minimum, mul, stop_gradient, sub
from primgraph.primitives.indexing import gather
from primgraph.primitives.logic import equal, greater, less, less_equal, logical_not, select
from primgraph.primitives.reductions import reduce_max, reduce_sum
from primgraph.primitives.shapes import broadcast, pad, permute
from primgraph.transforms.batch_graphs import batch, batch_graph
from primgraph.transforms.dataflow.activity import varying_inputs
from primgraph.transforms.optimize.loop_invariants import guarded


@cond.batch
def _cond_batch(
    flags: tuple[bool, ...], index: Value, *operands: Value, branches: tuple[Graph, ...]
) -> tuple[Value, ...]:
    """Compute all branches and select per sample, if the index differs between samples.

    A branch that may raise is computed only if some sample takes it. The other samples get the
    operands of one that does, so that they raise nothing that no sample raises by itself.
    """
    size = _size(flags, (index, *operands))
    axes = [0 if has else None for has in flags[1:]]
    many = tuple([batch(branch, size, axes) for branch in branches])
    if not flags[0]:
        return cond(index, *operands, branches=many)
    builder = active_recorder()
    assert isinstance(builder, Builder)
    found = []
    for k, branch in enumerate(many):
        if len(many) > 1 and _raises(branch):
            taken = _takes(index, k, len(many))
            runs = greater(_largest(cast(taken, dtype=INT64)), filled_constant(0, COUNT))
            given = _operands_of_takers(taken, operands, flags[1:])
            found.append(cond(runs, *given, branches=guarded(branch)))
        else:
            found.append(tuple(builder.inline(branch, operands)))
    return tuple([_choose(index, choices) for choices in zip(*found, strict=True)])


def _takes(index: Value, k: int, count: int) -> Value:
    """Return whether each sample takes branch `k` of `count`, two at least."""
    if index.dtype == BOOL:
        return index if k else logical_not(index)
    if k == 0:
        return less_equal(index, filled_constant(0, index.type))
    if k + 1 == count:
        return greater(index, filled_constant(k - 1, index.type))
    return equal(index, filled_constant(k, index.type))


def _operands_of_takers(
    taken: Value, operands: Sequence[Value], flags: Sequence[bool]
) -> list[Value]:
    """Return operands in which samples that do not take a branch have values of one that does.

    They are constants there: such samples have no derivative.
    """
    counts = cast(taken, dtype=INT64)
    places = iota(shape=counts.shape, axis=0, dtype=INT64)
    # The largest index with a one is that of a sample that takes the branch.
    last = _largest(mul(counts, places))
    first = broadcast(last, shape=counts.shape, new_axes=(0,))
    found = []
    for x, has in zip(operands, flags, strict=True):
        if has:
            other = stop_gradient(gather(x, first, axis=0))
            x = select(_broadcast_condition(taken, x), x, other)
        found.append(x)
    return found


@scan.batch
def _scan_batch(
    flags: tuple[bool, ...],
    *inputs: Value,
    body: Graph,
    consts: int,
    carries: int,
    length: int,
    reverse: bool,
    counted: bool,
) -> tuple[Value, ...]:
    size = _size(flags, inputs)
    params = {"length": length, "reverse": reverse}
    if counted and flags[0]:
        # Samples have different iteration counts: run the largest, and freeze the carries of
        # finished samples.
        own, *rest = inputs
        most = _largest(own)
        if length is not TRIPS:
            most = minimum(most, _number(length))
        first = sub(most, filled_constant(1, COUNT)) if reverse else filled_constant(0, COUNT)
        body = _frozen_body(body, consts, carries, reverse)
        given = [own, *rest[:consts], first, *rest[consts:]]
        flags = (True, *flags[1 : 1 + consts], False, *flags[1 + consts :])
        return _batch_scan(size, flags, given, [most], body, consts + 1, carries + 1, params)[1:]
    return _batch_scan(
        size, flags[counted:], inputs[counted:], inputs[:counted], body, consts, carries, params
    )


def _number(length: int) -> Value:
    """Return an iteration count as a value."""
    if type(length) is Dim:
        return extent(dtype=INT64, shape=(), size=length)
    return filled_constant(length, COUNT)


def _largest(counts: Value) -> Value:
    """Return the largest of some counts, 0 if there are none."""
    (size,) = counts.shape
    if type(size) is Dim:
        counts = pad(counts, low=(0,), high=(1,))
    return reduce_max(counts, axes=(0,)) if counts.shape[0] else filled_constant(0, COUNT)


def _batch_scan(
    size: int,
    flags: Sequence[bool],
    given: Sequence[Value],
    trips: Sequence[Value],
    body: Graph,
    consts: int,
    carries: int,
    params: dict[str, Any],
) -> tuple[Value, ...]:
    present = _varying_positions(body, flags, consts, carries)
    fixed, init, xs = split_operands(given, consts, carries)
    begin = consts + carries
    axes = [0 if i in present else None for i in range(len(given))]
    everywhere = [consts + k in present for k in range(carries)]
    many = batch_graph(body, size, axes, [*everywhere, *[True] * (len(body.outputs) - carries)])
    found = scan(
        *trips,
        *fixed,
        *[
            _replicate(v, size) if consts + k in present and not flags[consts + k] else v
            for k, v in enumerate(init)
        ],
        *[_swap_axes(v) if flags[begin + k] else v for k, v in enumerate(xs)],
        body=many,
        consts=consts,
        carries=carries,
        counted=bool(trips),
        **params,
    )
    state = [
        v if wanted else _replicate(v, size) for v, wanted in zip(found, everywhere, strict=False)
    ]
    return (*state, *map(_swap_axes, found[carries:]))


@while_loop.batch
def _while_batch(
    flags: tuple[bool, ...],
    *inputs: Value,
    test: Graph,
    body: Graph,
    consts: int,
    limit: int | None,
) -> tuple[Value, ...]:
    size = _size(flags, inputs)
    carries = len(inputs) - consts
    present = _varying_positions(body, flags, consts, carries)
    asked = forward_slice(test.body, [test.inputs[i] for i in present])
    if test.outputs[0] in asked:
        return _while_each(size, flags, inputs, test, body, consts, limit)
    axes = [0 if i in present else None for i in range(len(inputs))]
    everywhere = [consts + k in present for k in range(carries)]
    many = batch_graph(body, size, axes, [*everywhere, *[True] * (len(body.outputs) - carries)])
    found = while_loop(
        *[
            _replicate(v, size) if i >= consts and i in present and not flags[i] else v
            for i, v in enumerate(inputs)
        ],
        test=batch_graph(test, size, axes, [False]),
        body=many,
        consts=consts,
        limit=limit,
    )
    state = [
        v if wanted else _replicate(v, size) for v, wanted in zip(found, everywhere, strict=False)
    ]
    return (*state, _replicate(found[carries], size), *map(_swap_axes, found[carries + 1 :]))


def _while_each(
    size: int,
    flags: Sequence[bool],
    inputs: Sequence[Value],
    test: Graph,
    body: Graph,
    consts: int,
    limit: int | None,
) -> tuple[Value, ...]:
    """Run until all samples are done; samples that are done keep their state."""
    carries = len(inputs) - consts
    axes = [0 if i >= consts or flags[i] else None for i in range(len(inputs))]
    asked = batch(test, size, axes)
    builder = Builder(test.name)
    with builder:
        count = builder.input(TensorType((size,), INT64))
        given = [builder.input(v.type) for v in asked.inputs]
        (goes_on,) = builder.inline(asked, given)
        number = cast(goes_on, dtype=INT64)
        some = less(filled_constant(0, COUNT), reduce_sum(number, axes=(0,)))
    test_of_all = Graph([*given[:consts], count, *given[consts:]], builder.body, [some], test.name)
    results = while_loop(
        *inputs[:consts],
        filled_constant(0, TensorType((size,), INT64)),
        *[v if has else _replicate(v, size) for v, has in zip(inputs, flags, strict=True)][consts:],
        test=test_of_all,
        body=_body_of_running(body, asked, size, axes, consts),
        consts=consts,
        limit=limit,
    )
    count, *state = results[: carries + 1]
    return (*state, count, *map(_swap_axes, results[carries + 2 :]))


def _body_of_running(
    body: Graph, asked: Graph, size: int, axes: Sequence[int | None], consts: int
) -> Graph:
    """Return the body of all samples, which counts iterations, and keeps the state of samples that
    are done by the test `asked`.

    If it may raise, it gets the state of a sample that is not done for them.
    """
    many, carries = batch(body, size, axes), len(axes) - consts
    builder = Builder(body.name)
    with builder:
        count = builder.input(TensorType((size,), INT64))
        given = [builder.input(v.type) for v in many.inputs]
        (goes_on,) = builder.inline(asked, given)
        own = given
        if _raises(many):
            own = _operands_of_takers(goes_on, given, [axis == 0 for axis in axes])
        found = builder.inline(many, own)
        state = [
            _choose(goes_on, (old, new)) for old, new in zip(given[consts:], found, strict=False)
        ]
        ys = [_choose(goes_on, (zeros_like(y), y)) for y in found[carries:]]
        total = add(count, cast(goes_on, dtype=INT64))
    inputs = [*given[:consts], count, *given[consts:]]
    return Graph(inputs, builder.body, [total, *state, *ys], body.name)


def _frozen_body(body: Graph, consts: int, carries: int, reverse: bool) -> Graph:
    """Return the body with the iteration count as a constant and the iteration index as a carry.

    From the given count on, carries keep their values and stacked rows are zeros, and a body that
    may raise is not run.
    """
    builder = Builder(body.name)
    with builder:
        total, number = builder.input(COUNT), builder.input(COUNT)
        given = [builder.input(v.type) for v in body.inputs]
        goes_on = less(number, total)
        found: Sequence[Value] = (
            cond(goes_on, *given, branches=guarded(body))
            if _raises(body)
            else builder.inline(body, given)
        )
        begin = consts + carries
        state = [
            select(_broadcast_condition(goes_on, new), new, old)
            for new, old in zip(found, given[consts:begin], strict=False)
        ]
        ys = [select(_broadcast_condition(goes_on, y), y, zeros_like(y)) for y in found[carries:]]
        after = add(number, filled_constant(-1 if reverse else 1, COUNT))
    inputs = [total, *given[:consts], number, *given[consts:]]
    return Graph(inputs, builder.body, [after, *state, *ys], body.name)


def _varying_positions(body: Graph, flags: Sequence[bool], consts: int, carries: int) -> set[int]:
    """Return the positions of body inputs that differ between samples in some iteration."""
    regions = Regions.from_loop_body(body, consts, carries)
    return varying_inputs(regions, [i for i, has in enumerate(flags) if has])


def _size(flags: Sequence[bool], inputs: Sequence[Value]) -> int:
    value = next(v for v, has in zip(inputs, flags, strict=True) if has)
    return value.shape[is_open(value.shape)]


def _replicate(value: Value, size: int) -> Value:
    return broadcast(value, shape=(size, *value.shape), new_axes=(0,))


def _swap_axes(value: Value) -> Value:
    """Swap the batch axis and the iteration axis.

    Growing stacks always have their rows first, as only loops use them.
    """
    if is_open(value.shape):
        return value
    return permute(value, axes=(1, 0, *range(2, value.type.ndim)))


def _raises(graph: Graph) -> bool:
    return any(map(_raises_for_values, graph.ops))


def _raises_for_values(op: Op) -> bool:
    """Return whether an op raises for some values of its operands."""
    return bool(op.fact(RAISES)) and (op.fact(MESSAGE) != "" or getattr(op, "singular", False))


def _choose(index: Value, choices: Sequence[Value]) -> Value:
    """Select per sample the choice of its index, clamped to the valid range."""
    if index.dtype == BOOL:
        return select(_broadcast_condition(index, choices[1]), choices[1], choices[0])
    found = choices[-1]
    for k in reversed(range(len(choices) - 1)):
        here = less_equal(index, filled_constant(k, index.type))
        found = select(_broadcast_condition(here, found), choices[k], found)
    return found


def _broadcast_condition(condition: Value, value: Value) -> Value:
    """Broadcast a condition per sample, or one for all, to the shape of `value`."""
    axes = tuple(range(condition.type.ndim, value.type.ndim))
    return broadcast(condition, shape=value.shape, new_axes=axes) if axes else condition
