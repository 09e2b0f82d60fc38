"""Derivatives compared with differences of values, in random directions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

from primgraph.compat.autograd.core import make_jvp, make_vjp, vspace
from primgraph.compat.autograd.wrap_util import name_of, unary_to_nary

# How far numbers may be apart, absolutely or of their size, and the step of differences.
TOL = RTOL = EPS = 1e-6


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers are close, absolutely or of their size."""
    distance = abs(a - b)
    return bool(distance < TOL or distance / abs(a + b) < RTOL)


def _differences(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """The product of the Jacobian with a vector, by central differences."""
    before, after = vspace(x), vspace(f(x))

    def jvp(v: Any) -> Any:
        up = f(before.add(x, before.scalar_mul(v, EPS / 2)))
        down = f(before.add(x, before.scalar_mul(v, -EPS / 2)))
        return after.scalar_mul(after.add(up, after.scalar_mul(down, -1.0)), 1.0 / EPS)

    return jvp


def check_vjp(f: Callable[[Any], Any], x: Any) -> None:
    """Compare reverse mode with differences; `AssertionError` where it is something else."""
    vjp, y = make_vjp(f, x)
    before, after = vspace(x), vspace(y)
    along, seed = before.randn(), after.randn()
    found = before.covector(vjp(after.covector(seed)))
    assert vspace(found) == before, f"{vspace(found)} is the gradient by {before}"
    exact = before.inner_prod(along, found)
    numeric = after.inner_prod(seed, _differences(f, x)(along))
    assert scalar_close(numeric, exact), (
        f"Derivative (VJP) check of {name_of(f)} failed with arg {x}:\n"
        f"analytic: {exact}\nnumeric:  {numeric}"
    )


def check_jvp(f: Callable[[Any], Any], x: Any) -> None:
    """Compare forward mode with differences; `AssertionError` where it is something else."""
    along = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(along)[1], _differences(f, x)(along))


def check_equivalent(x: Any, y: Any) -> None:
    """`AssertionError` for values of other spaces, or that are not close."""
    space = vspace(x)
    assert space == vspace(y), f"VSpace mismatch:\nx: {space}\ny: {vspace(y)}"
    along = space.randn()
    close = scalar_close(space.inner_prod(x, along), space.inner_prod(y, along))
    assert close, f"Value mismatch:\nx: {x}\ny: {y}"


@unary_to_nary
def check_grads(
    f: Callable[[Any], Any], x: Any, modes: Sequence[str] = ("fwd", "rev"), order: int = 2
) -> None:
    """Compare derivatives, up to that order and in these modes, with differences."""
    if not set(modes) <= {"fwd", "rev"}:
        raise ValueError(f"modes are 'fwd' and 'rev', not {modes!r}")
    if "fwd" in modes:
        check_jvp(f, x)
        _check_again(f, x, _tangent, vspace(x).randn() if order > 1 else None, modes, order)
    if "rev" in modes:
        check_vjp(f, x)
        _check_again(f, x, _cotangent, vspace(f(x)).randn() if order > 1 else None, modes, order)


def _tangent(f: Callable[[Any], Any], x: Any, v: Any) -> Any:
    return make_jvp(f, x)(v)[1]


def _cotangent(f: Callable[[Any], Any], x: Any, v: Any) -> Any:
    return make_vjp(f, x)[0](v)


def _check_again(
    f: Callable[[Any], Any],
    x: Any,
    product_of: Callable[..., Any],
    v: Any,
    modes: Sequence[str],
    order: int,
) -> None:
    """Check the derivatives of a product with the Jacobian, where there are orders left."""
    if order <= 1:
        return

    def derivative(x: Any, v: Any) -> Any:
        return product_of(f, x, v)

    derivative.__name__ = f"{'jvp' if product_of is _tangent else 'vjp'}_{name_of(f)}"
    check_grads(derivative, (0, 1), modes, order=order - 1)(x, v)


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """A function of choices for each argument, which checks `fun` for all combinations of them."""

    def check(*choices: Iterable[Any], **named: Iterable[Any]) -> None:
        rows = [[(key, value) for value in values] for key, values in named.items()]
        for chosen in product(*choices):
            for options in product(*rows):
                check_grads(fun, *args, **kwargs)(*chosen, **dict(options))

    return check
