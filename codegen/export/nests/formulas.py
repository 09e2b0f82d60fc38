"""What elements are computed by: the spellings of C, and how what they are given stands in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from primgraph.codegen.export.identifiers import (
    ATOM,
    CHOICE,
    EITHER,
    LIBRARY,
    PRODUCT,
    RELATION,
    SIGN,
    SUM,
    Text,
)
from primgraph.codegen.native.c import parts
from primgraph.codegen.native.c.spellings import SPELLINGS, c_type, type_name
from primgraph.codegen.plan.schedule import Step
from primgraph.ir.types import DType
from primgraph.primitives import logic
from primgraph.primitives.elementwise import maximum, minimum

_PLACE = re.compile(r"@(\d)@")
_BINARY = re.compile(r"@0@ ([-+*/&|^]|[<>=!]=|[<>]) @1@")
_CAST = re.compile(r"\(\w+\)")
# How tightly an operator binds, and how tightly what stands on either side has to: sums of sums
# keep their order, and compilers warn of comparisons beside the others.
_OPERATORS = {
    "+": (SUM, SUM, PRODUCT),
    "-": (SUM, SUM, PRODUCT),
    "*": (PRODUCT, PRODUCT, SIGN),
    "/": (PRODUCT, PRODUCT, SIGN),
    **dict.fromkeys("&|^", (EITHER, ATOM, ATOM)),
}
_COMPARISON = (RELATION, SUM, SUM)


@final
@dataclass(frozen=True, slots=True)
class Formula:
    """An expression with `@0@`, `@1@` for its operands, and how tightly it and they have to bind.

    Where the binding is None, an operand stands there more than once, or not at all.
    """

    pattern: str
    rank: int
    within: tuple[int | None, ...]

    def filled(self, args: Sequence[Text]) -> Text:
        """The expression for these operands."""
        ranks = [ATOM if rank is None else rank for rank in self.within]
        texts = [a.within(rank) for a, rank in zip(args, ranks, strict=True)]
        return Text(_PLACE.sub(lambda found: texts[int(found[1])], self.pattern), self.rank)


def kind_of(dtype: DType) -> str:
    """The type of C of elements, as a person would declare them."""
    return "bool" if dtype.kind == "b" else c_type(dtype) or ""


def formula(step: Step) -> Formula | None:
    """How an elementwise step is spelled; None where C has no words for it."""
    spelling = SPELLINGS.get(step.op)
    if spelling is None:
        return None
    pattern = spelling([f"@{k}@" for k in range(len(step.inputs))], step)
    if pattern is None:
        return None
    return _formula(pattern, len(step.inputs))


def call(name: str, count: int) -> Formula:
    """A function of so many elements."""
    args = ", ".join([f"@{k}@" for k in range(count)])
    return Formula(f"{name}({args})", ATOM, (CHOICE,) * count)


# What comparisons with the least number of a type tell without a look, and on which side it is:
# compilers warn of those.
_KNOWN = {
    (logic.greater_equal, 1): "true",
    (logic.less_equal, 0): "true",
    (logic.less, 1): "false",
    (logic.greater, 0): "false",
}


def trivial(step: Step, args: Sequence[Text]) -> Text | None:
    """What an extremum or comparison with the least or largest of its type comes to."""
    dtype = step.operands[0].dtype if step.operands else None
    if dtype is None or dtype.kind not in "ub" or len(args) != 2:
        return None
    least = ("false", "0") if dtype.kind == "b" else ("0u", "UINT64_C(0)")
    for k, arg in enumerate(args):
        if arg.code in least:
            if step.op in (maximum, minimum):
                return args[1 - k] if step.op is maximum else arg
            if (step.op, k) in _KNOWN:
                return Text(_KNOWN[step.op, k])
        elif dtype.kind == "b" and arg.code in ("true", "1"):
            if step.op in (maximum, minimum):
                return args[1 - k] if step.op is minimum else arg
            if (step.op, 1 - k) in _KNOWN:
                return Text(_KNOWN[step.op, 1 - k])
    return None


@lru_cache(maxsize=1024)
def _formula(pattern: str, count: int) -> Formula:
    rank, within = _ranks(pattern, count)
    once = [pattern.count(f"@{k}@") == 1 for k in range(count)]
    return Formula(
        pattern, rank, tuple([r if o else None for r, o in zip(within, once, strict=True)])
    )


def _ranks(pattern: str, count: int) -> tuple[int, Sequence[int]]:
    """How tightly a spelling binds, and how tightly each of its operands has to."""
    binary = _BINARY.fullmatch(pattern)
    if binary is not None:
        rank, left, right = _OPERATORS.get(binary[1], _COMPARISON)
        return rank, (left, right)
    if pattern == "@0@ ? @1@ : @2@":
        return CHOICE, (RELATION, SUM, SUM)
    if pattern in ("-@0@", "!@0@"):
        return SIGN, (ATOM,) * count
    if _PLACE.fullmatch(pattern):
        return CHOICE, (CHOICE,) * count
    cast = _CAST.match(pattern)
    if cast is not None:
        rest = pattern[cast.end() :]
        if _PLACE.fullmatch(rest) or _is_closed(rest):
            return SIGN, (ATOM,) * count
    opening = re.match(r"\w+(?=\()", pattern)
    if opening is not None and _is_closed(pattern[opening.end() :]):
        simple = re.fullmatch(r"[@\w.()\-]+(, [@\w.()\-]+)*", pattern[opening.end() + 1 : -1])
        return ATOM, (CHOICE if simple else ATOM,) * count
    return CHOICE, (ATOM,) * count


def _is_closed(text: str) -> bool:
    """Whether a text is in one pair of parentheses."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0 and i + 1 < len(text):
            return False
    return True


def function_of(name: str, dtype: DType) -> str:
    """The function of one element of that type; empty where files of C have none."""
    plain = name + ("f" if dtype.itemsize == 4 else "")
    own = f"pg_{name}_{type_name(dtype)}"
    return plain if plain in LIBRARY else own if parts.needed(own) else ""
