"""Compiled readable code; loaded only if somebody asks for it, or sizes are symbolic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from primgraph.codegen.compiled import Compiled, Job
from primgraph.codegen.ir.limits import Options, default_limits
from primgraph.codegen.ir.schedule import NONE, Schedule, schedule
from primgraph.codegen.load import load_module
from primgraph.codegen.targets.readable.containers import is_nested
from primgraph.codegen.targets.readable.function import readable
from primgraph.codegen.targets.readable.sizes import Sizes
from primgraph.codegen.targets.text.clocks import Clocks, with_clocks
from primgraph.codegen.targets.text.ordering import order_by_source
from primgraph.ir.frontend.containers import Form, leaves_of, unflatten_value
from primgraph.ir.graph import Graph

Array: TypeAlias = "np.ndarray[Any, Any]"


def compile_readable(
    graph: Graph,
    options: Options,
    clocks: list[Clocks] | None = None,
    *,
    native: bool = False,
) -> Compiled:
    """Compile readable code, which shows the user's names and source lines.

    With `native` it also has C code, for a graph with symbolic sizes.
    """
    scalar = Job(graph, options, default_limits()).native() if native else None
    if scalar is not None:
        code = Compiled(graph, lambda code: _write_readable(code, options, clocks))
        code.scalar, code.is_native = scalar, True
        return code
    code = Compiled(graph)
    _write_readable(code, options, clocks)
    return code


def _write_readable(code: Compiled, options: Options, clocks: list[Clocks] | None) -> None:
    graph = code.graph
    sizes = Sizes(graph) if graph.sizes else None
    steps = order_by_source(schedule(graph, NONE if sizes is None else sizes.variables))
    module = readable(steps, form=graph.form, titles=graph.titles, sizes=sizes)
    if clocks is not None:
        clocks.append(with_clocks(module, len(steps.steps)))
    equations = [s.eqn for s in steps.steps]
    code.set_text(equations, load_module(module), users=bool(module.users))
    code.run = _arrays_of(code, steps, options)


def _call_in_form(function: Callable[..., Any], form: Form, arrays: Sequence[Array]) -> list[Any]:
    """Call a function that takes and returns containers; return its leaves as a list."""
    leaves = iter(arrays)
    given = [unflatten_value(tree, leaves) for _, tree in form.arguments]
    return leaves_of(form.results, function(*given), "result")


def _arrays_of(code: Compiled, plan: Schedule, options: Options) -> Callable[..., Any]:
    """Wrap a readable function: convert its results to arrays that share no memory."""
    function, form = code.run, code.graph.form
    nested = is_nested(form)
    form = None if form is None else form.plain_form
    types = [plan.types[v] for v in plan.outputs]
    constants = {id(v) for v in code.loaded.namespace.values()}

    def run(workspace: None, arrays: list[Array]) -> Any:
        if form is not None and nested:
            found: Any = _call_in_form(function, form, arrays)
        else:
            found = function(*arrays)
            found = found if len(types) != 1 else (found,)
        taken = constants.union(map(id, arrays))
        made = []
        for result, type in zip(found, types, strict=True):
            array = np.asarray(result, type.dtype, order="C")
            shared = id(array) in taken or array.base is not None or not array.flags.writeable
            taken.add(id(array))
            made.append(array.copy() if shared else array)
        for k, j in options.donated:
            arrays[j][...] = made[k]
            made[k] = arrays[j]
        return made[0] if options.alone else made

    return run
