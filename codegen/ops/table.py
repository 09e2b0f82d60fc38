"""The table of all cards, and the registration of cards for user primitives.

Without a card, generated code calls the primitive's own `impl`.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from string import Formatter
from typing import Any

from primgraph.codegen.ir.axis_semantics import ALIGNED
from primgraph.codegen.ir.extents import ATOM, Text
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ops import (
    bits,
    constants,
    fourier,
    indexing,
    logic,
    parts,
    reductions,
    running,
    shapes,
    sorting,
    windows,
)
from primgraph.codegen.ops.card import Card, Marks, array_card
from primgraph.codegen.ops.cost_model import MOVED
from primgraph.codegen.ops.elementwise import arithmetic, functions
from primgraph.codegen.ops.linear_algebra import (
    assumptions,
    cholesky,
    matrix_functions,
    products,
    spectra,
    systems,
    ties,
)
from primgraph.codegen.ops.special_functions import gamma, scipy_calls, special
from primgraph.codegen.ops.spelling.notation import filling, reading
from primgraph.errors import BuildError
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.primitive import Op, Primitive

CARDS: dict[Op, Card] = {
    **constants.CARDS,
    **shapes.CARDS,
    **arithmetic.CARDS,
    **functions.CARDS,
    **logic.CARDS,
    **parts.CARDS,
    **fourier.CARDS,
    **bits.CARDS,
    **indexing.CARDS,
    **reductions.CARDS,
    **running.CARDS,
    **sorting.CARDS,
    **products.CARDS,
    **systems.CARDS,
    **cholesky.CARDS,
    **assumptions.CARDS,
    **matrix_functions.CARDS,
    **spectra.CARDS,
    **ties.CARDS,
    **gamma.CARDS,
    **special.CARDS,
    **scipy_calls.CARDS,
    **windows.CARDS,
}
# The built-in primitives.
OWN = frozenset(CARDS)


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

    blocking = ALIGNED if op.elementwise else None
    made = array_card(read, filling(read), None, blocking, MOVED, None)
    return replace(made, marks=marks_of(op), fallible=True)


def marks_of(op: Op) -> Marks:
    """Return how a primitive propagates NaNs and infinities, by its card or its properties."""
    card = CARDS.get(op)
    if card is not None:
        return card.marks
    return Marks.EACH if isinstance(op, Primitive) and op.elementwise else Marks.UNKNOWN


def _require_expression(expression: str) -> None:
    try:
        parts = list(Formatter().parse(expression))
        ast.parse("".join(text + ("x" if field else "") for text, field, *_ in parts), mode="eval")
    except (SyntaxError, ValueError) as error:
        raise BuildError(
            f"spell: {expression!r:.80} is no expression: {error}",
            hint="write it as in: np.linalg.solve({0}, {1})",
        ) from None
