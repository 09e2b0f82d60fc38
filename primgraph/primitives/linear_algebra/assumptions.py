"""Declared structure of matrices: triangular, symmetric, positive definite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from primgraph.errors import ArgumentError, DTypeError, ShapeError
from primgraph.ir.facts.choices import RAISES
from primgraph.ir.facts.matrices import DEFINITE, DIAGONAL, STRUCTURE, Structure
from primgraph.ir.facts.passes import STRUCTURED
from primgraph.ir.facts.ranges import SAME
from primgraph.ir.graph import Equation, Value
from primgraph.ir.index_maps import IndexMap, identity
from primgraph.ir.primitive import Linear, Rule, Types, primitive
from primgraph.ir.types import TensorType

FACTS = {
    "diagonal": DIAGONAL | Structure.SYMMETRIC,
    "lower_triangular": Structure.LOWER,
    "positive_definite": DEFINITE,
    "symmetric": Structure.SYMMETRIC,
    "upper_triangular": Structure.UPPER,
}


def _copy_array(x: Any, *, facts: tuple[str, ...]) -> Any:
    return np.array(x)


@primitive(impl=_copy_array, linear=True, moves=True, flops=0)
def assumed(x: TensorType, *, facts: tuple[str, ...]) -> TensorType:
    """Return `x`, with matrices declared to be as `facts` say; the derivative is the identity."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"assume takes square matrices, not {x}")
    if not x.is_float:
        raise DTypeError(f"assume takes matrices of floats, not {x}")
    strange = [name for name in facts if name not in FACTS]
    if strange or not facts:
        raise ArgumentError(f"assume takes one or more of {', '.join(FACTS)}, not {facts}")
    return x


assumed.declare(SAME, True)
assumed.declare(RAISES, True)
assumed.declare(STRUCTURED, True)


@assumed.declares(STRUCTURE)
def _assumed_structure(eqn: Equation, definition: Rule, x: Structure) -> Structure:
    return reduce(or_, [FACTS[name] for name in eqn.kwargs["facts"]], x)


@assumed.index_map
def _assumed_map(
    k: int, i: int, operands: Types, results: Types, *, facts: tuple[str, ...]
) -> IndexMap:
    return identity(results[0].shape)


@assumed.pushforward
def _assumed_pushforward(
    x: Sequence[Value], dx: Mapping[int, Value], turned: bool, *, facts: tuple[str, ...]
) -> list[Value]:
    """Pass the tangent on without `facts`, which tangents need not satisfy."""
    return [dx[0]]


@assumed.transpose
def _assumed_transpose(ct: Value, x: Linear, *, facts: tuple[str, ...]) -> tuple[Value]:
    return (ct,)


@assumed.batch
def _assumed_batch(batched: tuple[bool, ...], x: Value, *, facts: tuple[str, ...]) -> Value:
    return assumed(x, facts=facts)
