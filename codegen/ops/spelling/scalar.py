"""How primitives are computed in scalar mode: one expression of Python numbers per element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.spelling.numbers import Number, Numbers
from primgraph.ir.types import BOOL

# Expressions of the elements of a value, in an array of its shape.
Elements: TypeAlias = "np.ndarray[Any, Any]"
Rule: TypeAlias = Callable[[Numbers, Sequence[Number], Step], Number | None]
Rows: TypeAlias = Callable[[Step, Sequence[Elements], bool, Numbers], Sequence[Number] | None]


class Scalar(NamedTuple):
    """How scalar mode computes a primitive.

    `elements(step, operands, in_order, new)` returns the elements of the result, created by `new`,
    or None. `in_order` tells that the elements of the first operand are in memory order. Without
    `elements`, the primitive only moves elements. With `integers`, it computes those as well, but
    does not wrap them: of a step with integer results, that may be done later.
    """

    elements: Rows | None
    integers: bool = False


MOVING = Scalar(None, integers=True)


def each(rule: Rule, *, integers: bool = False) -> Scalar:
    """Apply `rule` elementwise to operands of the size of the result, or of one element."""
    return Scalar(element_rule(rule), integers)


def element_rule(rule: Rule) -> Rows:
    """Return the elements by applying `rule` to one element of each operand."""

    def elements(
        step: Step, operands: Sequence[Elements], in_order: bool, new: Numbers
    ) -> list[Number] | None:
        result = step.results[0]
        if any(x.size not in (1, result.size) for x in operands):
            return None
        columns = [x.ravel().tolist() * (result.size // x.size) for x in operands]
        found = [rule(new, row, step) for row in zip(*columns, strict=True)]
        known = [x for x in found if x is not None]
        return known if len(known) == len(found) else None

    return elements


def word(name: str, *, integers: bool = False) -> Scalar:
    """Use the same word of `codegen/ops/spelling/numbers.py` for every element."""
    return each(lambda new, args, step: new(name, *args), integers=integers)


def number_word(name: str, *, integers: bool = True) -> Scalar:
    """Use a word for floats, and for integers, but none for booleans."""

    def rule(new: Numbers, args: Sequence[Number], step: Step) -> Number | None:
        return None if step.operands[0].dtype == BOOL else new(name, *args)

    return each(rule, integers=integers)


def total(new: Numbers, terms: Sequence[Number]) -> Number:
    """Return the sum of terms in their order, which is not -0.0."""
    return new("+", reduce(lambda x, y: new("+", x, y), terms), new.constant(0.0))
