"""Cards of special functions: calls of support functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.constants import random_card
from primgraph.codegen.ops.cost_model import per_element
from primgraph.codegen.ops.special_functions.gamma import support_function_card
from primgraph.codegen.ops.spelling.complex_step import ComplexStep, as_on_reals
from primgraph.ir.primitive import Op
from primgraph.primitives.special_functions import special as s


def _quote_name(name: str) -> str:
    """Return a Python string literal, as formatters write it."""
    return f'"{name}"'


def _read_variate(args: Sequence[Text], step: Step) -> Text:
    key, *params = [a.code for a in args]
    return Text(f"random_variate({', '.join([key, _quote_name(step.params['name']), *params])})")


CARDS: dict[Op, Card] = {
    s.random_variate: replace(
        random_card("random_variate", _read_variate),
        complex_step=ComplexStep(as_on_reals(s.random_variate.impl), partial=False, smooth=None),
    ),
    s.gammainc: support_function_card(s.gammainc, per_element(3000.0, 3000.0)),
    s.betainc: support_function_card(s.betainc, per_element(9000.0, 9000.0)),
    s.erfinv: support_function_card(s.erfinv, per_element(50.0, 50.0)),
    s.erfcinv: support_function_card(s.erfcinv, per_element(45.0, 45.0)),
    s.erfcx: support_function_card(s.erfcx, per_element(30.0, 30.0)),
    s.log_ndtr: support_function_card(s.log_ndtr, per_element(30.0, 30.0)),
    s.xlogy: support_function_card(s.xlogy, per_element(8.0, 8.0)),
    s.xlog1py: support_function_card(s.xlog1py, per_element(8.0, 8.0)),
    s.logit: support_function_card(s.logit, per_element(14.0, 14.0)),
}
