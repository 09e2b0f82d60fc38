"""Errors for steps that are not supported in C."""

from __future__ import annotations

from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.schedule import Step, schedule
from primgraph.codegen.ir.statements import HostCall, Nest, Nests
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.targets.export.nests.formulas import formula, function_of, kind_of
from primgraph.errors import CompileError
from primgraph.ir.dims import is_open

# No blocks of rows: exported files use no threads, and know little about caches.
SERIAL = Limits(cache=1 << 60)


def unsupported_error(step: Step, name: str) -> CompileError:
    """Return the error for an unsupported step, or for an unsupported step in its bodies."""
    step = _cause(step)
    source, types = step.eqn.source, (*step.operands, *step.results)
    origin = () if source is None else (f"{source}   {source.text}",)
    if any(is_open(t.shape) for t in types):
        return CompileError(
            f"a loop without a bound on its trips leaves something for each of them, for which "
            f"{name} would have no room in C",
            origin=origin,
            hint="give the loop max_trips; or take derivatives forward, which keep nothing",
        )
    strange = next((t.dtype for t in types if not kind_of(t.dtype)), None)
    what = step.op.name if strange is None else f"{step.op.name} of {strange}"
    return CompileError(
        f"{what} is not supported in C, so {name} cannot be saved as C",
        origin=origin,
        hint="compute it outside and make it an input, or save NumPy source: "
        f"kernel.save('{name}.py')",
    )


def require_words(nest: Nest, plan: Nests, name: str) -> None:
    """Raise for a step of a nest that C does not support."""
    for node in nest.nodes:
        if node.step is None:
            continue
        known: object = True
        if node.kind == "text":
            known = formula(node.step)
        elif node.kind == "call":
            known = function_of(node.name, plan.types[node.value].dtype)
        if not known:
            raise unsupported_error(node.step, name)


def _cause(step: Step) -> Step:
    """Return the innermost step that is the cause of a loop or branch not being supported."""
    while step.op.has_bodies:
        regions = step.regions
        graphs = step.eqn.bodies if regions is None else regions.graphs
        items = [
            item
            for graph in graphs
            for item in nests(schedule(graph), SERIAL, complete=True, alone=True).items
        ]
        inner = next((item.step for item in items if isinstance(item, HostCall)), None)
        if inner is None:
            break
        step = inner
    return step
