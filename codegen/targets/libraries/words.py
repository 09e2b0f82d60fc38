"""Expressions of primitives that libraries of arrays share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from primgraph.codegen.ir.extents import ATOM, COMPARE, POWER, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.spelling.literals import converted, parameter_text, scalar_text
from primgraph.codegen.ops.spelling.notation import Read, reading
from primgraph.codegen.targets.readable.dialect import Word
from primgraph.errors import CompileError
from primgraph.ir.primitive import Op
from primgraph.ir.types import FLOAT16, FLOAT32
from primgraph.primitives import constants


def read_power(args: Sequence[Text], step: Step) -> Text:
    """Return a power by the operator."""
    x, y = args
    return Text(f"{x.operand_code(ATOM)} ** {y.operand_code(POWER)}", POWER)


def _read_uniform(args: Sequence[Text], step: Step) -> Text:
    """Return uniform numbers; rounding to a smaller dtype must not reach the end."""
    p, dtype = step.params, step.params["dtype"]
    last = np.nextafter(dtype.type(p["high"]), dtype.type(p["low"])).item()
    given = [parameter_text(p[name]) for name in ("shape", "dtype", "low", "high")]
    listed = ", ".join([args[0].code, *given, scalar_text(last, dtype)])
    return Text(f"philox_uniform_between({listed})")


# Random numbers: those of NumPy's generators.
DRAWS: dict[Op, Word] = {
    constants.random_uniform: Word(_read_uniform, "philox_uniform_between"),
    constants.random_bernoulli: Word(
        reading("philox_uniform({0}, {shape}) < {p}", COMPARE), "philox_uniform"
    ),
}


def first_order(title: str, names: Sequence[str], read: Read) -> Read:
    """Return the expression of a function without its derivatives by the parameters `names`."""

    def read_value(args: Sequence[Text], step: Step) -> Text:
        if any(step.params[name] for name in names):
            raise CompileError(f"{title} lacks derivatives of {step.op.name} by its parameters")
        return read(args, step)

    return read_value


def incomplete(title: str, orders: Sequence[str], lower: Read, upper: Read) -> Read:
    """Return an incomplete function or its complement, by the parameter `upper`."""
    below, above = first_order(title, orders, lower), first_order(title, orders, upper)
    return lambda args, step: (above if step.params["upper"] else below)(args, step)


def read_in_single(plain: Read) -> Read:
    """Return an expression that the library computes for numbers of at least 32 bits."""

    def read(args: Sequence[Text], step: Step) -> Text:
        if step.results[0].dtype != FLOAT16:
            return plain(args, step)
        wide = [Text(converted(a.operand_code(ATOM), FLOAT32)) for a in args]
        return Text(converted(plain(wide, step).operand_code(ATOM), FLOAT16))

    return read
