"""Loops: scan, fori_loop, map and while_loop."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import NoneType
from typing import Any

import numpy as np

from primgraph import tree
from primgraph.api.world import as_tensor, is_array
from primgraph.control.bodies import require_function
from primgraph.control.eager_loops import fori_tensors, scan_tensors, tensor_loop, while_tensors
from primgraph.control.recorded_loops import record_fori, record_scan, record_while
from primgraph.control.segments import segments
from primgraph.control.world import call_in_world, own
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.types import INT64, TensorType, integer, larger, smaller
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import convert_dtype
from primgraph.operators.variable import Variable


@check_arguments
def scan(
    f: Callable[..., Any],
    init: Any,
    xs: Any = None,
    length: Any = None,
    reverse: bool = False,
    *,
    checkpoint: str | int | None = None,
) -> Any:
    """Compute `carry, y = f(carry, x)` for each row `x` of `xs`: the last carry, and stacked `y`.

    `init`, `xs` and `y` are containers of arrays. All arrays of `xs` have the same leading size;
    without `xs`, `length` is the number of steps, and `x` is None. `reverse` begins with the last
    row. The carry keeps its containers and types. `f` may use variables from around it. Without
    steps the carry is `init`, and `y` has no rows.

    Reverse mode stores residuals of each step. `checkpoint="sqrt"` stores about the square root of
    these: the carry at the start of each segment of steps, and the residuals of the one segment
    that is being recomputed. `checkpoint=k` stores at most `k` carries and residuals, and
    recomputes nested segments: r times if `k` is r + 1 times the r-th root of the number of steps.

    Raises `ArgumentError` for a negative or unknown length and for a `checkpoint` that does not
    suffice, `ShapeError` for different sizes, and `DTypeError` or `ShapeError`, with the place, for
    a carry that changes.

    >>> pg.scan(lambda carry, x: (carry + x, carry * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (array(6.), array([0., 2., 9.]))
    """
    require_function("scan", f, "(carry, x)")
    count = _length("scan", xs, length, init)
    lengths = segments("scan", count, checkpoint)
    build = partial(record_scan, f, count, bool(reverse), lengths=lengths)
    run = partial(scan_tensors, f, count, bool(reverse), init)
    return call_in_world(build, tensor_loop(build, init) if lengths else run, (init, xs))


@check_arguments
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[..., Any],
    init_val: Any,
    *,
    max_trips: int | None = None,
    checkpoint: str | int | None = None,
) -> Any:
    """Compute `val = body_fun(i, val)` for `i` from `lower` to below `upper`: the last `val`.

    It is `init_val` if `upper` is not above `lower`. Bounds are integers, or single integer
    variables: then reverse mode stores residuals as in `pg.while_loop`, and the loop ends after
    `max_trips` steps at the latest. `checkpoint` and errors are those of `pg.scan`.

    >>> pg.fori_loop(0, 5, lambda i, value: value + i, 0)
    array(10)
    """
    require_function("fori_loop", body_fun, "(i, val)")
    if isinstance(lower, Handle) or isinstance(upper, Handle):
        return _build_counted_loop(lower, upper, body_fun, init_val, max_trips, checkpoint)
    try:
        start, stop = integer(lower), integer(upper)
    except (TypeError, ArgumentError):
        return _build_counted_loop(lower, upper, body_fun, init_val, max_trips, checkpoint)
    count = larger(stop - start, 0)
    if max_trips is not None:
        count = smaller(count, _limit("fori_loop", max_trips) or 0)
    lengths = segments("fori_loop", count, checkpoint)
    build = partial(record_fori, body_fun, start, count, lengths=lengths)

    def run(init: Any) -> Any:
        return fori_tensors(body_fun, range(start, start + count), init_val, init)

    return call_in_world(build, tensor_loop(build, init_val) if lengths else run, (init_val,))


@check_arguments
def map(f: Callable[..., Any], xs: Any) -> Any:
    """Apply `f` to each row of `xs`, one after the other, and stack the results.

    It needs memory for one row at a time; `pg.vmap` computes all rows at once. Errors are those of
    `pg.scan`.

    >>> pg.map(lambda x: x**2, np.array([1.0, 2.0, 3.0]))
    array([1., 4., 9.])
    """
    require_function("map", f, "(x)")
    count = _length("map", xs, None)

    def build(xs: Any) -> Any:
        return record_scan(lambda _, x: (None, f(x)), count, False, None, xs, operator="map")[1]

    def run(xs: Any) -> Any:
        return scan_tensors(lambda _, x: (None, f(x)), count, False, None, None, xs)[1]

    return call_in_world(build, run, (xs,))


@check_arguments
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    init_val: Any,
    *,
    max_trips: int | None = None,
    checkpoint: str | int | None = None,
) -> Any:
    """Compute `val = body_fun(val)` while `cond_fun(val)`: the last `val`, at first `init_val`.

    `val` starts as `init_val` and keeps its containers and types. `cond_fun` returns a single
    boolean. Both functions may use variables from around them. The loop ends after `max_trips`
    steps at the latest. Reverse mode stores residuals of each step: in growing stacks, or in
    `max_trips` rows. Forward mode stores none. With `max_trips`, `checkpoint` is as in `pg.scan`;
    the condition is evaluated once more for each segment.

    Raises as `pg.scan`, and `DTypeError` or `ShapeError` for a condition that is no single boolean.

    >>> pg.while_loop(lambda x: x < 100.0, lambda x: 2.0 * x, 1.0)
    array(128.)
    """
    for function in (cond_fun, body_fun):
        require_function("while_loop", function, "(val)")
    limit = _limit("while_loop", max_trips)
    lengths = segments("while_loop", limit, checkpoint)
    build = partial(record_while, cond_fun, body_fun, limit, lengths=lengths)
    run = partial(while_tensors, cond_fun, body_fun, limit, init_val)
    return call_in_world(build, tensor_loop(build, init_val) if lengths else run, (init_val,))


def _build_counted_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[..., Any],
    init: Any,
    max_trips: int | None,
    checkpoint: str | int | None,
) -> Any:
    """Build a loop with variable bounds."""
    for bound in (lower, upper):
        if isinstance(bound, float | str | bytes | NoneType):
            raise ArgumentError(
                f"fori_loop: a bound is a single integer, not {bound!r:.60}",
                hint="write pg.fori_loop(lower, upper, body_fun, init_val)",
            )

    def goes_on(state: Any) -> Any:
        return state[0] < state[1]

    def step(state: Any) -> Any:
        i, end, val = state
        return i + 1, end, body_fun(i, val)

    step.__name__ = getattr(body_fun, "__name__", "body")
    limit, numbers = _limit("fori_loop", max_trips), init
    lengths = segments("fori_loop", limit, checkpoint)

    def build(lower: Any, upper: Any, init: Any) -> Any:
        begin, end = (_convert_bound(own(bound)) for bound in (lower, upper))
        state = begin, end, init
        return record_while(goes_on, step, limit, state, "fori_loop", lengths, told=2)[2]

    def build_loop(lower: Any, upper: Any, init: Any) -> Any:
        start, stop = _bound_of_tensors(lower), _bound_of_tensors(upper)
        return fori_tensors(body_fun, range(start, stop)[:limit], numbers, init)

    run = tensor_loop(build, init, 2) if lengths else build_loop
    return call_in_world(build, run, (lower, upper, init))


def _convert_bound(bound: Variable) -> Variable:
    _require_bound(bound.type)
    return convert_dtype(bound, INT64)


def _bound_of_tensors(bound: Any) -> int:
    found = as_tensor(bound)
    _require_bound(found.type)
    return int(found)


def _require_bound(type: TensorType) -> None:
    if type.dtype.kind not in "iu" or type.shape:
        raise ArgumentError(
            f"fori_loop: a bound is a single integer, not {type}",
            hint="write pg.astype(n, 'int64') for a bound n of another dtype",
        )


# Validation of arguments.


def _length(operator: str, xs: Any, length: int | None, init: Any = None) -> int:
    """The number of trips: the leading extent of `xs`, or what is said."""
    if isinstance(length, Handle):
        raise ArgumentError(
            f"{operator}: length is an integer that is known when the program is built, not a "
            "variable",
            hint="the bounds of pg.fori_loop and the condition of pg.while_loop can be variables",
        )
    if length is not None:
        try:
            length = integer(length)
        except TypeError:
            raise ArgumentError(f"{operator}: a length is an integer, not {length!r:.60}") from None
        if type(length) is int and length < 0:
            raise ArgumentError(f"{operator}: a length of {length} is negative")
    leaves = tree.leaves(xs)
    extents = {path: np.shape(leaf) if not isinstance(leaf, Handle) else leaf.shape
               for path, leaf in zip(tree.paths(xs, "xs"), leaves, strict=True)}  # fmt: skip
    for path, shape in extents.items():
        if not shape:
            swapped = any(np.ndim(x) for x in tree.leaves(init) if is_array(x))
            raise ShapeError(
                f"{operator}: {path} has no leading axis to iterate over, as its shape is ()",
                hint="are init and xs swapped? it is pg.scan(f, init, xs)"
                if swapped
                else "a list or tuple is a container of arrays: make one array of it by np.array",
            )
        if length is None:
            length = shape[0]
        elif shape[0] != length:
            raise ShapeError(f"{operator}: {path} has {shape[0]} rows for {length} iterations")
    if length is None:
        raise ArgumentError(
            f"{operator}: the number of iterations is unknown: give xs or length",
            hint="write pg.scan(f, init, xs) to iterate over the rows of xs",
        )
    return length


def _limit(operator: str, max_trips: Any) -> int | None:
    if max_trips is None:
        return None
    try:
        limit = integer(max_trips)
    except TypeError:
        limit = -1
    if limit < 0:
        raise ArgumentError(
            f"{operator}: max_trips is an integer and not negative, not {max_trips!r:.60}"
        )
    return limit
