"""Limits that make plans of small programs worth a look, and code whose free memory is poisoned."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from primgraph.codegen.compiled import Compiled, Job
from primgraph.codegen.ir.limits import Limits, Options
from primgraph.codegen.ir.verify import verify
from primgraph.codegen.load import load_module
from primgraph.codegen.planned import bind_calls, bind_objects, plan_for
from primgraph.codegen.targets.inplace.function import print_plan
from primgraph.ir.graph import Graph

# Everything in blocks of two or three rows, however small it is; then in threads too.
SMALL = Limits(cache=1, least_bytes=1, least_block=1, rows=2)
# Nothing in blocks.
NEVER = Limits(cache=1 << 60)
SHARED = replace(SMALL, processors=2, least_share=0)
_PLAIN = Options()


def poisoned_results(graph: Graph, feeds: list[Any], limits: Limits) -> list[Any]:
    """What the planned code computes if all memory that is not in use is full of NaNs."""
    return results_of_text(graph, feeds, limits, Options(poisoned=True))


def results_of_text(
    graph: Graph, feeds: list[Any], limits: Limits = NEVER, options: Options = _PLAIN
) -> list[Any]:
    """What the text of the plan computes, without scalar code; twice, in one workspace."""
    module = print_plan(verify(plan_for(graph, options, limits)))
    bind_objects(module, limits)
    loaded = load_module(module)
    workspace = loaded.function("workspace")()
    with np.errstate(all="ignore"):
        first = loaded.function("run")(workspace, feeds)
        second = loaded.function("run")(workspace, feeds)
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()
    return list(first)


def results_of_calls(graph: Graph, feeds: list[Any]) -> list[Any]:
    """What the planned code computes as calls without text; twice, in one workspace."""
    job = Job(graph, _PLAIN, NEVER)
    made = Compiled(graph)
    bind_calls(made, job, verify(plan_for(*job[:3])))
    context, workspace = made.new_workspace()
    first = context.run(made.run, workspace, feeds)
    second = context.run(made.run, workspace, feeds)
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()
        assert not np.shares_memory(one, other)
    return list(first)
