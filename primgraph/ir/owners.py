"""Errors for a variable that is used outside of the program or function that it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from primgraph.errors import BuildError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.source import caller

_LEFT = {
    "function": "return it from the function: it has a value only when the compiled function runs",
    "body": "return it from the body: f of pg.scan returns carry, y and the y of all iterations "
    "are stacked; what a loop carries on is in the carry",
}


def foreign(operands: Sequence[tuple[object, Value]]) -> BuildError:
    """Return the error for `operands`, recorders and values, that belong to different programs."""
    owned = [(b, v) for b, v in operands if isinstance(b, Builder)]
    builders = list(dict.fromkeys(b for b, _ in owned))
    firsts = [next(v for b, v in owned if b is builder) for builder in builders]
    lines = origin(owned)
    for builder, value in zip(builders, firsts, strict=True):
        if builder.owner in _LEFT and not builder.is_entered:
            return _leaked(builder, value, lines)
    parts = [f"{named(v)} of {b.title}" for b, v in zip(builders, firsts, strict=True)]
    listed = f": {' and '.join(parts[:2])}" if len(parts) > 1 else ""
    return BuildError(
        f"variables of two different programs meet in one operation{listed}",
        origin=lines,
        hint="build the whole computation in one program",
    )


def outside(builder: Builder, value: Value, user: Builder) -> BuildError:
    """Return the error for a `value` of `builder` that `user`, a body or function, has found."""
    lines = origin([(builder, value)])
    if builder.owner in _LEFT and not builder.is_entered:
        return _leaked(builder, value, lines)
    return BuildError(
        f"{user.title} uses {named(value)}, which belongs to another program, {builder.title}",
        origin=lines,
        hint="a variable can be used only in the program in which it was made: pass it as an "
        "argument",
    )


def named(value: Value) -> str:
    """Return a value's name and type, as messages say them."""
    return f"{value.hint!r} {value.type}" if value.hint else str(value.type)


def origin(operands: Iterable[tuple[Builder, Value]]) -> list[str]:
    """Return the lines of an error: the user's, and where each operand was made."""
    found = [builder.origin(caller(), [value]) for builder, value in operands]
    return list(dict.fromkeys(line for lines in found for line in lines))


def _leaked(builder: Builder, value: Value, lines: list[str]) -> BuildError:
    return BuildError(
        f"{named(value)} is a variable of {builder.title}, and is used outside of it",
        origin=lines,
        hint=_LEFT[builder.owner],
    )
