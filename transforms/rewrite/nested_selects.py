"""Rules of the final `clean_up` for a `select` inside another one by the same condition.

They are exact, but remove guards that derivatives need: `where(x > 0, log(where(x > 0, x, 1)), 0)`
has a finite derivative, `where(x > 0, log(x), 0)` has none for x = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.ir.graph import Value
from primgraph.ir.primitive import Primitive
from primgraph.primitives.elementwise import abs_, exp, mul, neg
from primgraph.primitives.logic import greater, select
from primgraph.transforms.rewrite.constant_masks import LAST
from primgraph.transforms.rewrite.rule import Seen

# Maximum number of operations through which a select is sought.
_DEEPEST = 6


@LAST.rule(select)
def _select_in_select(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Replace selects by the same condition inside a branch by what they choose there."""
    condition, first, second = inputs
    found = [_chosen(seen, v, condition, k, _DEEPEST) for k, v in ((1, first), (2, second))]
    if found == [None, None]:
        return None
    chosen = [v if new is None else new for v, new in zip((first, second), found, strict=True)]
    return select(condition, *chosen)


def _chosen(seen: Seen, value: Value, condition: Value, branch: int, depth: int) -> Value | None:
    """Return `value` where `condition` has chosen that branch, if it has a select by it."""
    eqn = seen.builder.definition(value)
    if eqn is None or not depth or not isinstance(eqn.op, Primitive):
        return None
    if eqn.op is select and eqn.inputs[0] is condition:
        inner = _chosen(seen, eqn.inputs[branch], condition, branch, depth - 1)
        return eqn.inputs[branch] if inner is None else inner
    if not eqn.op.elementwise or len(eqn.outputs) != 1 or not seen.single(value):
        return None
    found = [_chosen(seen, v, condition, branch, depth - 1) for v in eqn.inputs]
    if not any(v is not None for v in found):
        return None
    operands = [v if new is None else new for v, new in zip(eqn.inputs, found, strict=True)]
    result: Value = eqn.op(*operands, **eqn.kwargs)
    return result


@LAST.rule(exp, of=(neg,))
def _bell_of_clamped(seen: Seen, inputs: list[Value], params: dict[str, Any]) -> Value | None:
    """Rewrite `exp(-near**2)`, where `near` is x or a bound at which this is 0, to `exp(-x**2)`."""
    square = seen.inside(neg, inputs[0])
    product = None if square is None else seen.made_by(mul, square)
    near = None if product is None or product.inputs[0] is not product.inputs[1] else product
    chosen = None if near is None else seen.made_by(select, near.inputs[0])
    test = None if chosen is None else seen.made_by(greater, chosen.inputs[0])
    if chosen is None or test is None:
        return None
    edge, x = seen.scalar(chosen.inputs[1]), chosen.inputs[2]
    if edge is None or seen.inside(abs_, test.inputs[0]) is not x:
        return None
    least = seen.scalar(test.inputs[1])
    with np.errstate(under="ignore"):
        vanishes = np.exp(np.asarray(-edge * edge, x.dtype)) == 0
    if not vanishes or least is None or least < abs(edge):
        return None
    result: Value = exp(-(x * x))
    return result
