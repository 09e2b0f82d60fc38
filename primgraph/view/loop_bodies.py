"""Bodies of branches and loops in pictures, as groups that fold."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from primgraph.ir.graph import Equation, Graph, Value

# The title of a group of boxes, and the range of their numbers.
Span: TypeAlias = tuple[str, int, int]


class Shown(NamedTuple):
    """Body with its title, and its inputs with their initial or constant operands.

    The title is empty for a single body. `carried` are the inputs that change between steps.
    """

    title: str
    body: Graph
    operands: tuple[tuple[Value, Value], ...]
    carried: frozenset[Value]


def shown_bodies(eqn: Equation) -> list[Shown]:
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
        found.append(Shown(title, body, operands, frozenset(body.inputs[first:behind])))
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
