"""What primitives say of themselves by flags holds of their numbers, both ways."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from program_tolerance import same_bits

from primgraph.errors import PrimgraphError
from primgraph.ir.builder import Builder
from primgraph.ir.interpret import interpret
from primgraph.ir.primitive import Primitive, registered
from primgraph.ir.types import BOOL, FLOAT64, INT64, DType, TensorType
from primgraph.transforms import linearize

NUMBERS = {
    FLOAT64: [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 40.0, 800.0, -800.0, 1e200, -1e200],
    INT64: [0, 1, 2, 3, 5, 62],
    BOOL: [False, True],
}
ELEMENTWISE = [op for op in registered().values() if isinstance(op, Primitive) and op.elementwise]


def operands(op: Primitive, dtype: DType) -> int:
    """How many operands of that dtype alone it takes; 0 if it does not."""
    for count in (1, 2):
        try:
            op.infer((TensorType((1,), dtype),) * count, {})
        except PrimgraphError:
            continue
        return count
    return 0


BINARY = {op: [d for d in NUMBERS if operands(op, d) == 2] for op in ELEMENTWISE}


def test_there_are_such_primitives() -> None:
    assert sum(len(dtypes) > 0 for dtypes in BINARY.values()) > 20
    assert sum(op.commutative for op in BINARY) > 5


@pytest.mark.parametrize("op", [op for op in BINARY if BINARY[op]], ids=lambda op: op.name)
def test_operands_of_a_commutative_primitive_and_of_no_other_may_be_swapped(op: Primitive) -> None:
    symmetric = True
    for dtype in BINARY[op]:
        x, y = (np.array(v, dtype) for v in zip(*product(NUMBERS[dtype], repeat=2), strict=True))
        with np.errstate(all="ignore"):
            one, other = (np.asarray(op.evaluate([a, b], {})[0]) for a, b in ((x, y), (y, x)))
        symmetric &= bool(np.all(same_bits(one, other)))
    assert symmetric == op.commutative


FLOATS = [
    op
    for op in ELEMENTWISE
    if operands(op, FLOAT64) and not op.constant and op.name != "unless_nan"
]


# The poles of one lie between numbers, those of the other at infinity.
ELSEWHERE = {"tan", "logaddexp"}


@pytest.mark.parametrize("op", FLOATS, ids=lambda op: op.name)
def test_singular_primitives_and_no_others_are_not_finite_at_finite_operands(op: Primitive) -> None:
    """Products and sums that overflow do not count."""
    count = operands(op, FLOAT64)
    numbers = [v for v in NUMBERS[FLOAT64] if abs(v) < 1e3]
    arrays = [np.array(v) for v in zip(*product(numbers, repeat=count), strict=True)]
    builder = Builder()
    inputs = [builder.input(TensorType(a.shape, FLOAT64)) for a in arrays]
    with builder:
        graph = builder.graph([op(*inputs)])
    ones = np.ones_like(arrays[0])
    found = [interpret(graph, *arrays)[0]]
    found += [interpret(linearize(graph, [i]), *arrays, ones)[-1] for i in range(count)]
    finite = bool(np.all(np.isfinite(found)))
    assert (finite and op.name not in ELSEWHERE) != op.singular
