"""Text of plans: a listing for people, and the complete text, which `reading.py` reads back.

Both have one line per statement, from the `SYNTAX` of its class: text, and in braces a field and
its word, which is how the field is written. The complete text begins with the types, steps and
places of the plan, whose numbers the statements have. Words that repeat what the rest implies are
empty there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from string import Formatter
from typing import Any, NamedTuple, TypeAlias, final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir import places, statements
from primgraph.codegen.ir.access import Access
from primgraph.codegen.ir.places import Buffer, Number, Ones, Place, View, name_of
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.ir.statements import Blocks, Control, Loop, Nest, Nests, Operand, Rows
from primgraph.codegen.ir.views import view_text
from primgraph.ir.dims import Dim
from primgraph.ir.text import brief_text, complex_text, equation_text
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
    named = [name for name in dict.fromkeys(names) if name not in ("copy", "put", "text")]
    return (", ".join(named[:_NAMED]) + (", ..." if len(named) > _NAMED else "")) or "copies"


def _groups(groups: int) -> str:
    return f"{groups} groups" if type(groups) is int else "groups by their number"


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
    "pairs": lambda rows: f" in pairs by {rows}" if rows else "",
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
    "types": lambda step: ", ".join(map(str, step.operands)),
    "factors": lambda step: " and ".join(map(str, step.operands)),
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

_SYNTAX = {**places.SYNTAX, **statements.SYNTAX}

# A piece of a syntax: text, and the field that follows it with its kind of word.
Piece: TypeAlias = tuple[str, str, str]


def pieces_of(syntax: str) -> list[Piece]:
    """Return the pieces of a syntax, in order."""
    return [(text, name or "", kind or "") for text, name, kind, _ in Formatter().parse(syntax)]


def line_of(x: Any, style: Style = BRIEF) -> str:
    """Return the line of a statement or of a place's definition."""
    brief, _, full = _SYNTAX[x.__class__].partition(" !")
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


# Listings.


def text_of(x: Any) -> str:
    """Return a statement or a place as in a listing."""
    return brief_place(x) if hasattr(x, "life") else line_of(x)


def listing(plan: Any) -> str:
    """Return the listing of a plan, with the user's lines."""
    given = ", ".join([f"{name_of(x)}: {x.type}" for x in plan.arguments])
    types = ", ".join([str(plan.schedule.types[v]) for v in plan.schedule.outputs]) or "nothing"
    space = f", and {plan.space} in each thread" if plan.space else ""
    head = f"plan {plan.schedule.name}({given}) -> {types}"
    arena = f"  arena of {plan.arena} bytes, {plan.least} in use at most{space}"
    text = "\n".join([head, arena, *statement_lines(plan.body)])
    first = ["\n".join(plan.native), "where that does not run:"] if plan.native else []
    return "\n\n".join([*first, text, *map(str, plan.bodies)])


