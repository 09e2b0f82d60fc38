"""Explanation of a kernel: what C runs, what NumPy runs, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from primgraph.codegen.ir.limits import Limits, default_limits
from primgraph.codegen.ir.program import Plan, stays_inside
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Call, HostCall, Loop
from primgraph.codegen.ir.text import line_of, origin_text, statement_lines
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.regions import LIMITS
from primgraph.codegen.lower.nests.shared_padding import prepare_graph
from primgraph.codegen.runtime.toolchain.compile_c import compiler
from primgraph.codegen.runtime.toolchain.graph_keys import reason_unknown
from primgraph.ir.graph import Graph


def native_listing(graph: Graph, limits: Limits, *, is_native: bool = True) -> tuple[str, ...]:
    """Return the lines that describe the native code of `graph`, if it `is_native`."""
    if compiler() is None:
        return ("NumPy does all: there is no C compiler",)
    limits = LIMITS if limits == default_limits() else limits
    plan = nests(schedule(prepare_graph(graph)), limits)
    if not stays_inside(plan):
        return ("NumPy does all: there are stacks that grow, and steps that C cannot do",)
    if not is_native:
        return ("NumPy does all: the C could not be compiled, as a warning has said",)
    outside = sum(isinstance(item, HostCall) for item in plan.items)
    number = "all of it" if not outside else f"all but {outside} step{'s' * (outside > 1)}"
    return (f"native code for {number}", *statement_lines(plan.items))


def explanation_lines(
    plan: Plan | None, native: Sequence[str], is_native: bool, is_scalar: bool
) -> Iterator[str]:
    """Yield what runs for arguments of exactly the declared types, and what for others.

    Without a plan the NumPy code is readable; `native` are the lines of `native_listing`, if any.
    """
    lines = _numpy_lines(plan, is_scalar)
    yield from native
    if not is_native:
        yield from lines
        return
    yield "for arguments of other dtypes or layouts:"
    yield from (f"  {line}" for line in lines)


def _numpy_lines(plan: Plan | None, is_scalar: bool) -> Iterator[str]:
    """Yield what NumPy and Python run of a plan."""
    if plan is None:
        yield "readable NumPy code, a statement for each step, whatever the sizes are"
        return
    count = len(plan.schedule.steps)
    yield f"NumPy code for {count} step{'s' * (count != 1)}, in {plan.arena} bytes of buffers"
    if is_scalar:
        yield "  Python floats, as arrays are small: for arguments of exactly the declared types"
    for x in plan.body:
        if isinstance(x, Loop):
            yield f"  {line_of(x)} {len(x.region.roles)} steps, as a block fits the cache"
        elif isinstance(x, Call) and not x.step.op.has_bodies:
            yield f"  Python: {x.step.op.name}{origin_text(x.step)}, as it is a function of Python"
        elif isinstance(x, Call):
            yield f"  trips in Python: {x.step.op.name}{origin_text(x.step)}, as NumPy has no loops"


def cache_lines(graph: Graph) -> Iterator[str]:
    """Yield why the next process generates the code again, if it does."""
    why = reason_unknown(graph)
    if why:
        yield f"not kept on disk: {why}"
