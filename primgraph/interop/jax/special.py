"""Rules of special functions."""

from __future__ import annotations

from primgraph import special
from primgraph.interop.jax.rules import (
    Site,
    convert,
    emit,
    full_like,
    register_plain,
    rule,
)
from primgraph.operators.numpy_arguments import call_named
from primgraph.operators.variable import Variable
from primgraph.primitives import elementwise as e
from primgraph.primitives import logic

register_plain({"erf": e.erf, "erfc": e.erfc})

_NAMES = {
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
    "digamma": "digamma",
    "erf_inv": "erfinv",
    "igamma": "gammainc",
    "igammac": "gammaincc",
    "lgamma": "gammaln",
    "regularized_incomplete_beta": "betainc",
    "zeta": "zeta",
}


@rule(*_NAMES, broadcasts=True)
def _special(at: Site, *operands: Variable) -> Variable:
    function = getattr(special, _NAMES[at.name])
    return convert(function(*operands), at.dtype)


@rule("polygamma", broadcasts=True)
def _polygamma(at: Site, m: Variable, x: Variable) -> Variable:
    """The derivatives of digamma, of orders in an array, by Hurwitz's zeta function."""
    order = emit(e.add, m, full_like(m, 1))
    size = emit(e.exp, special.gammaln(order))
    half = emit(e.remainder, m, full_like(m, 2))
    sign = emit(e.sub, emit(e.mul, half, full_like(m, 2)), full_like(m, 1))
    found = emit(e.mul, emit(e.mul, sign, size), convert(special.zeta(order, x), x.dtype))
    is_zero = emit(logic.equal, m, full_like(m, 0))
    return emit(logic.select, is_zero, convert(special.digamma(x), x.dtype), found)


@rule("igamma_grad_a", broadcasts=True)
def _igamma_grad_a(at: Site, a: Variable, x: Variable) -> Variable:
    found: Variable = call_named("grad", call_named("sum", special.gammainc(a, x)), a)
    return found
