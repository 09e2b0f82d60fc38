"""What is known of matrices: triangular, symmetric, positive definite; and of the sign of numbers.

Facts are declared by `assume`, or follow from how a value is computed. They hold for real numbers:
a matrix that is positive definite may be singular as rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Flag, auto
from typing import TypeAlias

import numpy as np

from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.primitive import Op
from primgraph.primitives import elementwise as e
from primgraph.primitives import logic, shapes
from primgraph.primitives.constants import constant, full, iota
from primgraph.primitives.linear_algebra import systems
from primgraph.primitives.linear_algebra.assumptions import assumed
from primgraph.primitives.linear_algebra.products import matmul
from primgraph.primitives.linear_algebra.spectra import qr
from primgraph.primitives.reductions import reduce_sum


class Fact(Flag):
    """Of each matrix in the last two axes; the last two tell of all elements."""

    NOTHING = 0
    LOWER = auto()
    UPPER = auto()
    SYMMETRIC = auto()
    SEMIDEFINITE = auto()
    DEFINITE = auto()
    NOT_NEGATIVE = auto()
    POSITIVE = auto()


NOTHING = Fact.NOTHING
DIAGONAL = Fact.LOWER | Fact.UPPER
PSD = Fact.SYMMETRIC | Fact.SEMIDEFINITE
DEFINITE = PSD | Fact.DEFINITE
POSITIVE = Fact.NOT_NEGATIVE | Fact.POSITIVE
_SIGNS = POSITIVE
_SHAPES = DIAGONAL | Fact.SYMMETRIC

DECLARED = {
    "lower_triangular": Fact.LOWER,
    "upper_triangular": Fact.UPPER,
    "diagonal": DIAGONAL | Fact.SYMMETRIC,
    "symmetric": Fact.SYMMETRIC,
    "positive_definite": DEFINITE,
}

Known: TypeAlias = Mapping[Value, Fact]
Definition: TypeAlias = Callable[[Value], Equation | None]
_Rule: TypeAlias = Callable[[Equation, list[Fact], Definition], Fact]

# Constants up to this size are looked at.
_LARGEST = 4096


def facts_of(graph: Graph) -> dict[Value, Fact]:
    """What is known of each value of a graph, of which nothing is known of those that are left."""
    made = {v: eqn for eqn in graph.body for v in eqn.outputs}
    found: dict[Value, Fact] = {}
    for eqn in graph.body:
        told = eqn.op is assumed
        for value, fact in facts_of_results(eqn, found, made.get).items():
            found[value] = fact
            if told:
                found[eqn.inputs[0]] = fact
    return found


def facts_of_results(eqn: Equation, known: Known, definition: Definition) -> dict[Value, Fact]:
    """What follows of the results of an equation."""
    if eqn.op is qr:
        return {eqn.outputs[1]: Fact.UPPER}
    rule = _RULES.get(eqn.op)
    # Complex numbers have no sign, and of their matrices nothing is told yet.
    if rule is None or any(not v.type.is_float for v in eqn.outputs):
        return {}
    if any(v.type.is_complex for v in eqn.inputs):
        return {}
    fact = rule(eqn, [known.get(v, NOTHING) for v in eqn.inputs], definition)
    return {eqn.output: fact} if fact else {}


# Parts.


def transposed(value: Value, definition: Definition) -> Value | None:
    """What `value` is the transpose of, matrix by matrix."""
    eqn = definition(value)
    if eqn is None or eqn.op is not shapes.permute:
        return None
    return eqn.inputs[0] if _swaps(eqn) else None


def _swaps(eqn: Equation) -> bool:
    axes = eqn.kwargs["axes"]
    last = len(axes) - 1
    return last > 0 and tuple(axes) == (*range(last - 1), last, last - 1)


def _opposite(fact: Fact) -> Fact:
    """What holds of the transposes."""
    kept = fact & ~DIAGONAL
    if Fact.LOWER in fact:
        kept |= Fact.UPPER
    if Fact.UPPER in fact:
        kept |= Fact.LOWER
    return kept


def _is_lower_mask(value: Value, definition: Definition, k: int) -> bool:
    """Whether a value is true where the column is at most `k` to the right, and nowhere else."""
    eqn = definition(value)
    if eqn is not None and eqn.op is shapes.broadcast:
        if tuple(eqn.kwargs["new_axes"]) != tuple(range(len(eqn.kwargs["new_axes"]))):
            return False
        eqn = definition(eqn.inputs[0])
    if eqn is None:
        return False
    if eqn.op is constant:
        data = eqn.kwargs["value"].data
        square = data.ndim == 2 and data.size <= _LARGEST and data.dtype == np.bool_
        return square and bool(np.array_equal(data, np.tril(np.ones_like(data), k)))
    if eqn.op is not logic.greater_equal:
        return False
    row, column = eqn.inputs
    moved = definition(row)
    if k and (
        moved is None or moved.op is not e.add or not _is_full(moved.inputs[1], definition, k)
    ):
        return False
    return _counts((moved.inputs[0] if k and moved else row, column), (0, 1), definition)


def _is_full(value: Value, definition: Definition, number: float) -> bool:
    eqn = definition(value)
    return eqn is not None and eqn.op is full and bool(eqn.kwargs["value"] == number)


def _counts(values: Sequence[Value], axes: Sequence[int], definition: Definition) -> bool:
    """Whether values are the numbers of rows and of columns, in this order, of matrices."""
    for value, axis in zip(values, axes, strict=True):
        eqn = definition(value)
        if eqn is None or eqn.op is not iota or value.type.ndim != 2:
            return False
        if eqn.kwargs["axis"] != axis:
            return False
    return True


def _on_diagonal(mask: Value, definition: Definition) -> bool:
    """Whether a value is true on the diagonal of a matrix, and nowhere else."""
    eqn = definition(mask)
    if eqn is None or eqn.op is not logic.equal:
        return False
    return any(_counts(eqn.inputs, axes, definition) for axes in ((0, 1), (1, 0)))


def lower_part_of(value: Value, definition: Definition) -> Value | None:
    """`x` if `value` is the lower triangle of `x`, and zeros above."""
    eqn = definition(value)
    if eqn is None or eqn.op is not logic.select:
        return None
    mask, x, rest = eqn.inputs
    return x if _is_full(rest, definition, 0) and _is_lower_mask(mask, definition, 0) else None


def upper_part_of(value: Value, definition: Definition) -> Value | None:
    """`x` if `value` is the upper triangle of `x`, and zeros below."""
    eqn = definition(value)
    if eqn is None or eqn.op is not logic.select:
        return None
    mask, rest, x = eqn.inputs
    return x if _is_full(rest, definition, 0) and _is_lower_mask(mask, definition, -1) else None


# Rules.


def _same(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return facts[0]


def _declared(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    found = facts[0]
    for name in eqn.kwargs["facts"]:
        found |= DECLARED[name]
    return found


def _permute(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return _opposite(facts[0]) if _swaps(eqn) else facts[0] & _SIGNS


def _broadcast(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    """New axes before the matrices leave these as they are; those of one number are symmetric."""
    new, rank = eqn.kwargs["new_axes"], eqn.output.type.ndim
    if all(a < rank - 2 for a in new):
        return facts[0]
    uniform = Fact.SYMMETRIC if {rank - 2, rank - 1} <= {*new} else NOTHING
    return facts[0] & _SIGNS | uniform


def _reshape(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    shape, old = eqn.output.shape, eqn.inputs[0].shape
    return facts[0] if shape[-2:] == old[-2:] and len(shape) > 1 else facts[0] & _SIGNS


def _slice(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    whole = eqn.output.shape[-2:] == eqn.inputs[0].shape[-2:]
    forward = all(step > 0 for step in eqn.kwargs["steps"][-2:])
    return facts[0] if whole and forward else facts[0] & _SIGNS


def _full(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    value = eqn.kwargs["value"]
    sign = POSITIVE if value > 0 else Fact.NOT_NEGATIVE if value >= 0 else NOTHING
    shape = eqn.output.shape
    return sign | (Fact.SYMMETRIC if len(shape) > 1 and shape[-1] == shape[-2] else NOTHING)


def _constant(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    data = eqn.kwargs["value"].data
    if data.dtype.kind != "f" or data.size > _LARGEST or not data.size:
        return NOTHING
    found = POSITIVE if np.all(data > 0) else NOTHING
    if np.all(data >= 0):
        found |= Fact.NOT_NEGATIVE
    if data.ndim < 2 or data.shape[-1] != data.shape[-2]:
        return found
    if np.array_equal(data, np.tril(data)):
        found |= Fact.LOWER
    if np.array_equal(data, np.triu(data)):
        found |= Fact.UPPER
    if np.array_equal(data, np.swapaxes(data, -1, -2)):
        found |= Fact.SYMMETRIC
    if DIAGONAL in found and np.all(np.diagonal(data, 0, -2, -1) > 0):
        found |= DEFINITE
    return found


def _cast(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    """The identity is made of a comparison of the numbers of rows and of columns."""
    if _on_diagonal(eqn.inputs[0], definition):
        return DIAGONAL | DEFINITE | Fact.NOT_NEGATIVE
    return Fact.NOT_NEGATIVE if eqn.inputs[0].dtype.kind == "b" else facts[0] & _SHAPES


def _exp(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return POSITIVE | facts[0] & Fact.SYMMETRIC


def _of_each(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    """What is computed of each element alone is symmetric where all operands are."""
    common = Fact.SYMMETRIC
    for fact in facts:
        common &= fact
    return common


def _not_negative(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return _of_each(eqn, facts, definition) | Fact.NOT_NEGATIVE


def _root(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return _of_each(eqn, facts, definition) | Fact.NOT_NEGATIVE | facts[0] & Fact.POSITIVE


def _integer_pow(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    sign = facts[0] & _SIGNS if eqn.kwargs["n"] > 0 else NOTHING
    even = Fact.NOT_NEGATIVE if eqn.kwargs["n"] % 2 == 0 else NOTHING
    return _of_each(eqn, facts, definition) | sign | even


def _add(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    one, other = facts
    found = one & other
    if PSD in one and PSD in other and Fact.DEFINITE in one | other:
        found |= Fact.DEFINITE
    if Fact.NOT_NEGATIVE in one and Fact.NOT_NEGATIVE in other:
        found |= Fact.POSITIVE & (one | other)
    return found


def _sub(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return facts[0] & facts[1] & _SHAPES


def _neg(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return facts[0] & _SHAPES


def _mul(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    """Multiples of one number, and Schur's products, which are definite if both are."""
    one, other = facts
    found = one & other & (Fact.SYMMETRIC | _SIGNS)
    if PSD in one and PSD in other:
        found |= one & other & DEFINITE
    if eqn.inputs[0] is eqn.inputs[1]:
        found |= Fact.NOT_NEGATIVE
    for number, fact, factor in ((0, one, other), (1, other, one)):
        if _is_uniform(eqn.inputs[number], definition):
            found |= factor & _SHAPES
            if Fact.POSITIVE in fact:
                found |= factor & DEFINITE
            elif Fact.NOT_NEGATIVE in fact:
                found |= factor & PSD
    return found


