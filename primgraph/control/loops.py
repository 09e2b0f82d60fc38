"""Loops: scan, fori_loop, map and while_loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import NoneType
from typing import Any

import numpy as np

from primgraph import tree
from primgraph.api.tracing import traced as trace_function
from primgraph.api.world import as_tensor, is_array
from primgraph.base.frames import is_interruption
from primgraph.control.bodies import (
    Body,
    captured,
    inputs_of,
    record,
    require_equal,
    require_function,
    takes,
    traced,
    typed,
)
from primgraph.control.carried import Carried, weak_in
from primgraph.control.checkpoints import OnTensors
from primgraph.control.checkpoints import checkpoint as checkpoint_of
from primgraph.control.numbers import met, with_numbers
from primgraph.control.segments import segments
from primgraph.control.world import in_world, own
from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import checked
from primgraph.ir.types import (
    BOOL,
    INT64,
    TensorType,
    integer,
    larger,
    smaller,
    without_leading,
)
from primgraph.operators.handle import Handle
from primgraph.operators.promotion import converted
from primgraph.operators.shape.creation import zeros
from primgraph.operators.shape.joining import concatenate, stack
from primgraph.operators.shape.shaping import reshape
from primgraph.operators.variable import Variable, emit
from primgraph.primitives import control
from primgraph.primitives.constants import iota


@checked
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
    build = partial(_scan, f, count, bool(reverse), lengths=lengths)
    run = partial(_scan_of_tensors, f, count, bool(reverse), init)
    return in_world(build, _tensor_loop(build, init) if lengths else run, (init, xs))


@checked
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
    build = partial(_fori, body_fun, start, count, lengths=lengths)

    def run(init: Any) -> Any:
        return _fori_of_tensors(body_fun, range(start, start + count), init_val, init)

    return in_world(build, _tensor_loop(build, init_val) if lengths else run, (init_val,))


@checked
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
        return _scan(lambda _, x: (None, f(x)), count, False, None, xs, operator="map")[1]

    def run(xs: Any) -> Any:
        return _scan_of_tensors(lambda _, x: (None, f(x)), count, False, None, None, xs)[1]

    return in_world(build, run, (xs,))


@checked
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
    build = partial(_while, cond_fun, body_fun, limit, lengths=lengths)
    run = partial(_while_of_tensors, cond_fun, body_fun, limit, init_val)
    return in_world(build, _tensor_loop(build, init_val) if lengths else run, (init_val,))


# In programs.


def _scan(
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
    types = [without_leading(operator, length, v.type) for v in stacks]
    hints = [v.value.hint for v in stacks]

    def arguments(builder: Builder) -> list[Any]:
        made = [Variable(builder, v) for v in inputs_of(builder, types, hints)]
        return [tree.unflatten(rows, made)]

    state, structure, body = settled(operator, f, init, arguments)
    if lengths:
        begin, all_rows = tree.unflatten(structure, state), tree.unflatten(rows, stacks)
        return _scan_in_segments(f, length, reverse, begin, all_rows, operator, lengths)
    _, ys = _parts(operator, body)
    carries = len(state)
    if not body.found:
        return tree.unflatten(structure, []), tree.unflatten(ys, [])
    outside = captured([body])
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
        def made(carry: Any, x: Any) -> Any:
            fits = [n for n in inner if n < trips]
            return _scan(f, trips, reverse, carry, x, operator, fits)

        made.__name__ = getattr(f, "__name__", "body")
        return checkpoint_of(made)

    # In step order, the shorter segment comes last.
    first, rest = (
        (slice(length - whole, None), slice(length - whole))
        if reverse
        else (slice(whole), slice(whole, None))
    )
    carry, ys = init, None
    if count:
        blocks = tree.map(lambda x: reshape(x[first], (count, size, *x.shape[1:])), xs)
        carry, ys = _scan(segment(size), count, reverse, init, blocks, operator)
        ys = tree.map(lambda y: reshape(y, (whole, *y.shape[2:])), ys)
    if whole < length:
        carry, more = segment(length - whole)(carry, tree.map(lambda x: x[rest], xs))

        def joined(y: Any, z: Any) -> Any:
            return concatenate([z, y] if reverse else [y, z])

        ys = tree.map(joined, ys, more) if count else more
    return carry, ys


def _fori(
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
    return _scan(step, count, False, init, number + start, "fori_loop", lengths)[0]


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
        return _while(goes_on, step, limit, state, "fori_loop", lengths, told=2)[2]

    def made(lower: Any, upper: Any, init: Any) -> Any:
        start, stop = _bound_of_tensors(lower), _bound_of_tensors(upper)
        return _fori_of_tensors(body_fun, range(start, stop)[:limit], numbers, init)

    run = _tensor_loop(build, init, 2) if lengths else made
    return in_world(build, run, (lower, upper, init))


def _convert_bound(bound: Variable) -> Variable:
    _require_bound(bound.type)
    return converted(bound, INT64)


def _bound_of_tensors(bound: Any) -> int:
    found = as_tensor(bound)
    _require_bound(TensorType(found.shape, found.dtype))
    return int(found)


def _require_bound(type: TensorType) -> None:
    if type.dtype.kind not in "iu" or type.shape:
        raise ArgumentError(
            f"fori_loop: a bound is a single integer, not {type}",
            hint="write pg.astype(n, 'int64') for a bound n of another dtype",
        )


def _while(
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
    state, structure, body = settled(operator, step, init, lambda builder: [], told)
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
    test = traced(operator, cond_fun, arguments, "" if named else "condition")
    _require_truth(operator, test)
    outside = captured([test, body])
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
        def made(val: Any) -> Any:
            fits = [n for n in inner if n < trips]
            return _while(cond_fun, body_fun, trips, val, operator, fits)

        made.__name__ = getattr(body_fun, "__name__", "body")
        return checkpoint_of(made)

    val = init
    if limit >= size:
        val = _while(cond_fun, segment(size), limit // size, val, operator)
    return segment(limit % size)(val) if limit % size else val


def settled(
    operator: str,
    f: Callable[..., Any],
    init: Any,
    more: Callable[[Builder], list[Any]],
    told: int | None = None,
    given: str = "",
) -> tuple[list[Variable], tree.Structure, Body]:
    """Trace the body, and return the initial carry in the dtypes that it keeps.

    Python's numbers begin in the dtype of the arrays that they meet in the body, as its code would
    give it; see `met`. One that takes its dtype from another one of them has it a round later.
    Of a carry whose last part alone is the user's, `told` is the number of that part.
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

        return traced(operator, f, arguments)

    weak = weak_in(init)
    state, body = met(operator, trace, leaves, state, weak, structure)
    carried, _ = _parts(operator, body)
    # A dtype is wider after a round, of which there are few.
    for _ in range(4 * sum(weak)):
        if carried != structure:
            break
        wanted = [
            t.dtype if is_weak and not t.shape and takes(t.dtype, v.dtype, leaf) else v.dtype
            for leaf, v, t, is_weak in zip(leaves, state, body.types, weak, strict=False)
        ]
        if all(v.dtype == dtype for v, dtype in zip(state, wanted, strict=True)):
            break
        state = [converted(v, dtype) for v, dtype in zip(state, wanted, strict=True)]
        body = trace(state)
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