def statement_lines(statements: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of statements in a listing, grouped by the user's lines."""
    yield from _Lines(BRIEF).lines(statements, "  ")


def to_text(plan: Any) -> str:
    """Return the complete text of a plan or of nests, without the user's lines."""
    return "\n".join(_nests(plan) if isinstance(plan, Nests) else _plan(plan))


@final
class _Lines:
    """Printer of statements in a style; in brief with the user's lines."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.source: Source | None = None

    def lines(self, statements: Iterable[Any], indent: str) -> Iterator[str]:
        for x in statements:
            if isinstance(x, Nest) and not x.nodes and not self.style.is_full:
                continue
            if not self.style.is_full:
                yield from self.comment(x, indent)
            yield f"{indent}{line_of(x, self.style)}".rstrip()
            yield from self.inside(x, f"{indent}  ")

    def inside(self, x: Any, indent: str) -> Iterator[str]:
        """Yield the lines of the statements in a statement."""
        if isinstance(x, Loop):
            yield from self.lines(x.body, indent)
            if x.totals:
                yield f"{indent}in turn:"
            yield from self.lines(x.totals, f"{indent}  ")
        elif isinstance(x, Control | Blocks):
            for k, body in enumerate(x.bodies):
                if self.style.is_full:
                    yield from (f"{indent}{line}" for line in _nests(body))
                    continue
                if k:
                    yield f"{indent}or"
                yield from self.lines(body.items, indent)
        elif isinstance(x, Nest) and self.style.is_full:
            yield from self.lines(x.nodes, indent)

    def comment(self, x: Any, indent: str) -> Iterator[str]:
        """Yield the user's line of a statement that computes, if it is another one than before."""
        steps = [n.step for n in x.nodes if n.step] if isinstance(x, Nest) else [_step_of(x)]
        step = steps[0] if steps else None
        source = None if step is None else step.source
        if source is not None and source != self.source and source.is_readable:
            self.source = source
            yield f"{indent}# {source}  {'' if source.is_derived else source.text}".rstrip()


def _step_of(x: Any) -> Step | None:
    # A view is no computation.
    return None if hasattr(x, "view") else getattr(x, "step", None)


# Complete text.


def _plan(plan: Any) -> Iterator[str]:
    style = Style(name_of, _number_of_steps(plan.schedule))
    yield f"plan {json.dumps(plan.schedule.name)}"
    yield f"  options {data_text(plan.options)}"
    yield f"  memory {plan.arena} {plan.least} {plan.space}"
    yield from _schedule(plan.schedule)
    yield "  places"
    for place in _places_of(plan):
        yield f"    {line_of(place, style)}"
    for name in ("arguments", "constants", "arrays", "buffers"):
        yield f"  {name} {' '.join(map(name_of, getattr(plan, name)))}".rstrip()
    yield "  body"
    yield from _Lines(style).lines(plan.body, "    ")
    for body in plan.bodies:
        yield from (f"  {line}" for line in _plan(body))


def _nests(nests: Nests) -> Iterator[str]:
    style = Style(name_of, _number_of_steps(nests.schedule))
    added = "" if not nests.is_block else " block" + "".join([f" %{v}" for v in nests.added])
    yield f"nests {json.dumps(nests.schedule.name)}{added}"
    yield from _schedule(nests.schedule, list(nests.types.values()))
    constants = [f"%{v}: {_constant_text(nests, v, style)}" for v in nests.constants]
    yield f"  constants {'; '.join(constants)}".rstrip()
    yield f"  outputs {' '.join([f'%{v}' for v in nests.outputs])}".rstrip()
    yield f"  last {' '.join([f'%{v}:{at}' for v, at in nests.last.items()])}".rstrip()
    yield "  items"
    yield from _Lines(style).lines(nests.items, "    ")


def _constant_text(nests: Nests, value: int, style: Style) -> str:
    """Return the step that a constant is the result of, or the number that fills it."""
    assert style.steps is not None
    if value in style.steps:
        return str(style.steps[value])
    array = nests.constants[value]
    number = array.flat[0].item() if array.size else 0
    return f"of {data_text(number)}"


def _number_of_steps(schedule: Schedule) -> dict[int, int]:
    return {v: k for k, step in enumerate(schedule.steps) for v in step.outputs}


def _schedule(schedule: Schedule, types: Sequence[Any] | None = None) -> Iterator[str]:
    """Yield the types of all values, the hints of some, and the steps."""
    hints = {str(v): hint for v, hint in enumerate(schedule.hints) if hint}
    outputs = " ".join([f"%{v}" for v in schedule.outputs])
    yield f"  types {'; '.join(map(str, schedule.types if types is None else types))}"
    yield f"  values {len(schedule.types)}, inputs {schedule.inputs}, hints {json.dumps(hints)}"
    yield f"  results {outputs}".rstrip()
    yield "  steps"
    for step in schedule.steps:
        names = dict(zip(step.eqn.inputs, [f"%{v}" for v in step.inputs], strict=True))
        names.update(zip(step.eqn.outputs, [f"%{v}" for v in step.outputs], strict=True))
        yield from (f"    {line}" for line in equation_text(step.eqn, names).split("\n"))


def _places_of(plan: Any) -> list[Place]:
    """Return all places of a plan, each after the one that it is a view of, once by its name."""
    found: dict[str, Place] = {}

    def add(place: Any) -> None:
        inner = []
        while isinstance(place, View):
            inner.append(place)
            place = place.of
        for x in (place, *reversed(inner)):
            found.setdefault(name_of(x), x)

    for place in (*plan.arguments, *plan.constants, *plan.arrays, *plan.buffers):
        add(place)
    for x in plan.flat():
        for field in x:
            for place in field if type(field) is tuple and type(x) is not Loop else (field,):
                if hasattr(place, "life"):
                    add(place)
    return list(found.values())
