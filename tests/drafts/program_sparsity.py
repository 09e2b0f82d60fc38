"""Patterns of random programs: never smaller than what derivatives have at given arrays."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np
from program_derivatives import demand
from random_programs import Program, random_program

from primgraph.derivatives.matrices.jacobian import Jacobian
from primgraph.derivatives.matrices.sparse import jacobian_plan
from primgraph.errors import MissingRuleError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.operators.variable import Variable
from primgraph.sparsity.pattern import Pattern
from primgraph.transforms.batch_graphs import batch
from primgraph.transforms.dataflow.sparsity import pattern_rows
from primgraph.transforms.linearize import linearize
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.edits import dead_code
from primgraph.transforms.transpose import transpose

# Of larger Jacobians no elements are compared.
_LARGEST = 6000


def check_sparsity(program: Program, seen: Counter[str], *, second: bool = False) -> None:
    """The pattern of the Jacobian has every element that is not zero at either set of feeds.

    With `second` also that of the gradient of the sum of all results.
    """
    lowered = lower(program.graph)
    wrt = [i for i, v in enumerate(lowered.inputs) if v.type.is_inexact]
    outputs = [v for v in lowered.outputs if v.type.is_inexact]
    if not wrt or not outputs:
        return
    graph = dead_code(lowered.with_outputs(outputs))
    _compare(graph, wrt, [program.feeds, program.others], seen)
    if second:
        _compare_gradient(graph, wrt, program, seen)


def check_sparse_values(program: Program, seen: Counter[str]) -> None:
    """The elements that products by colours tell are those of the dense Jacobian, in all modes."""
    lowered = lower(program.graph)
    outputs = [v for v in lowered.outputs if v.type.is_float]
    graph = dead_code(lowered.with_outputs(outputs))
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    size = sum(v.type.size for v in outputs) * sum(graph.inputs[i].type.size for i in wrt)
    if not 0 < size <= _LARGEST:
        return
    builder = Builder(graph.name)
    given = [builder.input(v.type, v.hint) for v in graph.inputs]
    with builder:
        ends = [Variable(builder, v) for v in builder.inline(graph, given)]
        starts = [Variable(builder, given[i]) for i in wrt]
        dense = _dense(ends, starts)
        plans = [jacobian_plan("sparse_jacobian", ends, starts, None, m) for m in (None, "reverse")]
        parts = [plan.values() for plan in plans]
    seen["sparse values"] += 1
    bound = np.sqrt(max(np.finfo(d).eps for d in _floats(graph)))
    pattern = plans[0].pattern
    whole = builder.part(given, [v.value for v in (*dense, *parts)])
    for feeds in (program.feeds, program.others):
        with np.errstate(all="ignore"):
            *both, first, second = interpret(whole, *feeds)
        # What cancels in one mode is rounded in the other: elements are those of either.
        truths = [t[pattern.rows, pattern.indices] for t in both]
        for elements in (first, second):
            apart = [_apart(elements, t, bound) for t in truths]
            wrong = np.logical_and.reduce(apart)
            demand(not wrong.any(), f"elements {np.flatnonzero(wrong)[:4]} differ: {elements}")


def _apart(elements: np.ndarray, truth: np.ndarray, bound: float) -> np.ndarray:
    """Which elements differ by more than rounding; what is not finite is not compared."""
    known = np.isfinite(truth)
    allowed = bound * (1 + np.abs(truth[known]).max(initial=0.0))
    with np.errstate(invalid="ignore"):
        return known & ~(np.abs(elements - truth) <= allowed)


def _dense(ends: list[Variable], starts: list[Variable]) -> list[Variable]:
    """The Jacobian as a whole, by each mode that there is."""
    found = []
    for mode in ("reverse", "forward"):
        matrix = Jacobian(ends, starts)
        if mode == "reverse" or matrix._matrix.operator.goes_forward:
            matrix._matrix.choose(mode)
            found.append(matrix.whole())
    return found


def _floats(graph: Graph) -> set[np.dtype]:
    """The dtypes of all floats in a graph and its bodies."""
    values = [*graph.inputs, *(v for e in graph.body for v in e.outputs)]
    found = {v.dtype for v in values if v.type.is_float}
    return found.union(*(_floats(b) for e in graph.body for b in e.bodies))


def _compare_gradient(
    graph: Graph, wrt: Sequence[int], program: Program, seen: Counter[str]
) -> None:
    count = len(graph.inputs)
    try:
        jvp = linearize(graph, wrt)
        linear = jvp.with_outputs(jvp.outputs[len(graph.outputs) :])
        vjp = dead_code(transpose(linear, range(count, count + len(wrt))))
    except MissingRuleError:
        return
    ones = [np.ones(v.shape, v.dtype) for v in vjp.inputs[count:]]
    _compare(vjp, wrt, [[*feeds, *ones] for feeds in (program.feeds, program.others)], seen)


def _compare(
    graph: Graph, wrt: Sequence[int], points: Sequence[list[np.ndarray]], seen: Counter[str]
) -> None:
    values = [graph.inputs[i] for i in wrt]
    width = sum(v.type.size for v in values)
    height = sum(v.type.size for v in graph.outputs)
    if not 0 < width * height <= _LARGEST:
        seen["sparsity: too large, or nothing"] += 1
        return
    rows = pattern_rows(graph, values)
    assert rows is not None
    mask = Pattern((height, width), rows.starts, rows.columns).to_dense()
    share = mask.mean()
    seen["sparsity: dense" if share == 1 else "sparsity: sparse"] += 1
    for feeds in points:
        nonzero = _nonzero(graph, wrt, values, width, feeds)
        missed = np.argwhere(nonzero & ~mask)
        demand(not len(missed), f"the pattern lacks {missed[:4].tolist()}:\n{mask.astype(int)}")


def _nonzero(
    graph: Graph, wrt: Sequence[int], values: Sequence[Value], width: int, feeds: list[np.ndarray]
) -> np.ndarray:
    """Which elements of the Jacobian are not zero there; those that are NaN count as zero."""
    jvp = linearize(graph, wrt)
    along = dead_code(jvp.with_outputs(jvp.outputs[len(graph.outputs) :]))
    count = len(graph.inputs)
    axes = [None if i < count else 0 for i in range(len(along.inputs))]
    unit = np.eye(width)
    parts, start = [], 0
    for v in values:
        part = unit[:, start : start + v.type.size].reshape(width, *v.shape)
        parts.append(part.astype(v.dtype))
        start += v.type.size
    with np.errstate(all="ignore"):
        found = interpret(batch(along, width, axes), *feeds, *parts)
    columns = np.concatenate([np.reshape(y, (width, -1)) for y in found], axis=1).T
    return (columns != 0) & ~np.isnan(columns)


def main() -> int:
    """Check the patterns of many programs and of their gradients, and say how many were sparse."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--values", action="store_true", help="of sparse Jacobians, too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seen: Counter[str] = Counter()
    failed = 0
    for seed in range(options.seed, options.seed + options.programs):
        program = random_program(seed)
        try:
            check_sparsity(program, seen, second=True)
            if options.values:
                check_sparse_values(program, seen)
        except Exception as error:
            failed += 1
            print(f"seed {seed} failed: {error}\n{program}", flush=True)
    print(f"{options.programs} programs from seed {options.seed}, {failed} failed: {dict(seen)}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
