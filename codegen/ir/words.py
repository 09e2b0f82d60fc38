"""Words of the text of plans: how each kind of field is written.

A word is written in full, as `reading.py` reads it, or in brief, for people. Words that only tell
people what the rest implies are empty in full.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from string import Formatter
from typing import Any, NamedTuple, TypeAlias

from primgraph.codegen.ir.access import Access
from primgraph.codegen.ir.places import Buffer, Number, Ones, Place, View, name_of
from primgraph.codegen.ir.schedule import Step
from primgraph.codegen.ir.statements import Operand, Rows
from primgraph.codegen.ir.views import view_text
from primgraph.ir.dims import Dim
from primgraph.ir.text import brief_text, complex_text
from primgraph.ir.types import NAME_OF_DTYPE, Shape
from primgraph.primitives.control import Flow

# Maximum number of operations named for a nest.
_NAMED = 12


class Style(NamedTuple):
    """How to write: `places` writes a place; in full, `steps` numbers steps by their result."""

    places: Callable[[Place], str]
    steps: Mapping[int, int] | None

    @property
    def is_full(self) -> bool:
        return self.steps is not None


def brief_place(place: Place) -> str:
    """Return a place as an expression."""
    match place:
        case Buffer(offset=offset):
            return f"{name_of(place)}@{offset}"
        case Number(value=value):
            return repr(value)
        case Ones(count=count):
            return f"ones({count})"
        case View(of=of, how=how):
            return view_text(how, brief_place(of))
    return name_of(place)


BRIEF = Style(brief_place, None)


def data_text(value: Any) -> str:
    """Return plain data as a Python expression of the classes of this package."""
    if type(value) is Dim:
        return f'Dim("{value}")'
    if isinstance(value, complex):
        return complex_text(value)
    if isinstance(value, dict):
        return f"{{{', '.join([f'{k!r}: {data_text(v)}' for k, v in value.items()])}}}"
    if is_dataclass(value):
        parts = [data_text(getattr(value, f.name)) for f in fields(value)]
        return f"{value.__class__.__name__}({', '.join(parts)})"
    if isinstance(value, tuple):
        inner = ", ".join(map(data_text, value)) + "," * (len(value) == 1)
        named = hasattr(value, "_fields")
        return f"{value.__class__.__name__ if named else ''}({inner})"
    return repr(value)


def _values(values: Iterable[int]) -> str:
    return " ".join([f"%{v}" for v in values])


def _dims(dims: Iterable[int]) -> str:
    return f"[{'; '.join(map(str, dims))}]"


def _map(pairs: Iterable[tuple[int, Any]]) -> str:
    return f"{{{'; '.join([f'%{v}: {x}' for v, x in pairs])}}}"


def _constants(maps: Iterable[Mapping[int, int]]) -> str:
    return " ".join([_map([(v, f"%{own}") for v, own in m.items()]) for m in maps])


def _rows(rows: Rows) -> str:
    return f"m{rows.root}{_dims((rows.offset, rows.step))}"


def access_text(x: Access) -> str:
    """Return an access to memory: the value, the offset and the strides."""
    return f"m{x.root}{_dims((x.offset, *x.strides))}"


def operand_text(x: Operand) -> str:
    """Return an operand of a node: a value of the loop, memory, or quoted C."""
    if x.value >= 0:
        return f"%{x.value}"
    strides = _dims((x.offset, *x.strides))
    if x.root >= 0:
        return f"m{x.root}{strides}"
    return json.dumps(x.text) + (strides if x.strides else "")


def _pairs(pairs: Iterable[tuple[int, int]]) -> str:
    return _dims([n for pair in pairs for n in pair])


# Words for people.


def _shape(domain: Shape) -> str:
    return " x ".join(map(str, domain)) or "one element"


def _trips(step: Step) -> str:
    most = step.most_trips
    if most is None:
        return step.op.name
    most = f"{most} trips" if step.flow is Flow.ROWS else f"up to {most} trips"
    return f"{step.op.name} of {most}"


def _summary(nodes: Iterable[Any]) -> str:
    names = [n.step.op.name if n.step else n.kind for n in nodes]
    named = [name for name in dict.fromkeys(names) if name not in ("copy", "put")]
    return (", ".join(named[:_NAMED]) + (", ..." if len(named) > _NAMED else "")) or "copies"


def _groups(groups: int) -> str:
    return f"{groups} groups" if type(groups) is int else "groups by their number"


def _types(step: Step) -> str:
    joined = " and " if step.op.name == "matmul" else ", "
    return joined.join(map(str, step.operands))


def origin_text(step: Step) -> str:
    """Return the user's line of a step, if it is known."""
    return f" at {step.source}" if step.source is not None else ""


