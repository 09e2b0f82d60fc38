"""Branches and loops by the names that they and their arguments have in `paddle.static.nn`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from primgraph import operators as pg
from primgraph.compat.paddle.core.assignments import current
from primgraph.compat.paddle.framework import paddles
from primgraph.control.branches import cond as _cond
from primgraph.control.loops import while_loop as _while_loop
from primgraph.custom.decorators import custom_vjp
from primgraph.errors import ArgumentError
from primgraph.nn.basic import iteration
from primgraph.operators.variable import Variable


@paddles
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
    return_names: Any = None,
) -> Any:
    """Return the result of `true_fn` if `pred`, of one element, is true, else of `false_fn`.

    Both return the same nested lists of variables of the same types, or None. Of a tensor the
    function is called at once.

    >>> x = paddle.to_tensor([2.0])
    >>> paddle.static.nn.cond(x > 1.0, lambda: x * 2.0, lambda: x - 1.0).tolist()
    [4.0]
    """
    functions = [_nothing if f is None else f for f in (true_fn, false_fn)]
    for function in functions:
        if not callable(function):
            raise ArgumentError(f"cond takes functions, not {function!r:.60}")
    if not isinstance(pred, Variable):
        if not hasattr(pred, "dtype"):
            raise ArgumentError(f"cond takes a variable or tensor of one bool, not {pred!r:.60}")
        return functions[0]() if bool(pred) else functions[1]()
    return _cond(_single(pred), *[partial(_listed, f) for f in functions])


def _nothing() -> None:
    return None


def _listed(function: Callable[[], Any]) -> Any:
    """Return the result of a branch, with lists, which both branches may write as tuples."""
    found = current(function())
    return list(found) if isinstance(found, tuple) else found


def _single(condition: Any) -> Any:
    """Return a boolean without axes of a condition of one element."""
    return pg.reshape(pg.astype(condition, "bool"), ())


@paddles
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    is_test: bool = False,
    name: str | None = None,
) -> Any:
    """Return `loop_vars` after `body(*loop_vars)` as often as `cond(*loop_vars)` holds.

    Gradients go through it; `is_test` has no effect.

    >>> i, s = paddle.full([1], 0, "int64"), paddle.ones([1])
    >>> i, s = paddle.static.nn.while_loop(lambda i, s: i < 3, lambda i, s: [i + 1, s * 2], [i, s])
    >>> s.tolist()
    [8.0]
    """
    if not callable(cond) or not callable(body):
        raise ArgumentError("while_loop takes two functions, cond and body")
    if not isinstance(loop_vars, list | tuple) or not loop_vars:
        raise ArgumentError(f"loop_vars is a list or tuple of variables, not {loop_vars!r:.60}")
    if any(isinstance(v, Variable) for v in loop_vars):

        def holds(values: list[Any]) -> Any:
            return _single(cond(*values[1:]))

        def step(values: list[Any]) -> list[Any]:
            number, *carried = values
            before = iteration.set(number)
            try:
                return [number + 1, *_as_list(body(*carried), carried)]
            finally:
                iteration.reset(before)

        # The first variable counts iterations, for random numbers that are new in each.
        return _while_loop(holds, step, [np.int64(0), *current(loop_vars)])[1:]
    values = list(loop_vars)
    while bool(cond(*values)):
        values = _as_list(body(*values), values)
    return values


def _as_list(found: Any, before: Sequence[Any]) -> list[Any]:
    """Return what a body returned as a list of as many variables as before."""
    listed = list(current(found)) if isinstance(found, list | tuple) else [current(found)]
    if len(listed) != len(before):
        raise ArgumentError(f"body returned {len(listed)} variables, not {len(before)}")
    return listed


@paddles
def case(
    pred_fn_pairs: Sequence[tuple[Any, Callable[[], Any]]],
    default: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Return the result of the function whose condition is the first that holds.

    It is that of `default` where none holds, or else of the last function.

    >>> x = paddle.to_tensor([2.0])
    >>> pairs = [(x < 0.0, lambda: -x), (x < 3.0, lambda: x * 10.0)]
    >>> paddle.static.nn.case(pairs, default=lambda: x).tolist()
    [20.0]
    """
    pairs = list(pred_fn_pairs) if isinstance(pred_fn_pairs, list | tuple) else []
    for pair in pairs or [None]:
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise ArgumentError("pred_fn_pairs is a list of tuples of a condition and a function")
    rest = pairs.pop()[1] if default is None else default
    if not callable(rest):
        raise ArgumentError(f"default is a function or None, not {rest!r:.60}")
    return _first_of(pairs, rest)


def _first_of(pairs: Iterable[tuple[Any, Callable[[], Any]]], rest: Callable[[], Any]) -> Any:
    for condition, function in reversed(list(pairs)):
        rest = partial(cond, condition, function, rest)
    return rest()


@paddles
def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Return the result of the function of that index: a dict, or a list of functions or pairs.

    It is that of `default` where there is no such index, or else of the greatest index.

    >>> k = paddle.to_tensor([1], "int32")
    >>> functions = [lambda: paddle.zeros([1]), lambda: paddle.ones([1])]
    >>> paddle.static.nn.switch_case(k, functions).tolist()
    [1.0]
    """
    if isinstance(branch_fns, Mapping):
        listed = list(branch_fns.items())
    elif isinstance(branch_fns, list | tuple):
        listed = [f if isinstance(f, tuple) else (i, f) for i, f in enumerate(branch_fns)]
    else:
        raise ArgumentError(f"branch_fns is a dict, list or tuple, not {branch_fns!r:.60}")
    if not listed or not all(callable(f) for _, f in listed):
        raise ArgumentError("branch_fns has functions by index")
    rest = max(listed, key=lambda pair: pair[0])[1] if default is None else default
    return _first_of([(pg.equal(branch_index, k), f) for k, f in listed], rest)


@paddles
def static_pylayer(
    forward_fn: Callable[..., Any],
    inputs: Sequence[Any],
    backward_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """Return `forward_fn(*inputs)`, whose gradients by the inputs `backward_fn` computes.

    `backward_fn` takes one gradient for each result. Without it the results are constants.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [1], "float32")
    ...     y = paddle.static.nn.static_pylayer(paddle.exp, [x], lambda dy: 2.0 * dy)
    ...     (dx,) = paddle.static.gradients(y, x)
    >>> paddle.static.Executor().run(program, {"x": [0.0]}, [y, dx])
    [array([1.], dtype=float32), array([2.], dtype=float32)]
    """
    if not callable(forward_fn) or not callable(backward_fn or forward_fn):
        raise ArgumentError("static_pylayer takes functions, forward_fn and backward_fn")
    if backward_fn is None:
        return pg.stop_gradient(forward_fn(*inputs))
    called = custom_vjp(forward_fn)
    called.defvjp(
        lambda *given: (forward_fn(*given), None),
        lambda _, *slopes: _as_tuple(backward_fn(*slopes)),
    )
    return called(*inputs)


def _as_tuple(found: Any) -> tuple[Any, ...]:
    return tuple(found) if isinstance(found, list | tuple) else (found,)
