"""Formulas of elementwise steps: the C expressions of native code with precedences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, final

from primgraph.codegen.ir.extents import ADD, ATOM, CHOICE, EITHER, MUL, RELATION, UNARY, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.c.spellings import template, type_name
from primgraph.codegen.targets.c import parts
from primgraph.codegen.targets.export.identifiers import LIBRARY
from primgraph.ir.types import DType
from primgraph.primitives import logic
from primgraph.primitives.elementwise import UNIT

_PLACE = re.compile(r"@(\d)@")
_BINARY = re.compile(r"@0@ ([-+*/&|^]|[<>=!]=|[<>]) @1@")
_CAST = re.compile(r"\(\w+\)")
# Precedence of each operator, and the minimum precedence of its operands. Nested sums keep their
# order, and compilers warn of comparisons next to other operators.
_OPERATORS = {
    "+": (ADD, ADD, MUL),
    "-": (ADD, ADD, MUL),
    "*": (MUL, MUL, UNARY),
    "/": (MUL, MUL, UNARY),
    **dict.fromkeys("&|^", (EITHER, ATOM, ATOM)),
}
_COMPARISON = (RELATION, ADD, ADD)


@final
class Formula(NamedTuple):
    """A C expression with operands `@0@`, `@1@`, its precedence, and those its operands need.

    The precedence of an operand is None if it occurs more than once, or not at all. `functions` are
    those of the C library of this package.
    """

    pattern: str
    rank: int
    within: tuple[int | None, ...]
    functions: tuple[str, ...] = ()

    def fill_operands(self, args: Sequence[Text]) -> Text:
        """Return the expression for these operands."""
        ranks = [ATOM if rank is None else rank for rank in self.within]
        texts = [a.operand_code(rank) for a, rank in zip(args, ranks, strict=True)]
        return Text(_PLACE.sub(lambda found: texts[int(found[1])], self.pattern), self.rank)


def formula(step: Step) -> Formula | None:
    """Return the formula of an elementwise step; None if C has none."""
    pattern = template(step)
    return None if pattern is None else _formula(pattern, len(step.inputs))


def call(name: str, count: int) -> Formula:
    """Return the formula of a call of a function of `count` elements."""
    args = ", ".join([f"@{k}@" for k in range(count)])
    return Formula(f"{name}({args})", ATOM, (CHOICE,) * count, (name,))


# Comparisons with the least number of a type that are constant, and the side of that number:
# compilers warn of those.
_KNOWN = {
    (logic.greater_equal, 1): "true",
    (logic.less_equal, 0): "true",
    (logic.less, 1): "false",
    (logic.greater, 0): "false",
}


def trivial(step: Step, args: Sequence[Text]) -> Text | None:
    """Simplify an extremum or comparison with the least or largest number of its type."""
    dtype = step.operands[0].dtype if step.operands else None
    if dtype is None or dtype.kind not in "ub" or len(args) != 2:
        return None
    least = ("false", "0") if dtype.kind == "b" else ("0u", "UINT64_C(0)")
    largest = ("true", "1") if dtype.kind == "b" else ()
    unit = step.op.fact(UNIT)
    for k, arg in enumerate(args):
        end = "least" if arg.code in least else "largest" if arg.code in largest else ""
        if end and unit:
            return args[1 - k] if end == unit else arg
        known = _KNOWN.get((step.op, k if end == "least" else 1 - k)) if end else None
        if known is not None:
            return Text(known)
    return None


@lru_cache(maxsize=1024)
def _formula(pattern: str, count: int) -> Formula:
    rank, within = _ranks(pattern, count)
    once = [pattern.count(f"@{k}@") == 1 for k in range(count)]
    ranks = tuple([r if o else None for r, o in zip(within, once, strict=True)])
    return Formula(pattern, rank, ranks, parts.functions_in(pattern))


def _ranks(pattern: str, count: int) -> tuple[int, Sequence[int]]:
    """Return the precedence of an expression, and those that its operands need."""
    binary = _BINARY.fullmatch(pattern)
    if binary is not None:
        rank, left, right = _OPERATORS.get(binary[1], _COMPARISON)
        return rank, (left, right)
    if pattern == "@0@ ? @1@ : @2@":
        return CHOICE, (RELATION, ADD, ADD)
    if pattern in ("-@0@", "!@0@"):
        return UNARY, (ATOM,) * count
    if _PLACE.fullmatch(pattern):
        return CHOICE, (CHOICE,) * count
    cast = _CAST.match(pattern)
    if cast is not None:
        rest = pattern[cast.end() :]
        if _PLACE.fullmatch(rest) or _is_closed(rest):
            return UNARY, (ATOM,) * count
    opening = re.match(r"\w+(?=\()", pattern)
    if opening is not None and _is_closed(pattern[opening.end() :]):
        simple = re.fullmatch(r"[@\w.()\-]+(, [@\w.()\-]+)*", pattern[opening.end() + 1 : -1])
        return ATOM, (CHOICE if simple else ATOM,) * count
    return CHOICE, (ATOM,) * count


def _is_closed(text: str) -> bool:
    """Return whether a text is enclosed in one pair of parentheses."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and i + 1 < len(text):
            return False
    return True


def function_of(name: str, dtype: DType) -> str:
    """Return the scalar function for that type; empty if there is none."""
    plain = name + ("f" if dtype.itemsize == 4 else "")
    own = f"pg_{name}_{type_name(dtype)}"
    return plain if plain in LIBRARY else own if parts.required_parts([own]) else ""
