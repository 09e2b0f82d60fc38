"""Bodies of branches and loops in pictures, as groups that fold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from primgraph.ir.graph import Equation, Graph, Value


class Span(NamedTuple):
    """The boxes of a loop, a branch or one of their bodies: from `first` to before `end`.

    That of a whole loop or branch ends with the box of its equation, and is `complete`.
    """

    title: str
    first: int
    end: int
    complete: bool


def enclosing_spans(spans: Sequence[Span]) -> dict[int, list[Span]]:
    """Return the spans that each box is in, outer ones first; `spans` has inner ones first."""
    found: dict[int, list[Span]] = {}
    for span in reversed(spans):
        for box in range(span.first, span.end):
            found.setdefault(box, []).append(span)
    return found


def with_whole_bodies(
    boxes: Collection[int], enclosing: Mapping[int, Sequence[Span]]
) -> tuple[int, ...]:
    """Return `boxes` so that each span is within them, or they within it, or they have none of it.

    Boxes that have the equation of a loop get its bodies; those of a body leave a group that has
    boxes elsewhere, too.
    """
    members, left = set(boxes), set[Span]()
    touched = {span for box in boxes for span in enclosing.get(box, ())}
    low, high, done = min(boxes, default=0), max(boxes, default=0), 0
    for span in sorted(touched, key=lambda s: (s.first, -s.end)):
        if span.end <= done:
            continue
        if span.complete and span.end - 1 in members:
            members.update(range(span.first, span.end))
            done = span.end
        elif low < span.first or span.end <= high:
            left.add(span)
    kept = (box for box in members if left.isdisjoint(enclosing.get(box, ())))
    return tuple(sorted(kept))


class BodyView(NamedTuple):
    """Body with its title, and its inputs with their initial or constant operands.

    The title is empty for a single body. `carried` are the inputs that change between steps.
    """

    title: str
    body: Graph
    operands: tuple[tuple[Value, Value], ...]
    carried: frozenset[Value]


def shown_bodies(eqn: Equation) -> list[BodyView]:
    """Return the bodies of a branch or a loop, in order."""
    params = eqn.kwargs
    kinds = [key for key, value in eqn.params if isinstance(value, Graph)]
    found = []
    for number, body in enumerate(eqn.bodies):
        count = len(body.inputs)
        first = params.get("consts", count)
        behind = first + params.get("carries", count - first)
        kind = kinds[number] if kinds else "branch"
        title = "" if len(eqn.bodies) == 1 else f"{kind} {body.name}"
        operands = tuple(zip(body.inputs, eqn.inputs[len(eqn.inputs) - count :], strict=True))
        found.append(BodyView(title, body, operands, frozenset(body.inputs[first:behind])))
    return found


def title_of(eqn: Equation) -> str:
    """Return the title of a branch or a loop: its op, its bodies and the number of steps."""
    params = eqn.kwargs
    loops = [v.name for k, v in eqn.params if k == "body" and isinstance(v, Graph)]
    names = " | ".join(loops or dict.fromkeys(b.name for b in eqn.bodies))
    most = params.get("length", params.get("limit"))
    times = "" if most is None else f" × {most}"
    if eqn.op.name == "while_loop" or params.get("counted"):
        times = "" if most is None else f" ≤ {most}"
    return f"{eqn.op.name} {names}{times}"
