"""Cards of special functions: calls of support functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.constants import random_card
from primgraph.codegen.ops.special_functions.gamma import support_function_card
from primgraph.codegen.ops.spelling.complex_step import ComplexStep, as_on_reals
from primgraph.ir.primitive import Op
from primgraph.primitives.special_functions import special as s


def _read_variate(args: Sequence[Text], step: Step) -> Text:
    (key, *params), name = [a.code for a in args], step.params["name"]
    return Text(f'random_variate({key}, "{name}", {", ".join(params)})')


CARDS: dict[Op, Card] = {
    s.random_variate: replace(
        random_card("random_variate", _read_variate),
        complex_step=ComplexStep(as_on_reals(s.random_variate.impl), partial=False, smooth=None),
    ),
    s.gammainc: support_function_card(s.gammainc, 3000.0),
    s.betainc: support_function_card(s.betainc, 9000.0),
    s.erfinv: support_function_card(s.erfinv, 50.0),
    s.erfcinv: support_function_card(s.erfcinv, 45.0),
    s.erfcx: support_function_card(s.erfcx, 30.0),
    s.log_ndtr: support_function_card(s.log_ndtr, 30.0),
    s.xlogy: support_function_card(s.xlogy, 8.0),
    s.xlog1py: support_function_card(s.xlog1py, 8.0),
    s.logit: support_function_card(s.logit, 14.0),
}
