"""Text of plans: a listing for people, and the complete text, which `reading.py` reads back.

Both have one line per statement. The complete text begins with the types, steps and places of the
plan, whose numbers the statements have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.places import Place, View, name_of
from primgraph.codegen.ir.schedule import Schedule, Step
from primgraph.codegen.ir.statements import Blocks, Control, Loop, Nest, Nests
from primgraph.codegen.ir.words import BRIEF, Style, brief_place, data_text, line_of
from primgraph.ir.text import equation_text


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
