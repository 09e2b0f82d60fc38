"""Text of plans and nests: listings for people, and complete text that `reading.py` reads back.

The complete text has the types, steps and places, and a line for each statement: a Python
expression of its class, with the fields that differ from their defaults. `sin[0]` is step 0, `b1` a
place, `m0[4, 1]` the memory of value 0 from element 4 on with stride 1, `t2` the value 2 of the
same loop. Statements in a statement are indented below it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, final

import numpy as np

from primgraph.base.user_lines import Source
from primgraph.codegen.ir import statements as s
from primgraph.codegen.ir.places import Buffer, Number, Ones, Place, View, name_of
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.ir.statements import Blocks, Control, Loop, Nest, Nests, Operand
from primgraph.codegen.ir.views import view_text
from primgraph.ir.dims import Dim
from primgraph.ir.text import brief_text, equation_text
from primgraph.ir.types import NAME_OF_DTYPE, TensorType
from primgraph.primitives.control import Flow

# Maximum number of operations named for a nest.
_NAMED = 12


def place_text(place: Place) -> str:
    """Return a place as an expression."""
    match place:
        case Buffer(offset=offset):
            return f"{name_of(place)}@{offset}"
        case Number(value=value):
            return repr(value)
        case Ones(count=count):
            return f"ones({count})"
        case View(of=of, how=how):
            return view_text(how, place_text(of))
    return name_of(place)


def _places(places: Iterable[Place]) -> str:
    return ", ".join(map(place_text, places))


def origin_text(step: Step) -> str:
    """Return the user's line of a step, if it is known."""
    return f" at {step.source}" if step.source is not None else ""


def _operation(x: Any) -> str:
    """Return the operation of a statement on its operands."""
    step, brief = x.step, brief_text if x.step.op.has_bodies else str
    params = ", ".join([f"{k}={brief(v)}" for k, v in step.params.items()])
    return f"{step.op.name} {_places(x.operands)}" + (f" ({params})" if params else "")


def text_of(x: Any) -> str:
    """Return a statement or a place as in a listing."""
    return place_text(x) if hasattr(x, "life") else line_of(x)


def line_of(x: Any) -> str:
    """Return the line of a statement."""
    match x:
        case s.Compute(out=out, step=step, taken=taken, parts=parts):
            more = f" with {_places(parts)}" if parts else ""
            sign, replaced = "=" if taken is None else "<-", ", all replaced" * x.replaced
            line = f"{step.results[0]} {sign} {_operation(x)}{more}{replaced}"
            return f"{'new ' * x.new}{place_text(out)}: {line}"
        case s.Put(part=part, step=step):
            return f"{place_text(part)}: {step.results[0]} = {_operation(x)}"
        case s.Call(outs=outs):
            return f"{_places(outs)} = call {_operation(x)}"
        case s.See(view=view):
            return f"see {place_text(view)}"
        case s.Make(out=out):
            return f"make {place_text(out)}: {out.type}"
        case s.Fill(out=out, value=value):
            return f"fill {place_text(out)} with {value!r}"
        case s.Copy(source=source, out=out, new=new):
            return f"{'new ' * new}{place_text(out)} = copy {place_text(source)}"
        case s.Combine(how=how, part=part, total=total):
            return f"{place_text(total)} = {how} {_places((total, part))}"
        case s.Release(buffer=buffer):
            return f"release {place_text(buffer)}"
        case s.Loop(region=region):
            threads = f", in up to {region.threads} threads" * (region.threads > 1)
            return f"for each block of {region.rows} of {region.extent} rows{threads}:"
        case s.Return(number=number, place=place):
            return f"return {place_text(place)} as result {number}"
    return _item_line(x)


def _item_line(x: s.Item) -> str:
    """Return the line of an item of nests."""
    match x:
        case s.Nest(domain=domain, nodes=nodes, pairs=pairs):
            over = (" x ".join(map(str, domain)) or "one element") + ", in pairs" * (pairs > 0)
            return f"loops over {over}: {_summary(nodes)}"
        case s.Product(step=step, is_added=is_added):
            added = ", added to the one before" * is_added
            return f"product of {' and '.join(map(str, step.operands))}{added}"
        case s.Control(step=step):
            most = step.most_trips
            if most is None:
                return f"{step.op.name}:"
            limit = "" if step.flow is Flow.ROWS else "up to "
            return f"{step.op.name} of {limit}{most} trips:"
        case s.Blocks(extent=extent, rows=rows, groups=groups):
            number = f"{groups} groups" if type(groups) is int else "groups by their number"
            return f"{extent} rows in blocks of {rows}, in {number}:"
        case s.Routine(step=step):
            return f"{step.op.name} of {', '.join(map(str, step.operands))}"
        case s.HostCall(step=step, reason=reason):
            why = f", as {reason}" if reason else ""
            return f"by NumPy: {step.op.name}{origin_text(step)}{why}"


