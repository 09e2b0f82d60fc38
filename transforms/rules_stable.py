"""Rules of `simplify` that find logistic functions, in forms that neither overflow nor cancel."""

from __future__ import annotations

from typing import Any

from primgraph.ir.graph import Value
from primgraph.primitives import elementwise as e
from primgraph.primitives.constants import filled
from primgraph.transforms.rules import Family, Seen

STABLE = Family()
_rule = STABLE.rule


def _exponential_plus_one(seen: Seen, value: Value) -> Value | None:
    """`x` if `value` is `1 + exp(x)`."""
    total = seen.made_by(e.add, value)
    for one, power in () if total is None else (total.inputs, total.inputs[::-1]):
        if seen.scalar(one) == 1:
            return seen.inside(e.exp, power)
    return None


@_rule(e.div, level="fast")
def _logistic(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`1 / (1 + exp(-x))` and `exp(x) / (1 + exp(x))` are `sigmoid(x)`."""
    x, y = inputs
    inner = _exponential_plus_one(seen, y)
    if inner is None:
        return None
    if seen.scalar(x) == 1:
        result: Value = e.sigmoid(-inner)
        return result
    if seen.inside(e.exp, x) is inner:
        result = e.sigmoid(inner)
        return result
    return None


@_rule(e.sub, level="fast")
def _other_side(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`1 - sigmoid(x)` is `sigmoid(-x)`, where nothing cancels; not if `sigmoid(x)` stays."""
    x, y = inputs
    inner = seen.inside(e.sigmoid, y)
    if inner is None or seen.scalar(x) != 1 or not seen.single(y):
        return None
    result: Value = e.sigmoid(-inner)
    return result


@_rule(e.log1p, level="fast")
def _softplus(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`log1p(exp(x))` is `logaddexp(x, 0)`."""
    inner = seen.inside(e.exp, inputs[0])
    if inner is None:
        return None
    result: Value = e.logaddexp(inner, filled(0, inner.type))
    return result


@_rule(e.log, level="fast")
def _log_of_logistic(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`log(sigmoid(x))` is `-logaddexp(-x, 0)`."""
    inner = seen.inside(e.sigmoid, inputs[0])
    if inner is None:
        return None
    result: Value = -e.logaddexp(-inner, filled(0, inner.type))
    return result


@_rule(e.log, level="fast")
def _log_of_share(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`log(exp(x) / y)` is `x - log(y)`, which for a softmax is its logarithm without underflow."""
    quotient = seen.made_by(e.div, inputs[0])
    inner = None if quotient is None else seen.inside(e.exp, quotient.inputs[0])
    if quotient is None or inner is None:
        return None
    rest: Value = e.log(quotient.inputs[1])
    return inner - rest
