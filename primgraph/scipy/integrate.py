"""Integration by SciPy's names.

`solve_ivp` and `solve_bvp` are SciPy's methods, with exact Jacobians of traced functions. `odeint`
and `quad` are SciPy's own on arrays, and recorded with variables and tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from primgraph import tree
from primgraph.api.arguments import call_differentiated
from primgraph.api.derivatives.products import jvp
from primgraph.api.jit import jit
from primgraph.api.public import jacobian
from primgraph.api.vmap import vmap
from primgraph.control.loops import scan, while_loop
from primgraph.errors import ArgumentError, ShapeError, unknown_name
from primgraph.operators.elementwise.arithmetic import abs, maximum, minimum
from primgraph.operators.elementwise.elementary import sqrt
from primgraph.operators.elementwise.logic import greater_equal, less, logical_and, where
from primgraph.operators.handle import Handle
from primgraph.operators.lazy_loading import functions
from primgraph.operators.reduce.statistics import mean
from primgraph.operators.shape.creation import stop_gradient
from primgraph.operators.shape.joining import concatenate
from primgraph.operators.shape.shaping import expand_dims
from primgraph.scipy.traced import (
    Unknowns,
    arguments_of,
    as_vector,
    is_plain,
    of_scipy,
    refuse_variables,
    require_vector,
)
from primgraph.solvers import quadrature
from primgraph.solvers.ode_steps import METHODS

__all__ = ["odeint", "quad", "solve_bvp", "solve_ivp"]

# What SciPy allows an error to be of a value, and beside that.
_TOLERANCE = 1.49012e-8

# Methods of `solve_ivp` that take a Jacobian.
_IMPLICIT = ("Radau", "BDF", "LSODA")


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Sequence[float],
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Sequence[Any] | None = None,
    **options: Any,
) -> Any:
    """Solve `dy/dt = fun(t, y, *args)` by `scipy.integrate.solve_ivp`, with an exact Jacobian.

    The function is traced, and runs as a kernel; Radau, BDF and LSODA have its Jacobian by `y`.
    `y0` is a vector, or a container of arrays of any shape, which `fun` and `events` take, and
    `fun` returns; rows of `y` in the result are the elements in order. `args` is a tuple, a list or
    one further argument, such as a number, a dict or a DataFrame. Results are SciPy's.

    With `vectorized` or `jac`, or a complex `y0`, SciPy is called with the arguments as they are,
    and `y0` is a vector. Raises `ArgumentError` for variables, which `pg.solvers.solve_ivp` takes;
    `ArgumentError`, `ShapeError` or `DTypeError` where `fun` returns something else than `y0`.

    >>> from primgraph.scipy.integrate import solve_ivp
    >>> slope = lambda t, y: np.array([y[1], 1000.0 * (1 - y[0] ** 2) * y[1] - y[0]])
    >>> found = solve_ivp(slope, (0.0, 1000.0), [2.0, 0.0], method="Radau")
    >>> found.success, found.nfev < 2000
    (True, True)
    """
    theirs, passed = _theirs("solve_ivp"), arguments_of(args, (tuple, list, np.ndarray))
    options = {"t_eval": t_eval, "dense_output": dense_output, **options}
    refuse_variables("solve_ivp", tree.leaves((t_span, y0, t_eval)))
    if np.shape(t_span) != (2,):
        raise ArgumentError(f"solve_ivp: t_span is a pair of times, not {t_span!r:.60}")
    if vectorized or options.get("jac") is not None or _is_complex(y0):
        require_vector("solve_ivp", "y0", y0, "with jac, with vectorized, and of complex numbers")
        given = {"events": events, "vectorized": vectorized, "args": passed or None}
        return theirs(fun, t_span, y0, method, **given, **options)
    unknowns = Unknowns("solve_ivp", y0, "y0")

    @wraps(fun)
    def slope(t: Any, y: Any) -> Any:
        found = call_differentiated(fun, t, unknowns.split(y), *passed)
        return unknowns.vector_like(found)

    if getattr(method, "__name__", method) in _IMPLICIT:
        options["jac"] = jit(jacobian(slope, argnums=1))
    if events is not None:
        options["events"] = _events(events, unknowns, passed)
    return theirs(jit(slope), t_span, unknowns.start, method, **options)


def _events(events: Any, unknowns: Unknowns, args: tuple[Any, ...]) -> Any:
    """Return one event or several as functions of the vector."""
    if isinstance(events, list | tuple):
        return [_event(e, unknowns, args) for e in events]
    return _event(events, unknowns, args)


def _event(event: Callable[..., Any], unknowns: Unknowns, args: tuple[Any, ...]) -> Any:
    """Return an event as a function of the vector, with the attributes that SciPy reads."""

    @wraps(event)
    def call(t: float, y: Any) -> Any:
        return event(t, unknowns.split(y), *args)

    return call


def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,
    fun_jac: Any = None,
    bc_jac: Any = None,
    **options: Any,
) -> Any:
    """Solve `dy/dx = fun(x, y)` with `bc(ya, yb) = 0` by `scipy.integrate.solve_bvp`.

    Both functions are traced, with unknown parameters `p` as a third argument if there are any, and
    their Jacobians are exact: `fun_jac` and `bc_jac` unless they are given. As in SciPy, `fun`
    takes points `x` of shape (m,) and `y` of shape (n, m), and computes each column from that
    column alone. `p` is an array or a container, as in the result, which is SciPy's. Complex `y`
    are SciPy's own. Errors are those of `solve_ivp`.

    >>> from primgraph.scipy.integrate import solve_bvp
    >>> x = np.linspace(0.0, 1.0, 5)
    >>> slope = lambda x, y: np.stack([y[1], -np.exp(y[0])])
    >>> found = solve_bvp(slope, lambda a, b: np.stack([a[0], b[0]]), x, np.zeros((2, 5)))
    >>> found.success, f"{found.sol(0.5)[0]:.3f}"
    (True, '0.141')
    """
    theirs = _theirs("solve_bvp")
    refuse_variables("solve_bvp", tree.leaves((x, y, p)))
    if np.iscomplexobj(y) or np.ndim(y) != 2:
        return theirs(fun, bc, x, y, p, S, fun_jac, bc_jac, **options)
    sizes = {"x": ("points",), "y": (len(y), "points")}
    unknowns = None if p is None else Unknowns("solve_bvp", p, "p")
    split = tuple if unknowns is None else lambda p: (unknowns.split(p[0]),)

    @wraps(bc)
    def conditions(a: Any, b: Any, *p: Any) -> Any:
        return as_vector(call_differentiated(bc, a, b, *split(p)))

    def slope(x: Any, y: Any, *p: Any) -> Any:
        return functions["asarray"](call_differentiated(fun, x, y, *split(p)))

    def slopes(x: Any, y: Any, *p: Any) -> Any:
        by_y = _by_rows(lambda v: slope(x, v, *p), y)
        return by_y if not p else (by_y, _by_numbers(lambda v: slope(x, y, v), p[0]))

    of_points = jit(slopes, sizes=sizes) if fun_jac is None else fun_jac
    of_ends = bc_jac or jit(jacobian(conditions, argnums=(0, 1) if p is None else (0, 1, 2)))
    more = (None if unknowns is None else unknowns.start, S, of_points, of_ends)
    found = theirs(jit(slope, sizes=sizes), jit(conditions), x, y, *more, **options)
    return found if unknowns is None else unknowns.restored(found, "p")


def quad(
    func: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: bool | int = False,
    epsabs: float = _TOLERANCE,
    epsrel: float = _TOLERANCE,
    limit: int = 50,
    **options: Any,
) -> Any:
    """Integrate `func(x, *args)` from `a` to `b`; return the integral and its absolute error.

    Without variables and tensors it is SciPy's, with all of its options. In a program, and in a
    function that is differentiated, it is `pg.solvers.quad`, with derivatives by `a`, `b` and
    whatever `func` depends on; the error is its tolerance.

    >>> from primgraph.scipy.integrate import quad
    >>> quad(lambda x, k: np.exp(-k * x), 0.0, np.inf, args=2.0)[0]
    0.49999999999999994
    >>> pg.grad(lambda k: quad(lambda x: np.exp(-k * x), 0.0, np.inf)[0])(2.0).round(6)
    np.float64(-0.25)
    """
    passed = arguments_of(args)
    if is_plain((a, b, passed)):
        theirs = _theirs("quad")
        named = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, **options}
        return theirs(func, a, b, passed, full_output, **named)
    given = [*options, *(["full_output"] if full_output else [])]
    if given:
        raise ArgumentError(
            f"quad of variables and tensors takes args, epsabs, epsrel and limit, and no {given[0]}"
        )
    found = quadrature.quad(lambda x: func(x, *passed), a, b, rtol=epsrel, atol=epsabs, limit=limit)
    return found, np.maximum(epsabs, epsrel * np.abs(found))


def _by_rows(function: Callable[[Any], Any], y: Any) -> Any:
    """Return the derivatives of each column by the elements of that column of `y`: (n, n, m)."""

    def along(unit: Any) -> Any:
        return jvp(function, (y,), (functions["reshape"](unit, (-1, 1)) + 0.0 * y,))[1]

    return functions["swapaxes"](vmap(along)(np.eye(y.shape[0])), 0, 1)


def _by_numbers(function: Callable[[Any], Any], p: Any) -> Any:
    """Return the derivatives of columns by the numbers of a vector: (n, k, m)."""
    found = vmap(lambda unit: jvp(function, (p,), (unit,))[1])(np.eye(p.shape[0]))
    return functions["swapaxes"](found, 0, 1)


def _is_complex(given: Any) -> bool:
    """Return whether there are complex numbers in a container."""
    return any(np.iscomplexobj(leaf) for leaf in tree.leaves(given))


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
    if is_plain((y0, t, args)):
        theirs = of_scipy("integrate", "odeint")
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


def _theirs(name: str) -> Any:
    found = None if name.startswith("__") else of_scipy("integrate", name)
    if found is None:
        raise unknown_name("primgraph.scipy.integrate", name, __all__)
    return found


def __getattr__(name: str) -> Any:
    return _theirs(name)


def __dir__() -> list[str]:
    return sorted(__all__)