def _summary(nodes: Iterable[s.Node]) -> str:
    names = [n.step.op.name if n.step else n.kind for n in nodes]
    named = [name for name in dict.fromkeys(names) if name not in ("copy", "put", "text")]
    return (", ".join(named[:_NAMED]) + (", ..." if len(named) > _NAMED else "")) or "copies"


def listing(plan: Any) -> str:
    """Return the listing of a plan, with the user's lines."""
    given = ", ".join([f"{name_of(x)}: {x.type}" for x in plan.arguments])
    types = ", ".join([str(plan.schedule.types[v]) for v in plan.schedule.outputs]) or "nothing"
    space = f", and {plan.space} in each thread" if plan.space else ""
    head = f"plan {plan.schedule.name}({given}) -> {types}"
    arena = f"  arena of {plan.arena} bytes, {plan.least} in use at most{space}"
    text = "\n".join([head, arena, *statement_lines(plan.body)])
    first = ["\n".join(plan.native), "where that does not run:"] if plan.native else []
    if plan.choice:
        first.insert(0, plan.choice)
    return "\n\n".join([*first, text, *map(str, plan.bodies)])


def statement_lines(statements: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of statements in a listing, grouped by the user's lines."""
    yield from _Lines().lines(statements, "  ")


@final
class _Lines:
    """Printer of statements, each group below the user's line."""

    def __init__(self) -> None:
        self.source: Source | None = None

    def lines(self, statements: Iterable[Any], indent: str) -> Iterator[str]:
        for x in statements:
            if isinstance(x, s.Nest) and not x.nodes:
                continue
            yield from self.comment(x, indent)
            yield f"{indent}{line_of(x)}".rstrip()
            yield from self.inside(x, f"{indent}  ")

    def inside(self, x: Any, indent: str) -> Iterator[str]:
        """Yield the lines of the statements in a statement."""
        if isinstance(x, s.Loop):
            yield from self.lines(x.body, indent)
            if x.totals:
                yield f"{indent}in turn:"
            yield from self.lines(x.totals, f"{indent}  ")
        elif isinstance(x, s.Control | s.Blocks):
            for k, body in enumerate(x.bodies):
                if k:
                    yield f"{indent}or"
                yield from self.lines(body.items, indent)

    def comment(self, x: Any, indent: str) -> Iterator[str]:
        """Yield the user's line of a statement that computes, if it is another one than before."""
        if isinstance(x, s.Nest):
            step = next((n.step for n in x.nodes if n.step), None)
        else:
            # A view is no computation.
            step = None if isinstance(x, s.See) else getattr(x, "step", None)
        source = None if step is None else step.source
        if source is not None and source != self.source and source.is_readable:
            self.source = source
            yield f"{indent}# {source}  {'' if source.is_derived else source.text}".rstrip()


# Complete text.

# Fields with the statements in a statement, by its class.
INSIDE: dict[Any, tuple[str, ...]] = {
    Loop: ("body", "totals"),
    Control: ("bodies",),
    Blocks: ("bodies",),
    Nest: ("nodes",),
}


def to_text(plan: Any) -> str:
    """Return the complete text of a plan or of nests, without the user's lines."""
    return "\n".join(_nests(plan) if isinstance(plan, Nests) else _plan(plan))


def data_text(value: Any) -> str:
    """Return plain data as a Python expression of the classes of this package."""
    return _Text({}).of(value)


@final
class _Text:
    """Writer of data; `steps` numbers steps by their first result."""

    def __init__(self, steps: Mapping[int, int]) -> None:
        self.steps = steps

    def of(self, value: Any) -> str:
        """Return the expression of a value; a place is its name, a step its number."""
        match value:
            case Step():
                return f"{_plain(value.op.name)}[{self.steps[value.outputs[0]]}]"
            case Operand(value=v) if v >= 0:
                return f"t{v}"
            case Operand(root=root, offset=offset, strides=strides) if root >= 0:
                return f"m{root}[{self.of((offset, *strides))[1:-1]}]"
            case Dim() | TensorType():
                return f'{value.__class__.__name__}("{value}")'
            case np.dtype():
                return NAME_OF_DTYPE[value]
            case Enum():
                return value.name
            case str() if value.isascii():
                return json.dumps(value)
            case complex():
                return f"complex({value.real!r}, {value.imag!r})"
            case Mapping():
                pairs = [f"{self.of(k)}: {self.of(v)}" for k, v in value.items()]
                return f"{{{', '.join(pairs)}}}"
            case tuple() if not hasattr(value, "_fields"):
                return f"({', '.join(map(self.of, value))}{',' * (len(value) == 1)})"
        return self.of_object(value)

    def of_object(self, value: Any) -> str:
        """Return the name of a place, or the expression of another object."""
        if hasattr(value, "life"):
            return name_of(value)
        is_object = hasattr(value, "_fields") or is_dataclass(value)
        return self.object(value) if is_object else repr(value)

    def object(self, x: Any) -> str:
        """Return the call of a class, with fields that differ from their defaults."""
        parts, inside, named = [], INSIDE.get(x.__class__, ()), False
        for name, default in _defaults(x):
            field = getattr(x, name)
            named = named or name in inside or default is not MISSING
            if name not in inside and (default is MISSING or field != default):
                parts.append(f"{name}={self.of(field)}" if named else self.of(field))
        return f"{x.__class__.__name__}({', '.join(parts)})"

    def lines(self, statements: Iterable[Any], indent: str) -> Iterator[str]:
        """Yield the lines of statements."""
        for x in statements:
            yield f"{indent}{self.object(x)}"
            for name in INSIDE.get(x.__class__, ()):
                found = getattr(x, name)
                if name == "bodies":
                    yield from (f"{indent}  {line}" for body in found for line in _nests(body))
                elif name == "nodes":
                    yield from self.lines(found, f"{indent}  ")
                elif found:
                    yield f"{indent}  {name}"
                    yield from self.lines(found, f"{indent}    ")


def _plain(name: str) -> str:
    return name if name.isidentifier() else "step"


def _defaults(x: Any) -> list[tuple[str, Any]]:
    """Return the fields of an object, with their defaults."""
    if hasattr(x, "_fields"):
        return [(name, x._field_defaults.get(name, MISSING)) for name in x._fields]
    return [
        (f.name, f.default if f.default_factory is MISSING else f.default_factory())
        for f in fields(x)
    ]


def _plan(plan: Any) -> Iterator[str]:
    text = _Text(_number_of_steps(plan.schedule))
    yield f"plan {json.dumps(plan.schedule.name)}"
    yield f"  options {text.of(plan.options)}"
    yield f"  memory {text.of((plan.arena, plan.least, plan.space))}"
    yield from _schedule(plan.schedule, plan.schedule.types)
    yield "  places"
    for place in _places_of(plan):
        yield f"    {name_of(place)} = {text.object(place)}"
    for name in ("arguments", "constants", "arrays", "buffers"):
        yield f"  {name} {text.of(getattr(plan, name))}"
    yield "  body"
    yield from text.lines(plan.body, "    ")
    for body in plan.bodies:
        yield from (f"  {line}" for line in _plan(body))


def _nests(nests: Nests) -> Iterator[str]:
    text = _Text(_number_of_steps(nests.schedule))
    yield f"nests {json.dumps(nests.schedule.name)}"
    if nests.is_block:
        yield f"  added {text.of(tuple(nests.added))}"
    yield from _schedule(nests.schedule, list(nests.types.values()))
    constants = {v: _constant_source(nests, v, text) for v in nests.constants}
    yield f"  constants {text.of(constants)}"
    yield f"  outputs {text.of(nests.outputs)}"
    yield f"  last {text.of(nests.last)}"
    yield "  items"
    yield from text.lines(nests.items, "    ")


def _constant_source(nests: Nests, value: int, text: _Text) -> Any:
    """Return the step that gives a constant, or a tuple with the number that fills it."""
    if value in text.steps:
        return text.steps[value]
    array = nests.constants[value]
    return (array.flat[0].item() if array.size else 0,)


def _number_of_steps(schedule: Schedule) -> dict[int, int]:
    return {v: k for k, step in enumerate(schedule.steps) for v in step.outputs}


def _schedule(schedule: Schedule, types: Sequence[Any]) -> Iterator[str]:
    """Yield the types of all values, the hints of some, and the steps."""
    hints = {v: hint for v, hint in enumerate(schedule.hints) if hint}
    yield f"  types {'; '.join(map(str, types))}"
    yield f"  values {data_text((len(schedule.types), schedule.inputs, hints))}"
    yield f"  results {data_text(schedule.outputs)}"
    yield "  steps"
    for step in schedule.steps:
        names = dict(zip(step.eqn.inputs, [f"%{v}" for v in step.inputs], strict=True))
        names.update(zip(step.eqn.outputs, [f"%{v}" for v in step.outputs], strict=True))
        yield from (f"    {line}" for line in equation_text(step.eqn, names).split("\n"))


def _places_of(plan: Any) -> list[Place]:
    """Return all places of a plan, each after the one that it is a view of, once by its name."""
    found: dict[str, Place] = {}

    def add(place: Any) -> None:
        if isinstance(place, View):
            add(place.of)
        found.setdefault(name_of(place), place)

    for place in (*plan.arguments, *plan.constants, *plan.arrays, *plan.buffers):
        add(place)
    for x in plan.flat():
        for field in x:
            for place in field if type(field) is tuple and type(x) is not Loop else (field,):
                if hasattr(place, "life"):
                    add(place)
    return list(found.values())