def _parts(operator: str, body: Body) -> tuple[tree.Structure, tree.Structure]:
    """Return the containers of the carry and of the stacked results of a body."""
    found = body.structure
    if found.kind not in (tuple, list) or len(found.parts) != 2:
        raise ArgumentError(
            f"{operator}: {body.name} returned {typed(found, body.types)}, not a pair carry, y",
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


# On tensors, and before any are known.


def _tensor_loop(build: Callable[..., Any], init: Any, place: int = 0) -> Callable[..., Any]:
    """Return the recorded loop as a function of tensors; Python numbers in `init`, the argument at
    `place`, stay weak."""
    numbers, structure = tree.flatten(init)
    weak = weak_in(init)

    def built(*arguments: Any) -> Any:
        given = list(arguments)
        arrays = tree.leaves(given[place])
        begun = [x if w else y for x, y, w in zip(numbers, arrays, weak, strict=True)]
        given[place] = tree.unflatten(structure, begun)
        return build(*given)

    return OnTensors(built)


def _scan_of_tensors(
    f: Callable[..., Any], length: int, reverse: bool, given: Any, init: Any, xs: Any
) -> Any:
    leaves, rows = tree.flatten(xs)
    types = [TensorType(leaf.shape[1:], leaf.dtype) for leaf in leaves]
    init = _convert_init("scan", f, given, init, types, rows)
    order = range(length)
    found, carry, structure = [], init, None
    carried = Carried("scan", _name_of(f), init, weak_in(given))
    for k in reversed(order) if reverse else order:
        carry, y = _pair(f(carry, tree.unflatten(rows, [leaf[k] for leaf in leaves])))
        carry = carried.after(carry)
        parts, structure = tree.flatten(y)
        found.append(parts)
    if structure is None:
        # Without steps, the types of stacked results come from a discarded step on a row of zeros.
        row = [zeros(leaf.shape[1:], leaf.dtype) for leaf in leaves]
        parts, structure = tree.flatten(_pair(f(init, tree.unflatten(rows, row)))[1])
        return init, tree.unflatten(structure, [stack([part])[:0] for part in parts])
    if reverse:
        found.reverse()
    stacked = [stack(list(column)) for column in zip(*found, strict=True)]
    return carry, tree.unflatten(structure, stacked)


def _convert_init(
    operator: str,
    step: Callable[..., Any],
    given: Any,
    init: Any,
    types: Sequence[TensorType] = (),
    rows: tree.Structure | None = None,
) -> Any:
    """`init` with the numbers of Python in `given` in the dtypes that they have in a program.

    The body is traced for that. One that cannot be traced leaves them in their own dtypes.
    """
    weak = weak_in(given)
    if not any(weak):
        return init
    dtypes: list[Any] = []

    def more(builder: Builder) -> list[Any]:
        if rows is None:
            return []
        made = inputs_of(builder, types, [""] * len(types))
        return [tree.unflatten(rows, [Variable(builder, v) for v in made])]

    def begin(_: Any) -> Any:
        state, _, _ = settled(operator, step, given, more)
        dtypes.extend(v.dtype for v in state)
        return [state[0]]

    try:
        trace_function(operator, begin, [])
    except Exception as error:
        if is_interruption(error):
            raise
        return init
    leaves, structure = tree.flatten(init)
    begun = [
        as_tensor(x).astype(dtype) if w and as_tensor(x).dtype != dtype else x
        for x, w, dtype in zip(leaves, weak, dtypes, strict=True)
    ]
    return tree.unflatten(structure, begun)


def _pair(given: Any) -> tuple[Any, Any]:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise ArgumentError(
            f"scan: the function returned {given!r:.60}, not a pair carry, y",
            hint="return carry, y; or return carry, None to stack nothing",
        )
    carry, y = given
    return carry, y


def _fori_of_tensors(body_fun: Callable[..., Any], order: range, given: Any, init: Any) -> Any:
    init = _convert_init("fori_loop", lambda v: (body_fun(order.start, v), None), given, init)
    carried = Carried("fori_loop", _name_of(body_fun), init, weak_in(given))
    for i in order:
        init = carried.after(body_fun(i, init))
    return init


def _while_of_tensors(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., Any],
    limit: int | None,
    given: Any,
    init: Any,
) -> Any:
    init = _convert_init("while_loop", lambda val: (body_fun(val), None), given, init)
    trips, carried = 0, Carried("while_loop", _name_of(body_fun), init, weak_in(given))
    while (limit is None or trips < limit) and bool(cond_fun(init)):
        init = carried.after(body_fun(init))
        trips += 1
    return init


def _name_of(function: Callable[..., Any]) -> str:
    """Return the name of a body for errors, as in programs."""
    name = getattr(function, "__name__", "body")
    return name if name.isidentifier() else "body"


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