def _params(step: Step) -> str:
    brief = brief_text if step.op.has_bodies else str
    params = ", ".join([f"{k}={brief(v)}" for k, v in step.params.items()])
    return f" ({params})" if params else ""


# Words that are the same in full and in brief, and those in brief only.
_WORDS: dict[str, Callable[[Any], str]] = {
    "int": str,
    "word": str,
    "dim": str,
    "data": data_text,
    "dtype": NAME_OF_DTYPE.__getitem__,
    "quoted": lambda x: f"{json.dumps(x)}: " if x else "",
    "value": lambda x: f"%{x}",
    "values": _values,
    "dims": _dims,
    "shape": _shape,
    "offset": lambda n: "" if type(n) is int and n == 0 else f" at {n}",
    "by": lambda strides: f" by {_dims(strides)}" if strides else "",
    "reach": lambda pairs: f" reach {_pairs(pairs)}" if pairs else "",
    "within": lambda pairs: f" within {_pairs(pairs)}" if pairs else "",
    "type": str,
    "its_type": lambda place: str(place.type),
    "access": access_text,
    "operands": lambda xs: ", ".join(map(operand_text, xs)),
    "maps": _constants,
    "words": lambda x: _map(x.items()),
    "rows_map": lambda x: _map([(v, _rows(rows)) for v, rows in x.items()]),
    "all_rows": lambda xs: " ".join(map(_rows, xs)),
    "result": lambda step: str(step.results[0]),
    "rows": lambda region: f"{region.rows} of {region.extent}",
    "threads": lambda region: f", in up to {region.threads} threads" if region.threads > 1 else "",
    "because": lambda reason: f", as {reason}" if reason else "",
    "name": lambda step: step.op.name,
    "trips": _trips,
    "types": _types,
    "groups": _groups,
    "summary": _summary,
    "life": lambda life: life.name,
}  # fmt: skip


def _step(step: Step | None, style: Style) -> str:
    if step is None:
        return "-"
    if style.steps is None:
        return step.op.name
    return f"{step.op.name}[{style.steps[step.outputs[0]]}]"


def _parts(places: Iterable[Place], style: Style) -> str:
    text = ", ".join(map(style.places, places))
    return f" with {text}" if text else ""


def _over(taken: int | None, style: Style) -> str:
    return "=" if taken is None else f"<-{taken}" if style.is_full else "<-"


# Words that depend on the style.
_STYLED: dict[str, Callable[[Any, Style], str]] = {
    "place": lambda x, style: style.places(x),
    "places": lambda xs, style: ", ".join(map(style.places, xs)),
    "with": _parts,
    "over": _over,
    "step": _step,
    "origin": lambda step, style: "" if style.is_full else origin_text(step),
    "params": lambda step, style: "" if style.is_full else _params(step),
}

# A piece of a syntax: text, and the field that follows it with its kind of word.
Piece: TypeAlias = tuple[str, str, str]


def pieces_of(syntax: str) -> list[Piece]:
    """Return the pieces of a syntax, in order."""
    return [(text, name or "", kind or "") for text, name, kind, _ in Formatter().parse(syntax)]


def line_of(x: Any, style: Style = BRIEF) -> str:
    """Return the line of a statement or of a place's definition."""
    brief, _, full = x.syntax.partition(" !")
    line = _line(x, brief, style)
    return f"{line} !{_line(x, full, style)}" if style.is_full and full else line


def _line(x: Any, syntax: str, style: Style) -> str:
    found = []
    for text, name, kind in pieces_of(syntax):
        found.append(text)
        if not name:
            continue
        value, (word, _, argument) = getattr(x, name), kind.partition(" ")
        if word == "flag":
            found.append(argument if value else "")
        elif word in _STYLED:
            found.append(_STYLED[word](value, style))
        else:
            found.append(_WORDS[word](value))
    return "".join(found)
