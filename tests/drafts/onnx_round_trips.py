"""Random programs as models of ONNX, and back: the same values, and the same derivatives.

    python tests/drafts/onnx_round_trips.py [COUNT] [FIRST]

writes as many random programs (300), from that seed on, as models. ONNX's reference evaluator gives
what the interpreter does, and so do the graph that is imported from the model and, where it is
installed, onnxruntime. The products of the transposed Jacobians with vectors are equal, too.
Results that ONNX has no words for are left out, and counted.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from exported import derivative
from program_checks import unsigned
from program_tolerance import roughly_differs
from random_programs import Program, random_program

import primgraph as pg
from primgraph.errors import CompileError, UnsupportedError
from primgraph.interop.onnx.export.saving import onnx_model
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.slices import drop_formal
from primgraph.transforms import clean_up, lower

# Errors of functions of other libraries, in units of the last place.
ULPS = 64.0


def writable(graph: Graph, left: Counter[str]) -> Graph | None:
    """The graph with those outputs that ONNX has words for; None where there is none."""
    kept = []
    for v in graph.outputs:
        try:
            onnx_model(drop_formal(clean_up(graph.with_outputs([v]))))
        except (UnsupportedError, CompileError) as error:
            left[str(error).splitlines()[0].rpartition("lacks: ")[2][:60]] += 1
        else:
            kept.append(v)
    return drop_formal(clean_up(graph.with_outputs(kept))) if kept else None


def evaluated(model: Any, feeds: Sequence[Any]) -> list[Any]:
    """The results of ONNX's reference evaluator."""
    evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator(model)
    names = [x.name for x in model.graph.input]
    found: list[Any] = evaluator.run(None, dict(zip(names, feeds, strict=True)))
    return found


def run_by_runtime(model: Any, feeds: Sequence[Any]) -> list[Any] | None:
    """The results of onnxruntime; None where it is missing, or lacks an operator or a dtype."""
    try:
        ort = importlib.import_module("onnxruntime")
    except ImportError:
        return None
    ort.set_default_logger_severity(4)
    names = [x.name for x in model.graph.input]
    try:
        session = ort.InferenceSession(model.SerializeToString())
        found: list[Any] = session.run(None, dict(zip(names, feeds, strict=True)))
    except Exception as error:
        # NumPy's integers divided by zero are zero, the runtime's are an error.
        if any(x in str(error) for x in ("NOT_IMPLEMENTED", "is not supported", "by zero")):
            return None
        raise
    return found


def agree(what: str, graph: Graph, feeds: Any, expected: Any, found: Any) -> None:
    for wanted, given in zip(expected, found, strict=True):
        given = np.asarray(given)
        assert given.dtype == wanted.dtype, (what, given.dtype, wanted.dtype)
        assert given.shape == wanted.shape, (what, given.shape, wanted.shape)
    fault = roughly_differs(graph, feeds, unsigned(expected), unsigned(found), ULPS)
    assert not fault, f"{what}: {fault}"


def _is_exact(graph: Graph, expected: Sequence[Any]) -> bool:
    """Whether the evaluator is: its `Erf` has eight digits, and BLAS may lose NaNs times zero."""
    names = {op.name for op in graph.ops}
    finite = all(np.isfinite(x).all() for x in expected if x.dtype.kind == "f")
    return not names & {"erf", "erfc"} and (finite or "matmul" not in names)


def _is_usual(graph: Graph) -> bool:
    """Whether there are no float16, which the runtime widens, nor empty arrays."""
    values = [*graph.inputs, *(v for eqn in graph.body for v in eqn.outputs)]
    return all(v.type.size and v.type.dtype != np.float16 for v in values)


def check(program: Program, left: Counter[str], *, evaluate: bool = True) -> int:
    """Check a program and its derivative; return how many graphs there were."""
    graph = writable(drop_formal(clean_up(lower(program.graph))), left)
    if graph is None:
        return 0
    model = onnx_model(graph)
    expected = interpret(graph, *program.feeds)
    if evaluate and _is_exact(graph, expected):
        found = evaluated(model, program.feeds)
        agree("reference evaluator", graph, program.feeds, expected, found)
    run = run_by_runtime(model, program.feeds) if program.smooth and _is_usual(graph) else None
    if run is not None:
        agree("onnxruntime", graph, program.feeds, expected, run)
    function = pg.interop.from_onnx(model)
    back = drop_formal(clean_up(lower(pg.trace(function, *function.specs))))
    agree("imported graph", graph, program.feeds, expected, interpret(back, *program.feeds))
    # ONNX has no word that stops derivatives.
    stops = any(op.name == "stop_gradient" for op in graph.ops)
    slope = derivative(graph) if program.smooth and not stops else None
    if slope is None:
        return 1
    again = derivative(back)
    assert again is not None
    rng = np.random.default_rng(program.seed)
    more = [
        np.asarray(rng.normal(size=v.type.shape)).astype(v.type.dtype)
        for v in slope.inputs[len(graph.inputs) :]
    ]
    feeds = [*program.feeds, *more]
    agree("derivative", slope, feeds, interpret(slope, *feeds), interpret(again, *feeds))
    return 2


def main() -> None:
    count, first = [int(a) for a in sys.argv[1:]] + [300, 0][len(sys.argv) - 1 :]
    left: Counter[str] = Counter()
    faults, made = Counter[str](), 0
    for seed in range(first, first + count):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made += check(random_program(seed), left)
            except Exception as error:
                print(seed, type(error).__name__, str(error)[:300].replace("\n", " "))
                faults[type(error).__name__] += 1
    print(f"{made} graphs of {count} programs; faults {dict(faults)}; outputs left out:")
    for what, times in left.most_common(30):
        print(f"  {times:5} {what}")


if __name__ == "__main__":
    main()
