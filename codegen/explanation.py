"""Explanation of a native kernel: what C runs, what NumPy runs, and why."""

from __future__ import annotations

from primgraph.codegen.ir.limits import Limits, default_limits
from primgraph.codegen.ir.program import stays_inside
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import HostCall
from primgraph.codegen.ir.text import statement_lines
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.lower.nests.regions import LIMITS
from primgraph.codegen.runtime.toolchain.compile_c import compiler
from primgraph.ir.graph import Graph


def native_listing(graph: Graph, limits: Limits, *, is_native: bool = True) -> tuple[str, ...]:
    """Return the lines that describe the native code of `graph`, if it `is_native`."""
    if compiler() is None:
        return ("NumPy does all: there is no C compiler",)
    plan = nests(schedule(graph), LIMITS if limits == default_limits() else limits)
    if not stays_inside(plan):
        return ("NumPy does all: there are stacks that grow, and steps that C cannot do",)
    if not is_native:
        return ("NumPy does all: the C could not be compiled, as a warning has said",)
    outside = sum(isinstance(item, HostCall) for item in plan.items)
    number = "all of it" if not outside else f"all but {outside} step{'s' * (outside > 1)}"
    return (f"native code for {number}", *statement_lines(plan.items))
