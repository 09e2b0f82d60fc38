"""Cards of derivatives by parameters: calls of support functions."""

from __future__ import annotations

from primgraph.codegen.ops.card import Card
from primgraph.codegen.ops.special_functions.gamma import support_function_card
from primgraph.ir.primitive import Op
from primgraph.primitives.special_functions import by_parameters as s

CARDS: dict[Op, Card] = {
    s.bessel_by_order: support_function_card(s.bessel_by_order, 3e5),
    s.gauss_by_parameters: support_function_card(s.gauss_by_parameters, 2e4),
    s.kummer_by_parameters: support_function_card(s.kummer_by_parameters, 1e4),
    s.zeta_by_exponent: support_function_card(s.zeta_by_exponent, 2e3),
}
