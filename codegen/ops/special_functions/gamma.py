"""Cards of the gamma function and its quotients: calls of support functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, element_card
from primgraph.codegen.ops.cost_model import per_element
from primgraph.codegen.ops.spelling.complex_step import ComplexStep
from primgraph.codegen.ops.spelling.notation import Target
from primgraph.codegen.ops.spelling.ufuncs import ALL
from primgraph.ir.builder import Builder
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Op, Primitive, recording
from primgraph.ir.types import FLOAT64, TensorType
from primgraph.primitives.special_functions import gamma as g


def support_function_card(op: Op, nanoseconds: float) -> Card:
    """Return the card of a support function with the name, operands and parameters of `op`.

    It reads all operands before it writes, so that the result may alias any of them.
    """

    def arguments(names: Sequence[str], step: Step) -> str:
        return ", ".join([*names, *map(_literal, step.params.values())])

    def read(args: Sequence[Text], step: Step) -> Text:
        return Text(f"{op.name}({arguments([a.code for a in args], step)})")

    def write(to: Target) -> list[str]:
        return [f"{op.name}({arguments(to.args, to.step)}, {to.out})"]

    return replace(
        element_card(read, write, per_element(nanoseconds, nanoseconds)),
        complex_step=jvp_complex_step(op),
        helper=op.name,
        inline=True,
        in_place=ALL,
    )


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def jvp_complex_step(op: Op) -> ComplexStep:
    """Return the complex step of `op` by its JVP rules: value, and derivatives times steps."""

    def function(*xs: Any, **params: Any) -> Any:
        assert isinstance(op, Primitive)
        reals, steps = [np.real(x) for x in xs], [np.imag(x) for x in xs]
        builder = Builder(op.name)
        kinds = [TensorType(np.shape(x), FLOAT64) for x in xs]
        operands = [builder.input(t, f"x{i}") for i, t in enumerate(kinds)]
        tangents = [builder.input(t, f"d{i}") for i, t in enumerate(kinds)]
        with recording(builder):
            value = op(*operands, **params)
            total = value * 0.0
            for position, tangent in enumerate(tangents):
                rule = op.jvp_rule(position)
                if rule is not None and steps[position].any():
                    total = total + rule(value, *operands, tangent, **params)
        found, slope = interpret(builder.graph([value, total]), *reals, *steps)
        result = found.astype(np.complex128)
        result.imag = slope
        return result

    return ComplexStep(function, partial=False, smooth=None)


CARDS: dict[Op, Card] = {
    g.gammaln: support_function_card(g.gammaln, 60.0),
    g.gamma_function: support_function_card(g.gamma_function, 70.0),
    g.polygamma: support_function_card(g.polygamma, 70.0),
    g.betaln: support_function_card(g.betaln, 250.0),
    g.beta: support_function_card(g.beta, 300.0),
    g.poch: support_function_card(g.poch, 200.0),
}
