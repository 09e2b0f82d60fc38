"""Special functions computed by SciPy at run time: Bessel functions, integrals, Lambert's W.

They are named as in scipy.special. Kernels with them need SciPy installed, also as saved files.
Integers count as float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from primgraph.errors import ArgumentError
from primgraph.operators.call import of_namespace
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import fractional, promoted, require_integer
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.special_functions.scipy_calls import by_scipy

__all__ = [
    "SiciResult",
    "dawsn",
    "ellipe",
    "ellipk",
    "erfi",
    "exp1",
    "expi",
    "expn",
    "hyp2f1",
    "i0",
    "i0e",
    "i1",
    "i1e",
    "iv",
    "ive",
    "j0",
    "j1",
    "jv",
    "k0",
    "k0e",
    "k1",
    "k1e",
    "kv",
    "kve",
    "lambertw",
    "sici",
    "spence",
    "y0",
    "y1",
    "yv",
    "zeta",
]


def _emit(name: str, *operands: ArrayLike, part: int = 0) -> Variable:
    values = promoted(*operands, dtype=fractional(*operands), name=name)
    return emit(by_scipy, *values, name=name, part=part)


def _of_one(name: str, doc: str) -> Callable[[ArrayLike], Variable]:
    def function(x: ArrayLike) -> Variable:
        return _emit(name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}\n\n    Computed by SciPy.\n    "
    return of_namespace(function)


def _of_order(name: str, doc: str) -> Callable[[ArrayLike, ArrayLike], Variable]:
    def function(v: ArrayLike, x: ArrayLike) -> Variable:
        return _emit(name, v, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc}

    Computed by SciPy. Derivatives by `v` are refused with `NotDifferentiable`.
    """
    return of_namespace(function)


dawsn = _of_one("dawsn", "Dawson's integral, `exp(-x*x)` times the integral of `exp(t*t)` to `x`.")
ellipe = _of_one("ellipe", "The complete elliptic integral of the second kind, of parameter `x`.")
ellipk = _of_one("ellipk", "The complete elliptic integral of the first kind, of parameter `x`.")
erfi = _of_one("erfi", "`-1j * erf(1j * x)`, which is real.")
exp1 = _of_one("exp1", "The integral of `exp(-t) / t` from `x` on.")
expi = _of_one("expi", "The integral of `exp(t) / t` up to `x`, its principal value.")
spence = _of_one("spence", "The integral of `log(t) / (1 - t)` from 1 to `x`; a dilogarithm.")
i0 = _of_one("i0", "The modified Bessel function of the first kind, of order 0.")
i0e = _of_one("i0e", "`exp(-abs(x)) * i0(x)`.")
i1 = _of_one("i1", "The modified Bessel function of the first kind, of order 1.")
i1e = _of_one("i1e", "`exp(-abs(x)) * i1(x)`.")
j0 = _of_one("j0", "The Bessel function of the first kind, of order 0.")
j1 = _of_one("j1", "The Bessel function of the first kind, of order 1.")
k0 = _of_one("k0", "The modified Bessel function of the second kind, of order 0.")
k0e = _of_one("k0e", "`exp(x) * k0(x)`.")
k1 = _of_one("k1", "The modified Bessel function of the second kind, of order 1.")
k1e = _of_one("k1e", "`exp(x) * k1(x)`.")
y0 = _of_one("y0", "The Bessel function of the second kind, of order 0.")
y1 = _of_one("y1", "The Bessel function of the second kind, of order 1.")
iv = _of_order("iv", "The modified Bessel function of the first kind, of order `v`.")
ive = _of_order("ive", "`exp(-abs(x)) * iv(v, x)`.")
jv = _of_order("jv", "The Bessel function of the first kind, of order `v`.")
kv = _of_order("kv", "The modified Bessel function of the second kind, of order `v`.")
kve = _of_order("kve", "`exp(x) * kv(v, x)`.")
yv = _of_order("yv", "The Bessel function of the second kind, of order `v`.")


@of_namespace
def expn(n: ArrayLike, x: ArrayLike) -> Variable:
    """Return the integral of `exp(-x * t) / t**n` over t from 1 to infinity, for integers `n >= 0`.

    Computed by SciPy. Derivatives by `n` raise `NotDifferentiable`.
    """
    return _emit("expn", n, x)


@of_namespace
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, z: ArrayLike) -> Variable:
    """Return Gauss's hypergeometric function.

    Computed by SciPy. Derivatives by `a`, `b` and `c` raise `NotDifferentiable`.
    """
    return _emit("hyp2f1", a, b, c, z)


class SiciResult(NamedTuple):
    """Sine and cosine integral."""

    si: Variable
    ci: Variable


@of_namespace
def sici(x: ArrayLike) -> SiciResult:
    """Return the integral of `sin(t) / t` from 0 to `x`, and that of `cos(t) / t` from infinity.

    Computed by SciPy.
    """
    return SiciResult(_emit("sici", x), _emit("sici", x, part=1))


@of_namespace
def lambertw(z: ArrayLike, k: int = 0) -> Variable:
    """Return the real `w` with `w * exp(w) = z`: at least -1 for `k` 0, at most -1 for `k` -1.

    Computed by SciPy; NaN where `w` is complex. Raises `ArgumentError` for other branches.
    """
    branch = require_integer("lambertw", k)
    if branch not in (0, -1):
        raise ArgumentError(f"lambertw has the branches 0 and -1, not {branch}")
    return _emit("lambertw", z, part=branch)


@of_namespace
def zeta(x: ArrayLike, q: ArrayLike = 1.0) -> Variable:
    """Return Hurwitz's zeta function, the sum of `(k + q)**-x` over `k >= 0`; Riemann's for `q` 1.

    Computed by SciPy. Derivatives by `x` raise `NotDifferentiable`.

    >>> print(f"{pg.special.zeta(2.0, 1.0):.4f}")
    1.6449
    """
    return _emit("zeta", x, q)
