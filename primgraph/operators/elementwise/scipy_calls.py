"""Special functions computed by SciPy at run time: Bessel functions, integrals, Lambert's W.

They are named as in scipy.special. Kernels with them need SciPy installed, also as saved files.
Integers count as float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from primgraph.errors import ArgumentError
from primgraph.ir.types import complex_dtype
from primgraph.operators.call import namespace_operator
from primgraph.operators.handle import ArrayLike
from primgraph.operators.promotion import fractional, lift, promote_operands, require_integer
from primgraph.operators.variable import Variable, emit
from primgraph.primitives.special_functions.scipy_calls import by_scipy


def _emit(name: str, *operands: ArrayLike, part: int = 0) -> Variable:
    values = promote_operands(*operands, dtype=fractional(*operands), name=name)
    return emit(by_scipy, *values, name=name, part=part)


def _doc_with_example(doc: str, name: str, example: str) -> str:
    """Return a docstring with an example "arguments -> result"."""
    arguments, result = example.split(" -> ")
    return f"""{doc}

    >>> print(f"{{pg.special.{name}({arguments}):.4f}}")
    {result}
    """


def _declare(name: str, doc: str, example: str) -> Callable[[ArrayLike], Variable]:
    def function(x: ArrayLike) -> Variable:
        return _emit(name, x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _doc_with_example(f"{doc}\n\n    Computed by SciPy.", name, example)
    return namespace_operator(function)


def _binary_op(name: str, doc: str, example: str) -> Callable[[ArrayLike, ArrayLike], Variable]:
    def function(v: ArrayLike, x: ArrayLike) -> Variable:
        return _emit(name, v, x)

    function.__name__ = function.__qualname__ = name
    source = "Computed by SciPy; derivatives by `v` are in NumPy, for positive `x`, else NaN."
    function.__doc__ = _doc_with_example(f"{doc}\n\n    {source}", name, example)
    return namespace_operator(function)


dawsn = _declare(
    "dawsn",
    "Compute Dawson's integral, `exp(-x*x)` times the integral of `exp(t*t)` from 0 to `x`.",
    "0.5 -> 0.4244",
)
ellipe = _declare(
    "ellipe",
    "Compute the complete elliptic integral of the second kind, of parameter `x`.",
    "0.5 -> 1.3506",
)
ellipk = _declare(
    "ellipk",
    "Compute the complete elliptic integral of the first kind, of parameter `x`.",
    "0.5 -> 1.8541",
)
erfi = _declare("erfi", "Compute `-1j * erf(1j * x)`, which is real.", "0.5 -> 0.6150")
exp1 = _declare("exp1", "Compute the integral of `exp(-t) / t` from `x` on.", "0.5 -> 0.5598")
expi = _declare(
    "expi",
    "Compute the integral of `exp(t) / t` up to `x`, its principal value.",
    "0.5 -> 0.4542",
)
spence = _declare(
    "spence",
    "Compute the integral of `log(t) / (1 - t)` from 1 to `x`; a dilogarithm.",
    "0.5 -> 0.5822",
)
i0 = _declare(
    "i0",
    "Compute the modified Bessel function of the first kind, of order 0.",
    "0.5 -> 1.0635",
)
i0e = _declare("i0e", "Compute `exp(-abs(x)) * i0(x)`.", "0.5 -> 0.6450")
i1 = _declare(
    "i1",
    "Compute the modified Bessel function of the first kind, of order 1.",
    "0.5 -> 0.2579",
)
i1e = _declare("i1e", "Compute `exp(-abs(x)) * i1(x)`.", "0.5 -> 0.1564")
j0 = _declare("j0", "Compute the Bessel function of the first kind, of order 0.", "0.5 -> 0.9385")
j1 = _declare("j1", "Compute the Bessel function of the first kind, of order 1.", "0.5 -> 0.2423")
k0 = _declare(
    "k0",
    "Compute the modified Bessel function of the second kind, of order 0.",
    "0.5 -> 0.9244",
)
k0e = _declare("k0e", "Compute `exp(x) * k0(x)`.", "0.5 -> 1.5241")
k1 = _declare(
    "k1",
    "Compute the modified Bessel function of the second kind, of order 1.",
    "0.5 -> 1.6564",
)
k1e = _declare("k1e", "Compute `exp(x) * k1(x)`.", "0.5 -> 2.7310")
y0 = _declare("y0", "Compute the Bessel function of the second kind, of order 0.", "0.5 -> -0.4445")
y1 = _declare("y1", "Compute the Bessel function of the second kind, of order 1.", "0.5 -> -1.4715")
iv = _binary_op(
    "iv",
    "Compute the modified Bessel function of the first kind, of order `v`.",
    "1.0, 0.5 -> 0.2579",
)
ive = _binary_op("ive", "Compute `exp(-abs(x)) * iv(v, x)`.", "1.0, 0.5 -> 0.1564")
jv = _binary_op(
    "jv",
    "Compute the Bessel function of the first kind, of order `v`.",
    "1.0, 0.5 -> 0.2423",
)
kv = _binary_op(
    "kv",
    "Compute the modified Bessel function of the second kind, of order `v`.",
    "1.0, 0.5 -> 1.6564",
)
kve = _binary_op("kve", "Compute `exp(x) * kv(v, x)`.", "1.0, 0.5 -> 2.7310")
yv = _binary_op(
    "yv",
    "Compute the Bessel function of the second kind, of order `v`.",
    "1.0, 0.5 -> -1.4715",
)


@namespace_operator
def expn(n: ArrayLike, x: ArrayLike) -> Variable:
    """Compute the integral of `exp(-x * t) / t**n` from 1 on, for whole numbers `n` from 0 on.

    Computed by SciPy. Derivatives by `n` are refused with `NotDifferentiable`.

    >>> print(f"{pg.special.expn(2, 0.5):.4f}")
    0.3266
    """
    return _emit("expn", n, x)


@namespace_operator
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Variable:
    """Compute Kummer's confluent hypergeometric function.

    Computed by SciPy; derivatives by `a` and `b` are in NumPy.

    >>> print(f"{pg.special.hyp1f1(1.0, 2.0, 0.5):.4f}")
    1.2974
    """
    return _emit("hyp1f1", a, b, x)


@namespace_operator
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, z: ArrayLike) -> Variable:
    """Compute Gauss's hypergeometric function.

    Computed by SciPy; derivatives by `a`, `b` and `c` are in NumPy, and NaN from `z = 1` on.

    >>> print(f"{pg.special.hyp2f1(1.0, 1.0, 2.0, 0.5):.4f}")
    1.3863
    """
    return _emit("hyp2f1", a, b, c, z)


@namespace_operator
def wofz(z: ArrayLike) -> Variable:
    """Compute Faddeeva's function, `exp(-z*z) * erfc(-1j * z)`, which is complex.

    Computed by SciPy.

    >>> print(f"{pg.special.wofz(0.5j):.4f}")
    0.6157+0.0000j
    """
    return emit(by_scipy, lift(z, complex_dtype(fractional(z))), name="wofz", part=0)


class SiciResult(NamedTuple):
    """Sine and cosine integral."""

    si: Variable
    ci: Variable


@namespace_operator
def sici(x: ArrayLike) -> SiciResult:
    """Compute the integral of `sin(t) / t` from 0 to `x`, and of `cos(t) / t` from infinity to `x`.

    Computed by SciPy.

    >>> print(f"{pg.special.sici(1.0).si:.4f}")
    0.9461
    """
    return SiciResult(_emit("sici", x), _emit("sici", x, part=1))


@namespace_operator
def lambertw(z: ArrayLike, k: int = 0) -> Variable:
    """Compute the real `w` with `w * exp(w) = z`: `w >= -1` for `k` 0, and `w <= -1` for `k` -1.

    Computed by SciPy; NaN where `w` is complex. Raises `ArgumentError` for other branches.

    >>> print(f"{pg.special.lambertw(1.0):.4f}")
    0.5671
    """
    branch = require_integer("lambertw", k)
    if branch not in (0, -1):
        raise ArgumentError(f"lambertw has the branches 0 and -1, not {branch}")
    return _emit("lambertw", z, part=branch)


@namespace_operator
def zeta(x: ArrayLike, q: ArrayLike = 1.0) -> Variable:
    """Compute Hurwitz's zeta function, the sum of `(k + q)**-x` over `k >= 0`; Riemann's for `q` 1.

    Computed by SciPy; derivatives by `x` are in NumPy, for `x` above 1.

    >>> print(f"{pg.special.zeta(2.0, 1.0):.4f}")
    1.6449
    """
    return _emit("zeta", x, q)
