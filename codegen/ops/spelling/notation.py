"""How cards write a primitive: expressions, and statements of planned code."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, final

from primgraph.codegen.ir.card import Site
from primgraph.codegen.ir.extents import ATOM, Text
from primgraph.codegen.ir.places import Number, Place
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.spelling.library import library
from primgraph.codegen.ops.spelling.literals import parameter_text

# Maximum number of operands in one display; statements with very many variables compile slowly.
WIDEST = 100
# An operand that is an argument of a call.
_WHOLE = re.compile(r"(\(|, )\{(\d+)\}(?=[,)])")


@final
class Target(NamedTuple):
    """A planned statement: operands with their names `args`, and the buffer `out` to fill.

    `reused_operand` is the operand whose buffer `out` takes over, or None. `parts` are the names of
    the places that the card requested, in that order. `np` returns a local name for a function of
    NumPy. If `new`, `out` was allocated for this statement. If `is_overwritten`, operand 0 is
    overwritten entirely before it is read.
    """

    step: Step
    operands: tuple[Place, ...]
    args: list[str]
    out: str
    reused_operand: int | None
    parts: list[str]
    np: Callable[[str], str]
    new: bool = False
    is_overwritten: bool = False

    def number(self, position: int) -> Any:
        """Return the number that all elements of an operand equal, if it is a constant."""
        return number_of(self.operands[position])


def number_of(place: Place) -> Any:
    """Return the number that all elements of a place equal, if it is a constant."""
    return place.value if isinstance(place, Number) else None


Read: TypeAlias = Callable[[Sequence[Text], Step], Text]
Write: TypeAlias = Callable[[Target], list[str]]
Amend: TypeAlias = Callable[[str, Sequence[Text], Step], str]
Needs: TypeAlias = Callable[[Site], Sequence[Place]]


def reading(template: str, rank: int = ATOM) -> Read:
    """Return the expression of a template, in which names are NumPy's.

    `{0}` and `{1}` are operands, in parentheses if need be, `{args}` all of them, and `{name}` is
    the parameter of that name.
    """
    fields = re.findall(r"\{(\w*)", template)
    named = [name for name in fields if name.isidentifier()]
    marked = _WHOLE.sub(r"\1{whole[\2]}", template)

    def read(args: Sequence[Text], step: Step) -> Text:
        codes, operands = [a.code for a in args], [a.operand_code(ATOM) for a in args]
        texts = {n: parameter_text(step.params[n]) for n in named if n in step.params}
        spelled = library().respell(marked)
        return Text(spelled.format(*operands, whole=codes, args=", ".join(codes), **texts), rank)

    return read


def filling(read: Read) -> Write:
    """Return the statement that fills the result with the value of the expression."""

    def write(to: Target) -> list[str]:
        return [f"{to.out}[...] = {read([Text(a) for a in to.args], to.step).code}"]

    return write


def statements(*templates: str) -> Write:
    """Return the statements of templates.

    `{0}` and `{1}` are operands, `{args}` all of them, `{out}` is the result, `{parts[0]}` the
    first part, `{np[sqrt]}` a function of NumPy, and `{name}` the parameter of that name.
    """

    def write(to: Target) -> list[str]:
        args, fields = ", ".join(to.args), {"np": _Functions(to), **to.step.params}
        return [
            template.format(*to.args, args=args, out=to.out, parts=to.parts, **fields)
            for template in templates
        ]

    return write


class _Functions:
    """NumPy's functions by their local names, as a template reads them."""

    def __init__(self, to: Target) -> None:
        self.to = to

    def __getitem__(self, name: str) -> str:
        return self.to.np(name)
