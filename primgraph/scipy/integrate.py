"""Integration by SciPy's names: SciPy's own on arrays, recorded with variables and tensors."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primgraph import tree
from primgraph.control.loops import scan, while_loop
from primgraph.eager.derivatives import recording
from primgraph.errors import ArgumentError, ShapeError, unknown_name
from primgraph.ir.primitive import innermost
from primgraph.operators.elementwise.arithmetic import abs, maximum, minimum
from primgraph.operators.elementwise.elementary import sqrt
from primgraph.operators.elementwise.logic import greater_equal, less, logical_and, where
from primgraph.operators.handle import Handle
from primgraph.operators.lazy_loading import functions
from primgraph.operators.reduce.statistics import mean
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.joining import concatenate
from primgraph.operators.shape.shaping import expand_dims
from primgraph.solvers.ode_steps import METHODS

__all__ = ["odeint"]

# What SciPy allows an error to be of a value, and beside that.
_TOLERANCE = 1.49012e-8


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Sequence[Any] = (),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    tfirst: bool = False,
    mxstep: int = 500,
    **options: Any,
) -> Any:
    """Solve `dy/dt = func(y, t, *args)` at the times `t`, from `y0` at the first of them.

    A row for each time. With variables or tensors, it is integrated by steps of Dormand and Prince,
    whose errors are kept below `atol` and `rtol` of the solution; steps of which more than `mxstep`
    are between two times give NaN. Derivatives are those of the steps that were made, whose lengths
    count as given: by `y0`, all times, and whatever `func` depends on, in both modes and to any
    order; reverse mode keeps the solution at each time, and the steps between two of them at a
    time. `args` may be containers of arrays. With `tfirst` it is `func(t, y, *args)`.

    What has no variables and tensors SciPy integrates, with all of its options. Raises `ShapeError`
    where `y0` or `t` is no vector, or `func` gives something else than `y0`.

    >>> from primgraph.scipy.integrate import odeint
    >>> t = pg.tensor([0.0, 1.0])
    >>> odeint(lambda y, t: -y, pg.tensor([1.0]), t, rtol=1e-10, atol=1e-12).round(6).tolist()
    [[1.0], [0.367879]]
    """
    plain = not recording.is_followed.get() and innermost.get() is None
    if plain and not any(isinstance(v, Handle) for v in tree.leaves((y0, t, args))):
        theirs = _scipys("odeint")
        if theirs is not None:
            named = {"rtol": rtol, "atol": atol, "tfirst": tfirst, "mxstep": mxstep, **options}
            return theirs(func, y0, t, tuple(args), **named)
    if options:
        raise ArgumentError(
            f"odeint of variables takes rtol, atol, tfirst and mxstep, and no {next(iter(options))}"
        )
    return _odeint(func, y0, t, args, (rtol, atol), tfirst, mxstep)


def _odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Sequence[Any],
    tolerances: tuple[float | None, float | None],
    tfirst: bool,
    mxstep: int,
) -> Any:
    """Solve by steps of Dormand and Prince."""
    asarray = functions["asarray"]
    start, times = asarray(y0, dtype=_float_of(y0)), asarray(t, dtype=_float_of(t))
    start = expand_dims(start, 0) if start.ndim == 0 else start
    if start.ndim != 1 or times.ndim != 1 or times.shape[0] < 1:
        raise ShapeError(f"odeint takes vectors, not {start.type} and {times.type}")

    def slope(y: Any, at: Any) -> Any:
        given = (at, y) if tfirst else (y, at)
        found = asarray(func(*given, *args))
        if found.shape != y.shape:
            raise ShapeError(f"odeint: func gives {found.type}, and y0 is {y.type}")
        return found

    rtol, atol = (_TOLERANCE if given is None else given for given in tolerances)

    def integrate_to(carry: Any, ends: Any) -> Any:
        y, step = _integrate_interval(slope, carry, ends, (rtol, atol), mxstep)
        return (y, step), y

    first = 0.01 * stop_gradient(times[-1] - times[0])
    _, rows = scan(integrate_to, (start, first), (times[:-1], times[1:]))
    return concatenate([expand_dims(start, 0), rows], 0)


def _float_of(value: Any) -> Any:
    dtype = value.dtype if isinstance(value, Handle) else np.asarray(value).dtype
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def _integrate_interval(
    slope: Callable[[Any, Any], Any],
    carry: tuple[Any, Any],
    ends: tuple[Any, Any],
    allowed: tuple[float, float],
    mxstep: int,
) -> tuple[Any, Any]:
    """The solution at the second of two ends, and the length of the last step, before it was cut.

    It starts from the solution at the first and the length of a step that is in `carry`.
    """
    (y, step), (begin, end), (rtol, atol) = carry, ends, allowed
    length = end - begin
    whole = stop_gradient(length)
    # Parts of the way from one time to the next: zero goes nowhere.
    part = where(whole == 0.0, 1.0, minimum(abs(step / where(whole == 0.0, 1.0, whole)), 1.0))

    def is_unfinished(state: Any) -> Any:
        return logical_and(less(state[0], 1.0), less(state[4], mxstep))

    def take_step(state: Any) -> Any:
        done, y, k, part, steps = state
        cut = minimum(part, 1.0 - done)
        new, last, error, _ = METHODS["RK45"].step(
            lambda at, y: length * slope(y, begin + at * length), done, y, k, cut
        )
        size = atol + rtol * maximum(abs(stop_gradient(y)), abs(stop_gradient(new)))
        ratio = sqrt(mean((stop_gradient(error) / size) ** 2))
        good = ratio <= 1.0
        factor = minimum(maximum(0.9 * maximum(ratio, 1e-10) ** -0.2, 0.2), 10.0)
        there = where(greater_equal(cut, 1.0 - done), 1.0, done + cut)
        longer = where(good, maximum(part, cut * factor), cut * factor)
        return (
            where(good, there, done),
            where(good, new, y),
            where(good, last, k),
            longer,
            steps + 1.0,
        )

    # Reverse mode keeps a row for each step made, as trips have no bound but what is counted.
    none = 0.0 * part
    state = (none, y, length * slope(y, begin), part, none)
    done, found, _, part, _ = while_loop(is_unfinished, take_step, state)
    return where(done >= 1.0, found, np.nan), part * abs(whole)


def _scipys(name: str) -> Any:
    try:
        return getattr(importlib.import_module("scipy.integrate"), name, None)
    except ImportError:
        return None


def __getattr__(name: str) -> Any:
    found = None if name.startswith("__") else _scipys(name)
    if found is None:
        raise unknown_name("primgraph.scipy.integrate", name, __all__)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
