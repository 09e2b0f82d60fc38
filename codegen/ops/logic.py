"""Cards of comparisons, logic and `select`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.codegen.ir.card import Site
from primgraph.codegen.ir.extents import AND, COMPARE, OR, UNARY, XOR, Text
from primgraph.codegen.ir.places import Place
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, Marks, element_card
from primgraph.codegen.ops.cost_model import MOVED, per_element
from primgraph.codegen.ops.spelling.complex_step import (
    ANALYTIC,
    ComplexStep,
    as_on_reals,
    smooth_away_from,
)
from primgraph.codegen.ops.spelling.notation import Target, number_of, reading
from primgraph.codegen.ops.spelling.scalar import Scalar, each, number_word, word
from primgraph.codegen.ops.spelling.ufuncs import ALL, ufunc
from primgraph.ir.primitive import Op
from primgraph.primitives import logic as p


def _comparison(function: Callable[..., Any], infix: str, scalar: Scalar) -> Card:
    """Return the card of a comparison by NumPy's `function`."""
    name, smooth = function.__name__, smooth_away_from(lambda x, y: x - y)
    rule = ComplexStep(as_on_reals(function), False, smooth)
    made = ufunc(
        name, infix, COMPARE, time=MOVED, scalar=scalar, complex_step=rule, marks=Marks.ENDED
    )
    call = reading(f"np.{name}({{args}})")

    def read(args: Sequence[Text], step: Step) -> Text:
        # Linters warn of comparison operators next to True or False.
        is_plain = any(a.code in ("True", "False") for a in args)
        return (call if is_plain else made.read)(args, step)

    return replace(made, read=read)


def _logical(function: Callable[..., Any], infix: str, rank: int, scalar: str) -> Card:
    """Return the card of a function of booleans."""
    rule, name = word(scalar), function.__name__
    return ufunc(
        name, infix, rank, time=MOVED, scalar=rule, complex_step=ANALYTIC, marks=Marks.EACH
    )


# Integer dtypes by element size.
_BITS = {2: "int16", 4: "int32", 8: "int64"}
# Minimum number of elements at which branch mispredictions cost more than extra calls.
_MANY = 4096


def _write_select(to: Target) -> list[str]:
    condition, x, y = to.args
    type = to.step.results[0]
    if type.size == 1:
        return [f"{to.out}[...] = {x} if {condition} else {y}"]
    if _is_bitwise_select(to.step):
        return _chosen_bits(to)
    chosen = f"{to.np('copyto')}({to.out}, {x}, 'same_kind', {condition})"
    return [chosen] if to.reused_operand == 2 else [f"{to.out}[...] = {y}", chosen]


def _is_bitwise_select(step: Step) -> bool:
    """Return whether to select by bit masks.

    This is slower if all elements are from one side, but much faster if sides alternate randomly.
    """
    type = step.results[0]
    return type.dtype.itemsize in _BITS and type.size >= _MANY


def _has_no_bits(number: Any) -> bool:
    return number is not None and not any(np.asarray(number).tobytes())


def _chosen_bits(to: Target) -> list[str]:
    """Write the bits of `x` where the condition is true, and those of `y` elsewhere."""
    kind, condition = to.np(_BITS[to.step.results[0].dtype.itemsize]), to.args[0]
    truth = f"{condition}.view({to.np('int8')})"
    x, y, out = (f"{place}.view({kind})" for place in (*to.args[1:], to.out))
    both, either = to.np("bitwise_and"), to.np("bitwise_xor")
    if _has_no_bits(to.number(1)):
        return [f"{both}({y}, {to.np('subtract')}({truth}, 1), {out})"]
    mask = f"{to.np('negative')}({truth})"
    if _has_no_bits(to.number(2)):
        return [f"{both}({x}, {mask}, {out})"]
    spare = f"{to.parts[0]}.view({kind})" if to.parts else out
    return [
        f"{either}({x}, {y}, {spare})",
        f"{both}({spare}, {mask}, {spare})",
        f"{either}({spare}, {y}, {out})",
    ]


def _spare(site: Site) -> list[Place]:
    """Return a scratch buffer if `out` overwrites an operand that is needed until the end."""
    if site.taken != 2 or not _is_bitwise_select(site.step):
        return []
    return [] if any(_has_no_bits(number_of(p)) for p in site.operands[1:]) else [site.scratch()]


def _write_unless_nan(to: Target) -> list[str]:
    x, y = to.args
    chosen = f"{to.np('copyto')}({to.out}, {y}, 'same_kind', {to.np('isnan')}({y}))"
    return [chosen] if to.reused_operand == 0 else [f"{to.out}[...] = {x}", chosen]


_SELECT = replace(
    element_card(reading("np.where({args})"), _write_select, per_element(1.2, 1.2)),
    needs=_spare,
    scalar=word("if", integers=True),
    complex_step=ANALYTIC,
    marks=Marks.CHOSEN,
    inline=True,
    broadcasts=ALL,
    in_place=(2,),
)

CARDS: dict[Op, Card] = {
    p.equal: _comparison(np.equal, "==", word("==", integers=True)),
    p.not_equal: _comparison(np.not_equal, "!=", word("!=", integers=True)),
    p.greater: _comparison(np.greater, ">", number_word(">")),
    p.greater_equal: _comparison(np.greater_equal, ">=", number_word(">=")),
    p.less: _comparison(np.less, "<", number_word("<")),
    p.less_equal: _comparison(np.less_equal, "<=", number_word("<=")),
    p.logical_and: _logical(np.logical_and, "&", AND, "and"),
    p.logical_or: _logical(np.logical_or, "|", OR, "or"),
    p.logical_xor: _logical(np.logical_xor, "^", XOR, "!="),
    p.logical_not: _logical(np.logical_not, "~", UNARY, "not"),
    p.select: _SELECT,
    p.unless_nan: replace(
        _SELECT,
        read=reading("np.where(np.isnan({1}), {1}, {0})"),
        write=_write_unless_nan,
        needs=None,
        in_place=(0,),
        nanoseconds=per_element(1.4, 1.3),
        scalar=each(lambda new, args, step: new("if", new("==", args[1], args[1]), *args)),
        complex_step=ComplexStep(
            lambda x, y: np.where(np.isnan(np.real(y)), y, x), partial=False, smooth=None
        ),
        marks=Marks.EACH,
    ),
}
