"""Origins of values, for messages; and errors for values used outside of where they belong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from primgraph.base.user_lines import Source, caller
from primgraph.errors import BuildError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value


def lines_of(builder: Builder, source: Source | None, operands: Sequence[Value]) -> list[str]:
    """Return the lines for an error: the source line, and the lines that computed the
    operands."""
    lines = []
    if source is not None:
        lines.append(f"written here:  {source}   {source.text}")
    for value in dict.fromkeys(operands):
        eqn = builder.definition(value)
        if eqn is not None and eqn.source is not None:
            made = f"{eqn.op.name} at {eqn.source}   {eqn.source.text}"
            lines.append(f"{value.type} comes from {made}")
        elif value in builder.declared_at:
            place = builder.declared_at[value]
            name = f"input {value.hint!r} of" if value.hint else "an input at"
            lines.append(f"{value.type} is {name} {place}   {place.text}")
    return lines


def described(builder: Builder, value: Value) -> list[tuple[str, str]]:
    """Return the known properties of `value`, as names and texts, without empty ones."""
    eqn = builder.definition(value)
    place = builder.declared_at.get(value) if eqn is None else eqn.source
    made = "changed by runs" if value in builder.kept else "fed"
    return [
        ("type", str(value.type)),
        ("name", builder.name_of(value)),
        ("program", builder.name),
        ("input", made if eqn is None else ""),
        ("computed by", "" if eqn is None else eqn.op.name),
        ("line", "" if place is None else f"{place}   {place.text}".rstrip()),
        ("layer", "" if place is None else place.scope),
        ("stop_gradient", "True" if value in builder.stopped else ""),
    ]


def unowned(builder: Builder, what: str) -> BuildError:
    """Return the error for a value, called `what`, that `builder` does not have."""
    return BuildError(
        f"{what} belongs to another program or graph",
        origin=builder.origin(builder.source or caller(), ()),
        hint="values can be used only in the program in which they were made",
    )


_LEFT = {
    "function": "return it from the function: it has a value only when the compiled function runs",
    "body": "return it from the body: f of pg.scan returns carry, y and the y of all iterations "
    "are stacked; what a loop carries on is in the carry",
}


def has_ended(builder: object) -> bool:
    """Return whether `builder` recorded a function or body that has ended."""
    if not isinstance(builder, Builder):
        return False
    return builder.ended or (builder.owner in _LEFT and not builder.is_entered)


def foreign(operands: Sequence[tuple[object, Value]]) -> BuildError:
    """Return the error for `operands`, recorders and values, that belong to different programs."""
    owned = [(b, v) for b, v in operands if isinstance(b, Builder)]
    builders = list(dict.fromkeys(b for b, _ in owned))
    firsts = [next(v for b, v in owned if b is builder) for builder in builders]
    lines = origins(owned)
    for builder, value in zip(builders, firsts, strict=True):
        if has_ended(builder):
            return leaked_error(builder, value)
    parts = [f"{describe_value(v)} of {b.title}" for b, v in zip(builders, firsts, strict=True)]
    listed = f": {' and '.join(parts[:2])}" if len(parts) > 1 else ""
    return BuildError(
        f"variables of two different programs meet in one operation{listed}",
        origin=lines,
        hint="build the whole computation in one program",
    )


def outside(builder: Builder, value: Value, user: Builder) -> BuildError:
    """Return the error for a `value` of `builder` that `user`, a body or function, has found."""
    if has_ended(builder):
        return leaked_error(builder, value)
    return BuildError(
        f"{user.title} uses {describe_value(value)}, which belongs to another program, "
        f"{builder.title}",
        origin=origins([(builder, value)]),
        hint="a variable can be used only in the program in which it was made: pass it as an "
        "argument",
    )


def describe_value(value: Value) -> str:
    """Return a value's name and type, as messages say them."""
    return f"{value.hint!r} {value.type}" if value.hint else str(value.type)


def origins(operands: Iterable[tuple[Builder, Value]]) -> list[str]:
    """Return the lines of an error: the user's, and where each operand was made."""
    found = [builder.origin(caller(), [value]) for builder, value in operands]
    return list(dict.fromkeys(line for lines in found for line in lines))


def leaked_error(builder: Builder, value: Value | None) -> BuildError:
    """Return the error for a `value` of a function or body that is used after its end."""
    what = "this" if value is None else describe_value(value)
    return BuildError(
        f"{what} is a variable of {builder.title}, and is used outside of it",
        origin=[] if value is None else origins([(builder, value)]),
        hint=_LEFT.get(builder.owner, _LEFT["function"]),
    )
