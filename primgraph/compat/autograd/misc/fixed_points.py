"""Fixed points of functions with parameters, differentiated as functions of these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from primgraph.compat.autograd.core import defvjp, make_vjp, primitive
from primgraph.compat.autograd.spaces import vspace


@primitive
def fixed_point(
    f: Callable[[Any], Callable[[Any], Any]],
    a: Any,
    x0: Any,
    distance: Callable[[Any, Any], Any],
    tol: float,
) -> Any:
    """The `x` that `f(a)` maps to itself, found by going on from `x0` until steps are below `tol`.

    Its derivative by `a` is found as another fixed point (B. Christianson, Reverse accumulation
    and attractive fixed points, 1994), and by `x0` it is zero.
    """
    step = f(a)
    before, x = x0, step(x0)
    while distance(x, before) > tol:
        before, x = x, step(x)
    return x


def _adjoint_step(parts: tuple[Any, Any, Any]) -> Callable[[Any], Any]:
    """Return the iteration map of the adjoint: the VJP of the step plus the seed."""
    of_x, x, seed = parts
    vjp, _ = make_vjp(of_x, x)
    return lambda w: vspace(x).add(vjp(w), seed)


def _vjp_by_parameters(ans: Any, f: Any, a: Any, x0: Any, distance: Any, tol: Any) -> Any:
    vjp, _ = make_vjp(lambda b: f(b)(ans), a)

    def step(parts: Any) -> Any:
        b, x, seed = parts
        return _adjoint_step((f(b), x, seed))

    def pull(seed: Any) -> Any:
        start = vspace(ans).zeros()
        return vjp(fixed_point(step, (a, ans, seed), start, distance, tol))

    return pull


defvjp(fixed_point, None, _vjp_by_parameters, None, None, None)
