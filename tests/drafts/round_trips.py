"""Random programs as programs of other libraries, and back: the same values and derivatives.

    python tests/drafts/round_trips.py WAY [COUNT] [FIRST]

writes as many random programs (300), from that seed on, as models of ONNX, source for JAX or
torch, or programs of StableHLO; WAY is "onnx", "jax", "torch" or "stablehlo". Where the library is
run it gives what the interpreter does, and so does the graph that is imported again. The products
of the transposed Jacobians with vectors are equal, too. Results that the library has no words for
are left out, and counted by reason.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from exported import derivative
from program_checks import unsigned
from program_tolerance import roughly_differs
from random_programs import Program, random_program

import primgraph as pg
from primgraph.base.providers import late
from primgraph.codegen.targets.libraries.kernel import ArrayKernel
from primgraph.errors import CompileError, UnsupportedError
from primgraph.interop.lacking import nested_equations
from primgraph.interop.onnx.export.saving import onnx_model
from primgraph.interop.stablehlo import stablehlo_text
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.slices import drop_formal
from primgraph.transforms import clean_up, lower
from primgraph.transforms.loops.implicit_solution import expand_solutions

if TYPE_CHECKING:
    import jax
    import stablehlo_runs
else:
    jax, stablehlo_runs = late("jax"), late("stablehlo_runs")

Arrays = Sequence[Any]
Run = Callable[[Graph, Any, Arrays], "Arrays | None"]


@dataclass(frozen=True)
class Way:
    """A library: how graphs are written for it, run there, and read again.

    `runs` return None for graphs that they cannot run, or not precisely, and so does `read`, if
    any, for graphs that it cannot read. `stops` says whether the
    library has a word that stops derivatives. `ulps` are the errors of its functions, in units of
    the last place.
    """

    write: Callable[[Graph], Any]
    runs: dict[str, Run]
    read: Callable[[Graph, Any], Graph | None] | None
    stops: bool
    ulps: float = 64.0


# ONNX.


def _evaluate(graph: Graph, model: Any, feeds: Arrays) -> Arrays | None:
    """The results of ONNX's reference evaluator, whose `Erf` has eight digits.

    Its BLAS may lose NaNs times zero, and it joins the rows that a `Loop` collects by `np.vstack`.
    """
    collects = any(
        eqn.op.name == "while_loop"
        and eqn.kwargs["limit"] is None
        and len(eqn.kwargs["body"].outputs) > len(eqn.inputs) - eqn.kwargs["consts"]
        for eqn in nested_equations(graph)
    )
    if collects:
        return None
    names = {op.name for op in graph.ops}
    expected = interpret(graph, *feeds)
    finite = all(np.isfinite(x).all() for x in expected if x.dtype.kind == "f")
    if names & {"erf", "erfc"} or not (finite or "matmul" not in names):
        return None
    evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator(model)
    found: list[Any] = evaluator.run(None, _by_name(model, feeds))
    return found


def _run_by_onnxruntime(graph: Graph, model: Any, feeds: Arrays) -> Arrays | None:
    """None where it is missing, or lacks an operator or a dtype; it widens float16."""
    values = [*graph.inputs, *(v for eqn in graph.body for v in eqn.outputs)]
    if not all(v.type.size and v.type.dtype != np.float16 for v in values):
        return None
    try:
        ort = importlib.import_module("onnxruntime")
    except ImportError:
        return None
    ort.set_default_logger_severity(4)
    try:
        session = ort.InferenceSession(model.SerializeToString())
        found: list[Any] = session.run(None, _by_name(model, feeds))
    except Exception as error:
        # NumPy's integers divided by zero are zero, the runtime's are an error.
        if any(x in str(error) for x in ("NOT_IMPLEMENTED", "is not supported", "by zero")):
            return None
        raise
    return found


def _read_from_onnx(graph: Graph, model: Any) -> Graph:
    function = pg.interop.from_onnx(model)
    return pg.trace(function, *function.specs)


def _by_name(model: Any, feeds: Arrays) -> dict[str, Any]:
    return dict(zip([x.name for x in model.graph.input], feeds, strict=True))


# JAX.


def _run_by_jax(graph: Graph, kernel: Any, feeds: Arrays) -> Arrays:
    with jax.enable_x64(True):
        found = kernel(*feeds)
        return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]


def _read_from_jax(graph: Graph, kernel: Any) -> Graph:
    with jax.enable_x64(True):
        read: Graph = pg.interop.from_jax(kernel.function, *graph.input_types).graph
    return read


def _run_by_xla(graph: Graph, text: str, feeds: Arrays) -> Arrays:
    found: Arrays = stablehlo_runs.run_text(text, feeds, interpret(graph, *feeds))
    return found


# torch.


def _run_by_torch(graph: Graph, kernel: Any, feeds: Arrays) -> Arrays:
    found = kernel(*feeds)
    return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]


def _read_from_torch(graph: Graph, kernel: Any) -> Graph | None:
    """None for branches and lengths that depend on numbers, which torch does not export."""
    for eqn in nested_equations(graph):
        if eqn.op.name in ("cond", "while_loop") or eqn.kwargs.get("counted"):
            return None
    specs = [pg.spec(t.shape, t.dtype.name) for t in graph.input_types]
    return pg.trace(pg.interop.from_torch(kernel.function, *specs), *specs)


WAYS = {
    "onnx": Way(
        onnx_model,
        {"reference evaluator": _evaluate, "onnxruntime": _run_by_onnxruntime},
        _read_from_onnx,
        stops=False,
    ),
    "jax": Way(
        lambda graph: ArrayKernel(graph, "jax"),
        {"JAX": _run_by_jax},
        _read_from_jax,
        stops=True,
    ),
    "torch": Way(
        lambda graph: ArrayKernel(graph, "torch"),
        {"torch": _run_by_torch},
        _read_from_torch,
        stops=True,
    ),
    "stablehlo": Way(
        stablehlo_text,
        {"XLA": _run_by_xla},
        None,
        stops=True,
    ),
}


def writable(way: Way, graph: Graph, left: Counter[str]) -> Graph | None:
    """The graph with those outputs that the library has words for; None where there is none."""
    kept = []
    for v in graph.outputs:
        try:
            way.write(drop_formal(clean_up(graph.with_outputs([v]))))
        except (UnsupportedError, CompileError) as error:
            left[str(error).splitlines()[0].rpartition("lacks: ")[2][:60]] += 1
        else:
            kept.append(v)
    return drop_formal(clean_up(graph.with_outputs(kept))) if kept else None


def agree(way: Way, what: str, graph: Graph, feeds: Any, expected: Any, found: Any) -> None:
    """Raise AssertionError unless results are equal up to rounding."""
    found = [np.asarray(x) for x in found]
    for wanted, given in zip(expected, found, strict=True):
        assert given.dtype == wanted.dtype, (what, given.dtype, wanted.dtype)
        assert given.shape == wanted.shape, (what, given.shape, wanted.shape)
    fault = roughly_differs(graph, feeds, unsigned(expected), unsigned(found), way.ulps)
    assert not fault, f"{what}: {fault}"


def check(way: Way, program: Program, left: Counter[str]) -> int:
    """Check a program and its reverse mode; return how many graphs there were."""
    whole, count = drop_formal(clean_up(expand_solutions(lower(program.graph)))), 0
    for number, (graph, feeds) in enumerate(_with_derivative(whole, program.feeds, program)):
        kept = writable(way, graph, left)
        if kept is None:
            continue
        count += 1
        written, expected = way.write(kept), interpret(kept, *feeds)
        for name, run in way.runs.items():
            found = run(kept, written, feeds)
            if found is not None:
                agree(way, name, kept, feeds, expected, found)
        read = None if way.read is None else way.read(kept, written)
        if read is None:
            continue
        back = drop_formal(clean_up(lower(read)))
        agree(way, "imported graph", kept, feeds, expected, interpret(back, *feeds))
        stops = any(op.name == "stop_gradient" for op in kept.ops) and not way.stops
        if number == 0 and not stops:
            pairs = (_with_derivative(g, feeds, program) for g in (kept, back))
            for (slope, more), (again, _) in [*zip(*pairs, strict=True)][1:]:
                agree(
                    way, "derivative", slope, more, *(interpret(g, *more) for g in (slope, again))
                )
    return count


def _with_derivative(
    graph: Graph, feeds: Arrays, program: Program
) -> Iterator[tuple[Graph, Arrays]]:
    """A graph, and its reverse mode where the program is smooth, with arrays for the inputs."""
    yield graph, feeds
    slope = derivative(graph) if program.smooth else None
    if slope is not None:
        rng, types = np.random.default_rng(program.seed), slope.input_types[len(feeds) :]
        more = [np.asarray(rng.normal(size=t.shape)).astype(t.dtype) for t in types]
        yield slope, [*feeds, *more]


def main() -> None:
    """Check programs, and print what failed and what was left out."""
    way, *numbers = sys.argv[1:]
    count, first = [int(a) for a in numbers] + [300, 0][len(numbers) :]
    left: Counter[str] = Counter()
    faults, made = Counter[str](), 0
    for seed in range(first, first + count):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                made += check(WAYS[way], random_program(seed), left)
            except Exception as error:
                print(seed, type(error).__name__, str(error)[:300].replace("\n", " "))
                faults[type(error).__name__] += 1
    print(f"{made} graphs of {count} programs; faults {dict(faults)}; outputs left out:")
    for what, times in left.most_common(30):
        print(f"  {times:5} {what}")


if __name__ == "__main__":
    main()
