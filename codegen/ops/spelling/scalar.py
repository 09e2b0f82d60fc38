"""How primitives are written in scalar mode: one Python expression per element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.spelling.literals import scalar_text
from primgraph.ir.types import FLOAT64, TensorType

# The number of expressions that take as long as one call of a NumPy function.
CALL = 12

# Expressions of the elements of a value, in an array of its shape.
Elements: TypeAlias = "np.ndarray[Any, Any]"
Rule: TypeAlias = Callable[[Sequence[str], Step], str | None]
Texts: TypeAlias = Callable[[Step, Sequence[Elements], bool], list[str] | None]


class Scalar(NamedTuple):
    """How scalar mode writes a primitive.

    `texts(step, operands, in_order)` returns the expressions of the result's elements, or None.
    `in_order` tells that the elements of the first operand are in memory order. Without `texts`,
    the primitive only moves elements. An expression costs `weight` operators.
    """

    texts: Texts | None
    weight: int


MOVING = Scalar(None, 1)


def element_rule(rule: Rule) -> Texts:
    """Apply `rule` elementwise to operands of the size of the result."""

    def texts(step: Step, operands: Sequence[Elements], in_order: bool) -> list[str] | None:
        if not all(t.size == step.results[0].size for t in step.operands):
            return None
        rows = zip(*(x.ravel().tolist() for x in operands), strict=True)
        found = [rule(row, step) for row in rows]
        known = [text for text in found if text is not None]
        return known if len(known) == len(found) else None

    return texts


def template(text: str, weight: int = 1) -> Scalar:
    """Use the same Python expression for every element."""
    return Scalar(element_rule(lambda args, step: text.format(*args)), weight)


def float_rule(text: str) -> Scalar:
    """Use an expression for floats, and none for booleans."""

    def rule(args: Sequence[str], step: Step) -> str | None:
        return text.format(*args) if step.operands[0].dtype == FLOAT64 else None

    return Scalar(element_rule(rule), 1)


def function(name: str) -> Scalar:
    """Use a function of the module `math`."""
    return template(f"math_{name}({{}})")


def number_text(value: bool | float, type: TensorType) -> str:
    """Return the expression of a number."""
    text = scalar_text(value, type.dtype).replace("np.", "float_")
    return f"({text})" if text.startswith("-") else text
