"""Functions of numbers: arithmetic, elementary and special functions, conditions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce

from primgraph import operators as pg
from primgraph import special
from primgraph.interop.sympy.rules import Expr, Operand, Rule, function, is_number, number


def _is_division(factor: Expr) -> bool:
    """Return whether a factor is a power with a negative number as exponent."""
    return bool(factor.is_Pow and factor.exp.is_Rational and factor.exp.is_negative)


def _factors(expr: Expr) -> Sequence[Expr]:
    """Return the factors of a product: of a division, its base."""
    return [factor.base if _is_division(factor) else factor for factor in expr.args]


def _product(expr: Expr, values: Sequence[Operand]) -> Operand:
    """Return one quotient of products, so that each element is divided once."""
    above, below = [], []
    for factor, value in zip(expr.args, values, strict=True):
        if _is_division(factor):
            below.append(_power(value, -factor.exp))
        else:
            above.append(value)
    negated = len(above) > 1 and is_number(above[0]) and above[0] == -1
    total = reduce(operator.mul, above[negated:]) if above else 1.0
    total = total / reduce(operator.mul, below) if below else total
    return -total if negated else total


def _power(base: Operand, exponent: Expr) -> Operand:
    """Return a power whose exponent is a positive rational number."""
    if exponent == 1:
        return base
    if exponent.is_Rational and exponent.q == 2 and exponent.p == 1:
        return pg.sqrt(base)
    return base ** number(exponent)


def _base_and_exponent(expr: Expr) -> Sequence[Expr]:
    return [expr.base] if expr.exp.is_Rational else [expr.base, expr.exp]


def _pow(expr: Expr, values: Sequence[Operand]) -> Operand:
    if len(values) == 2:
        return pg.power(*values)
    if expr.exp.is_negative:
        return 1.0 / _power(values[0], -expr.exp)
    return _power(values[0], expr.exp)


def _pairs(expr: Expr) -> Sequence[Expr]:
    return [part for pair in expr.args for part in pair.args]


def _piecewise(expr: Expr, values: Sequence[Operand]) -> Operand:
    """Return the first piece whose condition holds, NaN if none does."""
    total: Operand = math.nan
    for value, condition in reversed(list(zip(values[::2], values[1::2], strict=True))):
        total = _where(condition, value, total)
    return total


def _where(condition: Operand, x: Operand, y: Operand) -> Operand:
    if isinstance(condition, bool):
        return x if condition else y
    return pg.where(condition, x, y)


def _fold(combine: Callable[..., Operand]) -> Rule:
    """Return the rule of an associative function of any number of arguments."""
    return Rule(lambda expr, values: reduce(combine, values))


def _is_integer(place: int) -> Callable[[Expr], bool]:
    """Return the test for a nonnegative integer as the argument at `place`."""
    return lambda expr: bool(expr.args[place].is_Integer and expr.args[place] >= 0)


def _polygamma(order: int, x: Operand) -> Operand:
    return special.polygamma(order, x) if order else special.digamma(x)


def _spherical(kind: Callable[..., Operand]) -> Rule:
    """Return the rule of a spherical Bessel function."""
    return function(lambda n, x: pg.sqrt(math.pi / 2.0 / x) * kind(n + 0.5, x))


def _singularity(x: Operand, start: Operand, order: Operand) -> Operand:
    return pg.where(x >= start, (x - start) ** order, 0.0)


ARITHMETIC = {
    "Number": Rule(lambda expr, values: number(expr), operands=lambda expr: ()),
    "NumberSymbol": Rule(lambda expr, values: number(expr)),
    "ImaginaryUnit": Rule(lambda expr, values: 1j),
    "BooleanTrue": Rule(lambda expr, values: True, folds=False),
    "BooleanFalse": Rule(lambda expr, values: False, folds=False),
    "Add": _fold(operator.add),
    "Mul": Rule(_product, operands=_factors),
    "Pow": Rule(_pow, operands=_base_and_exponent),
    "UnevaluatedExpr": function(lambda x: x),
    "Mod": function(pg.mod),
    "Abs": function(pg.abs),
    "sign": function(pg.sign),
    "floor": function(pg.floor),
    "ceiling": function(pg.ceil),
    "frac": function(lambda x: x - pg.floor(x)),
    "Max": _fold(pg.maximum),
    "Min": _fold(pg.minimum),
    "Heaviside": function(pg.heaviside),
    "KroneckerDelta": function(lambda i, j: pg.where(pg.equal(i, j), 1.0, 0.0), 2),
    "SingularityFunction": Rule(
        lambda expr, values: _singularity(*values), supports=_is_integer(2)
    ),
    "re": function(pg.real),
    "im": function(pg.imag),
    "conjugate": function(pg.conj),
    "arg": function(pg.angle),
}

CONDITIONS = {
    # Curves of muscles, which SymPy keeps unevaluated.
    "CharacteristicCurveFunction": Rule(
        lambda expr, values: values[0],
        operands=lambda expr: [expr.doit(deep=False, evaluate=True)],
        folds=False,
    ),
    "Piecewise": Rule(_piecewise, operands=_pairs, folds=False),
    "ITE": Rule(lambda expr, values: _where(*values), folds=False),
    "Equality": Rule(lambda expr, values: pg.equal(*values), folds=False),
    "Unequality": Rule(lambda expr, values: pg.not_equal(*values), folds=False),
    "StrictLessThan": Rule(lambda expr, values: pg.less(*values), folds=False),
    "LessThan": Rule(lambda expr, values: pg.less_equal(*values), folds=False),
    "StrictGreaterThan": Rule(lambda expr, values: pg.greater(*values), folds=False),
    "GreaterThan": Rule(lambda expr, values: pg.greater_equal(*values), folds=False),
    "And": Rule(lambda expr, values: reduce(pg.logical_and, values), folds=False),
    "Or": Rule(lambda expr, values: reduce(pg.logical_or, values), folds=False),
    "Xor": Rule(lambda expr, values: reduce(pg.logical_xor, values), folds=False),
    "Not": Rule(lambda expr, values: pg.logical_not(*values), folds=False),
}

_SAME_NAMES = """
    exp log sin cos tan sinh cosh tanh hypot expm1 log1p exp2 log2 log10 logaddexp logaddexp2
