"""Means: the graph has them as sums that are divided by the number of their terms."""

from __future__ import annotations

import math

from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.targets.readable.page import Page
from primgraph.ir.types import FLOAT32, FLOAT64
from primgraph.primitives.elementwise import div, mul
from primgraph.primitives.reductions import reduce_sum


def is_mean(page: Page, step: Step) -> bool:
    """Return whether nothing reads a sum but its quotient by the number of terms.

    NumPy's mean is this quotient to the bit. So is the product with the inverse of a power of two.
    """
    if step.op is not reduce_sum or step.outputs[0] in page.called:
        return False
    reader = page.only_reader(step.outputs[0])
    if reader is None or reader.op not in (div, mul) or reader.results != step.results:
        return False
    sizes = [step.operands[0].shape[a] for a in step.params["axes"]]
    if step.results[0].dtype not in (FLOAT32, FLOAT64) or any(type(n) is not int for n in sizes):
        return False
    count = math.prod(sizes)
    first, second = reader.inputs
    if reader.op is div:
        return first == step.outputs[0] and _is_number(page, second, count)
    other = second if first == step.outputs[0] else first
    return count.bit_count() == 1 and _is_number(page, other, 1 / count)


def _is_number(page: Page, value: int, number: float) -> bool:
    made = page.maker(value)
    return made is not None and made.number is not None and bool(made.number == number)


def mean_operand(page: Page, step: Step) -> int | None:
    """Return the position of the operand that is written as a mean, of which `step` is all."""
    if step.op in (div, mul):
        for k, value in enumerate(step.inputs):
            made = page.maker(value)
            if made is not None and is_mean(page, made):
                return k
    return None
