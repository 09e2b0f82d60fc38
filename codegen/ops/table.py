"""The table of all cards, and the registration of cards for user primitives.

Without a card, generated code calls the primitive's own `impl`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, final

from primgraph.base.providers import late
from primgraph.codegen.ir.axis_semantics import ROWS
from primgraph.codegen.ir.extents import ATOM, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops.card import Card, Marks, array_card
from primgraph.codegen.ops.cost_model import MOVED
from primgraph.codegen.ops.families import FAMILIES, family_of
from primgraph.codegen.ops.spelling.notation import filling, reading
from primgraph.errors import BuildError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.primitive import Op, Primitive

if TYPE_CHECKING:
    import string
else:
    string = late("string")


@final
class _Cards(dict[Op, Card]):
    """Cards by primitive. A lookup loads the family of its primitive, and a traversal all."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting = set(FAMILIES)

    def _load(self, family: str) -> None:
        if family in self._waiting:
            self.update(import_module(f"{_PACKAGE}.{family}").CARDS)
            self._waiting.discard(family)

    def __missing__(self, op: Op) -> Card:
        found: Card | None = self.get(op)
        if found is None:
            raise KeyError(op)
        return found

    def get(self, op: Op, default: Any = None) -> Any:
        found = super().get(op)
        if found is None and self._waiting:
            self._load(family_of(op))
            found = super().get(op)
        return default if found is None else found

    def __contains__(self, op: object) -> bool:
        return isinstance(op, Op) and self.get(op) is not None

    def __iter__(self) -> Iterator[Op]:
        for family in FAMILIES:
            self._load(family)
        return super().__iter__()

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def keys(self) -> Any:
        iter(self)
        return super().keys()

    def items(self) -> Any:
        iter(self)
        return super().items()

    def values(self) -> Any:
        iter(self)
        return super().values()


_PACKAGE = __name__.rpartition(".")[0]
CARDS = _Cards()


@check_arguments
def spell(op: Primitive[Any], expression: str) -> None:
    """Generate this NumPy expression for `op`, instead of a call of its `impl`.

    `{0}`, `{1}` and so on stand for the operands, `{name}` for the parameter of that name. The
    expression may use only `np` besides these. It must return a new array of the declared type, or
    raise. Kernels that use the primitive can then be saved as files.

    Raises `BuildError` for a primitive that has a card already or has several results, and for
    text that is not an expression.

    >>> from primgraph.extend import elementwise, emit, lift, spell
    >>> wave = elementwise("wave", np.sin)
    >>> spell(wave, "np.sin({0})")
    >>> kernel = pg.compile(pg.trace(lambda x: emit(wave, lift(x)), pg.spec(3)))
    >>> "np.sin(x)" in kernel.source
    True
    """
    give_card(op, spelled(op, expression))


@check_arguments
def give_card(op: Primitive[Any], card: Card) -> None:
    """Register `card` as what the back end and the tools know of `op`.

    Raises `BuildError` for a primitive that has a card already or has several results.

    >>> from dataclasses import replace
    >>> from primgraph.extend import elementwise, give_card, spelled
    >>> slow_sin = elementwise("slow_sin", np.sin)
    >>> give_card(slow_sin, replace(spelled(slow_sin, "np.sin({0})"), advice="check the operand"))
    """
    if op in CARDS or op.multiple:
        fault = "has several results" if op.multiple else "is written in NumPy already"
        raise BuildError(f"spell: primitive {op.name} {fault}")
    CARDS[op] = card


@check_arguments
def spelled(op: Primitive[Any], expression: str) -> Card:
    """Return the card of a primitive of which only a NumPy expression is known, as in `spell`.

    `dataclasses.replace` adds to it. Raises `BuildError` for text that is not an expression.

    >>> from primgraph.extend import elementwise, spelled
    >>> card = spelled(elementwise("wave", np.sin), "np.sin({0})")
    >>> card.fallible
    True
    """
    _require_expression(expression)

    spell = reading(expression)

    def read(args: Sequence[Text], step: Step) -> Text:
        text = spell([Text(a.operand_code(ATOM)) for a in args], step).code
        whole = isinstance(ast.parse(text, mode="eval").body, ast.Call)
        return Text(text if whole else f"({text})")

    blocking = ROWS if op.elementwise else None
    made = array_card(read, filling(read), None, blocking, MOVED, None)
    return replace(made, marks=marks_of(op), fallible=True)


def marks_of(op: Op) -> Marks:
    """Return how a primitive propagates NaNs and infinities, by its card or its properties."""
    card: Card | None = CARDS.get(op)
    if card is not None:
        return card.marks
    return Marks.EACH if isinstance(op, Primitive) and op.elementwise else Marks.UNKNOWN


def _require_expression(expression: str) -> None:
    try:
        parts = list(string.Formatter().parse(expression))
        ast.parse("".join(text + ("x" if field else "") for text, field, *_ in parts), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise BuildError(
            f"spell: {expression!r:.80} is no expression: {error}",
            hint="write it as in: np.linalg.solve({0}, {1})",
        ) from None
