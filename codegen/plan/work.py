"""How long a step takes, roughly, as far as shapes and dtypes tell.

The numbers are nanoseconds of NumPy 2.4.6 on one core of an AMD EPYC (Zen 5), the shortest of 60
calls on arrays of 16,384 elements, which are in the second-level cache. They decide whether
threads pay, for which their order of magnitude matters.
"""

from __future__ import annotations

from math import prod

from primgraph.codegen.plan.schedule import Step
from primgraph.ir.types import DType

# For one element of float64 and of float32, where that is not what moving it takes.
_ELEMENT: dict[str, tuple[float, float]] = {
    "erfc": (18.0, 27.0),
    "erf": (17.0, 20.0),
    "logaddexp": (12.0, 11.0),
    "sin": (7.2, 0.4),
    "cos": (7.1, 0.4),
    "floor_divide": (5.9, 5.8),
    "remainder": (5.6, 5.6),
    "arccosh": (2.9, 2.0),
    "sigmoid": (1.8, 1.4),
    "integer_pow": (1.4, 1.0),
    "arctan2": (1.3, 0.4),
    "select": (1.2, 1.2),
    "unless_nan": (1.4, 1.3),
    "power": (1.2, 0.4),
    "arcsinh": (1.2, 0.4),
    "rsqrt": (1.2, 0.4),
    "sqrt": (0.9, 0.3),
    "tan": (0.8, 0.2),
    "arctanh": (0.8, 0.3),
    "tanh": (0.7, 0.2),
    "arccos": (0.7, 0.2),
    "arcsin": (0.7, 0.2),
    "sinh": (0.7, 0.2),
    "expm1": (0.7, 0.3),
    "arctan": (0.7, 0.2),
    "log1p": (0.6, 0.3),
    "cosh": (0.6, 0.2),
    "exp": (0.5, 0.3),
    "log": (0.5, 0.3),
    "sign": (0.5, 0.3),
    "cumsum": (3.0, 3.0),
    "gather": (0.5, 0.5),
    # Only where a sum has over- or underflowed are elements looked at.
    "root_of_squares": (0.0, 0.0),
}
_MOVED = (0.14, 0.08)
# What an element of float16 costs beyond that: it is computed with in float32.
_HALF = 4.0

# For one multiplication with its addition; BLAS has no integers.
_PRODUCT = (0.04, 0.02)
_PRODUCT_OF_OTHERS = 1.0


def nanoseconds(step: Step) -> float:
    """The time that `step` takes on one core."""
    if step.op.name == "matmul":
        return _of_product(step)
    moved = (*step.operands, *step.results)
    elements = max((t.size for t in moved), default=0)
    dtype = next((t.dtype for t in moved if t.dtype.kind == "f"), moved[0].dtype)
    wide, narrow = _ELEMENT.get(step.op.name, _MOVED)
    if dtype.itemsize == 2 and dtype.kind == "f":
        return elements * (narrow + _HALF)
    return elements * (wide if dtype.itemsize == 8 else narrow)


def _of_product(step: Step) -> float:
    x, result = step.operands[0], step.results[0]
    return prod(result.shape) * x.shape[-1] * _a_product(result.dtype)


def _a_product(dtype: DType) -> float:
    if dtype.kind != "f":
        return _PRODUCT_OF_OTHERS
    return _PRODUCT[dtype.itemsize != 8]