def _is_uniform(value: Value, definition: Definition) -> bool:
    """Whether the elements of each matrix are one number, which is finite if all are."""
    eqn = definition(value)
    if eqn is None:
        return False
    if eqn.op is full:
        return True
    rank = value.type.ndim
    return eqn.op is shapes.broadcast and {rank - 2, rank - 1} <= {*eqn.kwargs["new_axes"]}


def _div(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    one, other = facts
    found = one & other & Fact.SYMMETRIC
    sign = one & _SIGNS if Fact.POSITIVE in other else NOTHING
    if _is_uniform(eqn.inputs[1], definition):
        found |= one & _SHAPES
        if Fact.POSITIVE in other:
            found |= one & DEFINITE
    return found | sign


def _sum(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return facts[0] & Fact.NOT_NEGATIVE


def _matmul(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    """Products of triangles are triangles, `a @ a.T` is semidefinite, and so is `a @ p @ a.T`."""
    x, y = eqn.inputs
    found = facts[0] & facts[1] & DIAGONAL
    if transposed(x, definition) is y or transposed(y, definition) is x:
        return found | PSD
    return found


def _select(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    """Parts of matrices, and those with a vector along the diagonal."""
    found = facts[1] & facts[2]
    if lower_part_of(eqn.output, definition) is not None:
        found |= Fact.LOWER
    if upper_part_of(eqn.output, definition) is not None:
        found |= Fact.UPPER
    if _is_full(eqn.inputs[2], definition, 0) and _on_diagonal(eqn.inputs[0], definition):
        found |= DIAGONAL | (DEFINITE if Fact.POSITIVE in facts[1] else Fact.SYMMETRIC)
    return found


def _slice_assign(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return facts[0] & facts[1] & _SIGNS


def _cholesky(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return Fact.LOWER


def _inv(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return facts[0] & (DIAGONAL | DEFINITE)


def _symmetric(eqn: Equation, facts: list[Fact], definition: Definition) -> Fact:
    return Fact.SYMMETRIC


_RULES: dict[Op, _Rule] = {
    assumed: _declared,
    e.stop_gradient: _same,
    e.as_function_of: _same,
    systems.as_symmetric: _same,
    systems.as_cholesky_of: _same,
    shapes.permute: _permute,
    shapes.broadcast: _broadcast,
    shapes.reshape: _reshape,
    shapes.slice_: _slice,
    shapes.slice_assign: _slice_assign,
    full: _full,
    constant: _constant,
    e.cast: _cast,
    e.exp: _exp,
    e.cosh: _exp,
    e.sigmoid: _exp,
    e.abs_: _not_negative,
    e.sqrt: _root,
    e.integer_pow: _integer_pow,
    e.add: _add,
    e.sub: _sub,
    e.neg: _neg,
    e.mul: _mul,
    e.div: _div,
    **dict.fromkeys((e.log, e.sin, e.cos, e.tan, e.tanh, e.arctan, e.sign, e.power), _of_each),
    reduce_sum: _sum,
    matmul: _matmul,
    logic.select: _select,
    systems.cholesky: _cholesky,
    systems.inv: _inv,
    systems.cholesky_slope: _symmetric,
}
