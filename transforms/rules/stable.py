"""Rules of `clean_up` for forms that neither overflow nor cancel, which are not the fastest.

NumPy computes `log(1 + exp(x))` in less time than `logaddexp(x, 0)`, so that these rules
are applied where a graph is raised, and not where one is compiled.
"""

from __future__ import annotations

from typing import Any

from primgraph.ir.graph import Value
from primgraph.primitives import elementwise as e
from primgraph.primitives.constants import filled
from primgraph.transforms.rules.rule import Family, Seen

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


@_rule(e.sub, level="fast")
def _exponential_less_one(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`exp(x) - 1` is `expm1(x)`, which is right for small x too."""
    x, y = inputs
    inner = seen.inside(e.exp, x)
    if inner is None or seen.scalar(y) != 1 or not seen.single(x):
        return None
    result: Value = e.expm1(inner)
    return result


@_rule(e.log, level="fast")
def _logarithm_near_one(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """`log(1 + x)` is `log1p(x)`, which is right for small x too."""
    total = seen.made_by(e.add, inputs[0])
    for one, x in () if total is None else (total.inputs, total.inputs[::-1]):
        if seen.scalar(one) == 1:
            result: Value = e.log1p(x)
            return result
    return None