"""

ELEMENTARY = {
    **{name: function(getattr(pg, name)) for name in _SAME_NAMES.split()},
    "asin": function(pg.arcsin),
    "acos": function(pg.arccos),
    "atan": function(pg.arctan),
    "atan2": function(pg.arctan2),
    "asinh": function(pg.arcsinh),
    "acosh": function(pg.arccosh),
    "atanh": function(pg.arctanh),
    "sinc": function(lambda x: pg.sinc(x / math.pi)),
    "cot": function(lambda x: 1.0 / pg.tan(x)),
    "sec": function(lambda x: 1.0 / pg.cos(x)),
    "csc": function(lambda x: 1.0 / pg.sin(x)),
    "acot": function(lambda x: pg.arctan(1.0 / x)),
    "asec": function(lambda x: pg.arccos(1.0 / x)),
    "acsc": function(lambda x: pg.arcsin(1.0 / x)),
    "coth": function(lambda x: 1.0 / pg.tanh(x)),
    "sech": function(lambda x: 1.0 / pg.cosh(x)),
    "csch": function(lambda x: 1.0 / pg.sinh(x)),
    "acoth": function(lambda x: pg.arctanh(1.0 / x)),
    "asech": function(lambda x: pg.arccosh(1.0 / x)),
    "acsch": function(lambda x: pg.arcsinh(1.0 / x)),
    "Sqrt": function(pg.sqrt),
    "Cbrt": function(pg.cbrt),
    "fma": function(lambda x, y, z: x * y + z),
}

SPECIAL: dict[str, Rule] = {
    "erf": function(special.erf),
    "erfc": function(special.erfc),
    "erfi": function(special.erfi),
    "erf2": function(lambda x, y: special.erf(y) - special.erf(x)),
    "erfinv": function(special.erfinv),
    "erfcinv": function(special.erfcinv),
    "gamma": function(special.gamma),
    "loggamma": function(special.gammaln),
    "digamma": function(special.digamma),
    "trigamma": function(lambda x: special.polygamma(1, x)),
    "polygamma": Rule(
        lambda expr, values: _polygamma(int(values[0]), values[1]), supports=_is_integer(0)
    ),
    "harmonic": function(lambda n: special.digamma(n + 1.0) + _EULER, 1),
    "lowergamma": function(lambda s, x: special.gamma(s) * special.gammainc(s, x)),
    "uppergamma": function(lambda s, x: special.gamma(s) * special.gammaincc(s, x)),
    "beta": function(special.beta, 2),
    "factorial": function(lambda x: special.gamma(x + 1.0)),
    "binomial": function(special.binom),
    "RisingFactorial": function(special.poch),
    "FallingFactorial": function(lambda x, k: special.poch(x - k + 1.0, k)),
    "besselj": function(special.jv),
    "bessely": function(special.yv),
    "besseli": function(special.iv),
    "besselk": function(special.kv),
    "jn": _spherical(special.jv),
    "yn": _spherical(special.yv),
    "zeta": function(lambda s, a=1.0: special.zeta(s, a)),
    "Ei": function(special.expi),
    "E1": function(special.exp1),
    "expint": Rule(
        lambda expr, values: special.expn(int(values[0]), values[1]), supports=_is_integer(0)
    ),
    "li": function(lambda x: special.expi(pg.log(x))),
    "Li": function(lambda x: special.expi(pg.log(x)) - _LI_2),
    "Si": function(lambda x: special.sici(x)[0]),
    "Ci": function(lambda x: special.sici(x)[1]),
    "elliptic_k": function(special.ellipk),
    "elliptic_e": function(special.ellipe, 1),
    "LambertW": function(lambda x: pg.real(special.lambertw(x)), 1),
    "polylog": Rule(
        lambda expr, values: special.spence(1.0 - values[1]), supports=lambda e: e.args[0] == 2
    ),
    "hyper": Rule(
        lambda expr, values: special.hyp2f1(*values),
        operands=lambda expr: [*expr.ap, *expr.bq, expr.argument],
        supports=lambda expr: (len(expr.ap), len(expr.bq)) == (2, 1),
    ),
}

# Euler's constant, and the logarithmic integral of 2.
_EULER = 0.5772156649015329
_LI_2 = 1.045163780117493

FUNCTIONS: dict[str, Rule] = {**ARITHMETIC, **CONDITIONS, **ELEMENTARY, **SPECIAL}
