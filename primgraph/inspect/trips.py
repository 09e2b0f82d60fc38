"""Run branches and loops step by step, with any evaluator for their bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from primgraph.errors import MissingRuleError
from primgraph.ir.dims import TRIPS, is_open
from primgraph.ir.graph import Equation, Graph

Array: TypeAlias = "np.ndarray[Any, Any]"
# Evaluator: a body, and arrays for its inputs of any dtype, to arrays of its outputs.
Run: TypeAlias = Callable[[Graph, Sequence[Array]], list[Array]]


def is_walked(eqn: Equation) -> bool:
    """Return whether `eqn` has bodies that `run_bodies` can run."""
    return eqn.op.name in _WALKS


def run_bodies(eqn: Equation, arrays: Sequence[Array], run: Run) -> list[Array]:
    """Run an equation with bodies, each of which `run` evaluates once per step.

    Dtypes are those of the results of `run`. Raises `MissingRuleError` for an unknown op.
    """
    walk = _WALKS.get(eqn.op.name)
    if walk is None:
        raise MissingRuleError(f"{eqn.op.name} is not known to those who run bodies themselves")
    return walk(eqn, arrays, run)


def _branch(eqn: Equation, arrays: Sequence[Array], run: Run) -> list[Array]:
    index, *operands = arrays
    branches = eqn.bodies
    return run(branches[min(max(int(index), 0), len(branches) - 1)], operands)


def _checkpoint(eqn: Equation, arrays: Sequence[Array], run: Run) -> list[Array]:
    return run(eqn.bodies[0], arrays)


def _scan(eqn: Equation, arrays: Sequence[Array], run: Run) -> list[Array]:
    params = eqn.kwargs
    body, consts, carries, length = (params[k] for k in ("body", "consts", "carries", "length"))
    count = max(int(arrays[0]), 0) if params["counted"] else length
    if length is not TRIPS:
        count = min(count, length)
    given = list(arrays[params["counted"] :])
    fixed, state, stacks = (
        given[:consts],
        given[consts : consts + carries],
        given[consts + carries :],
    )
    rows: dict[int, list[Array]] = {}
    for k in reversed(range(count)) if params["reverse"] else range(count):
        found = run(body, [*fixed, *state, *(x[k] for x in stacks)])
        state, rows[k] = found[:carries], found[carries:]
    return [*state, *_stack_outputs(eqn, rows, carries)]


def _while(eqn: Equation, arrays: Sequence[Array], run: Run) -> list[Array]:
    params = eqn.kwargs
    test, body, consts, limit = (params[k] for k in ("test", "body", "consts", "limit"))
    fixed, state = list(arrays[:consts]), list(arrays[consts:])
    carries, rows = len(state), dict[int, list[Array]]()
    while (limit is None or len(rows) < limit) and bool(run(test, [*fixed, *state])[0]):
        found = run(body, [*fixed, *state])
        state, rows[len(rows)] = found[:carries], found[carries:]
    return [*state, np.array(len(rows)), *_stack_outputs(eqn, rows, carries + 1)]


def _stack_outputs(eqn: Equation, rows: dict[int, list[Array]], first: int) -> list[Array]:
    """Return the stacked outputs of `eqn` from output `first` on, with zeros for missing steps."""
    made = []
    for k, value in enumerate(eqn.outputs[first:]):
        dtype = np.result_type(*(row[k].dtype for row in rows.values())) if rows else value.dtype
        shape = (len(rows), *value.shape[1:]) if is_open(value.shape) else value.shape
        made.append(np.zeros(shape, dtype))
        for place, row in rows.items():
            made[-1][place] = row[k]
    return made


_WALKS: dict[str, Callable[[Equation, Sequence[Array], Run], list[Array]]] = {
    "checkpoint": _checkpoint,
    "cond": _branch,
    "scan": _scan,
    "while_loop": _while,
}
