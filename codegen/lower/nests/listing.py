"""Listing of native code: its items in order, and the steps left to NumPy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.limits import Limits, default_limits
from primgraph.codegen.ir.nests import (
    Blocks,
    Control,
    HostCall,
    Item,
    Nest,
    Nests,
    Product,
    stays_inside,
)
from primgraph.codegen.ir.schedule import Step, schedule
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.regions import LIMITS
from primgraph.codegen.lower.nests.short_axes import unroll_short_axes
from primgraph.codegen.runtime.toolchain.compile_c import compiler
from primgraph.ir.graph import Graph
from primgraph.ir.types import Shape
from primgraph.primitives.control import Flow

# Maximum number of operations listed for a nest.
_TOLD = 12


def listing(graph: Graph, limits: Limits, *, is_native: bool = True) -> tuple[str, ...]:
    """Return the lines that describe the native code of `graph`, if it `is_native`."""
    if compiler() is None:
        return ("NumPy does all: there is no C compiler",)
    steps = schedule(unroll_short_axes(graph))
    plan = nests(steps, LIMITS if limits == default_limits() else limits)
    if not stays_inside(plan):
        return ("NumPy does all: there are stacks that grow, and steps that C cannot do",)
    if not is_native:
        return ("NumPy does all: the C could not be compiled, as a warning has said",)
    outside = sum(isinstance(item, HostCall) for item in plan.items)
    number = "all of it" if not outside else f"all but {outside} step{'s' * (outside > 1)}"
    return (f"native code for {number}", *_Listing().lines(plan.items, "  "))


@final
class _Listing:
    """Generator of lines for items, grouped by the user's source line."""

    def __init__(self) -> None:
        self.said: Source | None = None

    def lines(self, items: Sequence[Item], indent: str) -> Iterator[str]:
        for item in items:
            if isinstance(item, Nest) and not item.nodes:
                continue
            steps = [n.step for n in item.nodes if n.step] if isinstance(item, Nest) else []
            if not isinstance(item, Nest | Blocks):
                steps = [item.step]
            yield from self.comment(steps, indent)
            yield indent + _describe_item(item)
            if isinstance(item, Control | Blocks):
                yield from self.bodies(item.bodies, indent + "  ")

    def bodies(self, bodies: Sequence[Nests], indent: str) -> Iterator[str]:
        for k, body in enumerate(bodies):
            if k:
                yield f"{indent}or"
            yield from self.lines(body.items, indent)

    def comment(self, steps: Sequence[Step], indent: str) -> Iterator[str]:
        """Yield the source line of the first step, if it differs from the previous one."""
        source = steps[0].source if steps else None
        if source is not None and source != self.said and source.is_readable:
            self.said = source
            yield f"{indent}# {source}  {'' if source.is_derived else source.text}".rstrip()


def _describe_item(item: Item) -> str:
    match item:
        case Nest(domain=domain, nodes=nodes):
            names = [n.step.op.name if n.step else n.kind for n in nodes]
            told = [name for name in dict.fromkeys(names) if name not in ("copy", "put")]
            text = ", ".join(told[:_TOLD]) + (", ..." if len(told) > _TOLD else "")
            return f"loops over {_shape(domain)}: {text or 'copies'}"
        case Product(step=step, is_added=is_added):
            x, y = step.operands
            return f"product of {x} and {y}" + (", added to the one before" if is_added else "")
        case Control(step=step):
            return f"{step.op.name}{_trips(step)}:"
        case Blocks(extent=extent, rows=rows, groups=groups):
            several = f"{groups} groups" if type(groups) is int else "groups by their number"
            return f"{extent} rows in blocks of {rows}, in {several}:"
        case HostCall(step=step, lacking=lacking):
            because = ", ".join([f"{s.op.name}{_place(s)}" for s in lacking])
            return f"by NumPy: {step.op.name}{_place(step)}" + (
                f", as C has no {because}" if because else ""
            )
        case _:
            return f"{item.step.op.name} of {', '.join(map(str, item.step.operands))}"


def _shape(domain: Shape) -> str:
    return " x ".join(map(str, domain)) or "one element"


def _trips(step: Step) -> str:
    most = step.most_trips
    if most is None:
        return ""
    return f" of {most} trips" if step.flow is Flow.ROWS else f" of up to {most} trips"


def _place(step: Step) -> str:
    return f" at {step.source}" if step.source is not None else ""
