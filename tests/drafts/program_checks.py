"""What holds for every random program, whatever it computes."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from complex_step import widen_floats
from plan_checks import NEVER, SHARED, results_of_calls, results_of_text
from program_derivatives import check_derivatives, demand
from program_draft import Choices
from program_files import check_files
from program_forms import check_forms
from program_replayed import check_replayed
from program_sparsity import check_sparse_values, check_sparsity
from program_tensors import check_tensors
from program_tolerance import differs, has_solutions, roughly_differs, rounding_of
from program_unrolled import check_unrolled
from random_programs import Program
from thread_checks import threads_at_work

from primgraph.codegen import compile_graph
from primgraph.inspect.trips import is_walked, run_bodies
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.interpret import interpret
from primgraph.ir.text import parse, to_text
from primgraph.ir.verify import verify
from primgraph.primitives.elementwise import arctan2
from primgraph.program.compile import optimize_graph
from primgraph.transforms import (
    batch,
    dead_code,
    fold_constants,
    linearize,
    lower,
    simplify,
    transpose,
)
from primgraph.transforms.dataflow.batch_independence import find_mixing
from primgraph.transforms.loops.implicit_solution import expand_solutions
from primgraph.transforms.optimize.clean_up import clean_up

Arrays = Sequence[np.ndarray]

STYLES = ("planned", "readable")
LEVELS = ("exact", "signs", "finite", "fast")


def clean_up_at_last(graph: Graph) -> Graph:
    return clean_up(graph, last=True)


def stabilised(graph: Graph, level: str) -> Graph:
    return clean_up(graph, level, last=True, stable=True)


_PASSES = (simplify, fold_constants, dead_code, clean_up, clean_up_at_last)

# How often each of the more expensive checks is made.
_KERNEL_OF_DERIVATIVE = 0.3
_BATCH = 0.3
_FILES = 0.2
_FORMS = 0.1
_TENSORS = 0.1
_REPLAYED = 0.3
_SPARSITY = 0.7
_SPARSE = 0.1

# By how many units in the last place every equation may be off at level "fast".
_FAST_ULPS = 8.0


def check(program: Program, seen: Counter[str] | None = None) -> None:
    """Make all checks of this file; `seen` counts what was compared and what was left out."""
    seen = Counter() if seen is None else seen
    rng = np.random.default_rng((program.seed, 1))
    graph = program.graph
    check_round_trips(graph)
    files = np.random.default_rng((program.seed, 5))
    if files.random() < _FILES:
        check_files(graph, files)
        seen["files"] += 1
    if files.random() < _FORMS:
        check_forms(graph, program.feeds, files, seen)
    if files.random() < _TENSORS:
        check_tensors(program, seen)
    check_passes(program)
    check_levels(program, seen)
    lowered = lower(graph)
    solves = has_solutions(lowered)
    for style in STYLES:
        check_kernel(lowered, style, program.feeds, program.others, rng)
    if rng.random() < 0.5:
        check_kernel(clean_up(lowered), "planned", program.feeds, program.others, rng)
    check_modes(program, seen)
    if lowered.has_bodies:
        seen["programs with branches or loops"] += 1
        draw = np.random.default_rng((program.seed, 23))
        # The derivative of a solution is not that of the steps that find it.
        if not solves:
            check_unrolled(lowered, program.feeds, program.others, program.smooth, draw, seen)
        if draw.random() < _REPLAYED and not solves:
            check_replayed(lowered, program.feeds, program.smooth, draw, seen)
    if np.random.default_rng((program.seed, 31)).random() < _SPARSITY:
        check_sparsity(program, seen)
        if np.random.default_rng((program.seed, 37)).random() < _SPARSE:
            check_sparse_values(program, seen)
    if rng.random() < _BATCH:
        check_batch(lowered, program.feeds, program.others, rng)
        if not solves:
            check_samples(lowered, program, rng, seen)
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    outputs = [v for v in lowered.outputs if v.type.is_float]
    if not wrt or not outputs:
        seen["programs without derivatives"] += 1
        return
    if rng.random() < _KERNEL_OF_DERIVATIVE:
        check_kernels_of_derivatives(lowered, wrt, program, rng)
    if program.smooth:
        needed = dead_code(lowered.with_outputs(outputs))
        check_derivatives(widen_floats(needed), wrt, program.feeds, rng, seen)
    else:
        seen["special programs"] += 1


def demand_equal(what: str, graph: Graph, feeds: Arrays, expected: Arrays, found: Arrays) -> None:
    """`found` are the results `expected` of `graph`, up to what the table of ULPs allows."""
    fault = differs(graph, feeds, expected, found)
    demand(not fault, f"{what}: {fault}")


def unsigned(arrays: Arrays) -> list[np.ndarray]:
    """`arrays` with positive zeros only, as derivatives may have either."""
    return [np.asarray(x + 0.0, x.dtype) if x.dtype.kind == "f" else x for x in arrays]


def check_kernel_of_slopes(
    what: str, graph: Graph, feeds: Arrays, expected: Arrays, draw: Choices
) -> None:
    """A kernel of what has derivatives in it gives `expected`, up to the sign of zeros."""
    style = draw.choose(STYLES)
    kernel = compile_graph(clean_up(expand_solutions(graph), last=True), style=style)
    demand_equal(f"{style} kernel of {what}", graph, feeds, unsigned(expected),
                 unsigned(kernel.flat(*feeds)))  # fmt: skip


def check_round_trips(graph: Graph) -> None:
    """Text and pickle give back an equal graph."""
    verify(graph)
    text = to_text(graph)
    again = parse(text, graph.constants)
    demand(again == graph, "the text does not parse to an equal graph")
    demand(to_text(again) == text, "what was parsed prints differently")
    demand(pickle.loads(pickle.dumps(graph)) == graph, "pickle gives another graph")


def check_passes(program: Program) -> None:
    """Every clean-up pass keeps every bit, and changes nothing the second time."""
    graph, feeds = program.graph, program.feeds
    expected = interpret(graph, *feeds)
    lowered = verify(lower(graph))
    demand(lower(lowered) == lowered, "lower is not idempotent")
    demand_equal("lower", graph, feeds, expected, interpret(lowered, *feeds))
    for transform in _PASSES:
        result = verify(transform(lowered))
        name = transform.__name__
        demand(result.output_types == graph.output_types, f"{name} changes types")
        demand_equal(name, lowered, feeds, expected, interpret(result, *feeds))
        again = transform(result)
        demand(again == result, f"{name} is not idempotent:\n{result}\nbecomes\n{again}")


def check_levels(program: Program, seen: Counter[str]) -> None:
    """Looser levels of mathematics keep their promises where nothing special occurs."""
    lowered = lower(program.graph)
    numbers = numbers_in(lowered, program.feeds)
    if not all(map(_is_ordinary, numbers)) or _asks_for_signs(lowered, program.feeds):
        seen["programs with special values"] += 1
        return
    expected = interpret(lowered, *program.feeds)
    for level, ulps in (("signs", 0.0), ("finite", 0.0), ("fast", _FAST_ULPS)):
        for transform in (simplify, clean_up, stabilised):
            result = verify(transform(lowered, level))
            found = interpret(result, *program.feeds)
            fault = roughly_differs(lowered, program.feeds, expected, found, ulps)
            demand(not fault, f"{transform.__name__} at level {level}: {fault}\n{result}")
        again = clean_up(result, level)
        demand(len(again) <= len(result), f"clean_up at level {level} makes a graph longer again")


def numbers_in(graph: Graph, feeds: Arrays) -> list[np.ndarray]:
    """All numbers that occur, those in branches and loops too."""
    found = [np.asarray(x) for x in feeds]
    _watch(graph, feeds, lambda eqn, given, results: found.extend(results))
    return found


def _asks_for_signs(graph: Graph, feeds: Arrays) -> bool:
    """Whether a zero's sign decides between numbers: in `arctan2`, beside zeros or negatives."""
    asked: list[bool] = []

    def look(eqn: Equation, given: Arrays, results: Arrays) -> None:
        if eqn.op is arctan2:
            asked.append(bool(np.any((given[0] == 0) & (given[1] <= 0))))

    _watch(graph, feeds, look)
    return any(asked)


def _watch(graph: Graph, feeds: Arrays, look: Callable[[Equation, Arrays, Arrays], None]) -> None:
    """Compute the graph, and `look` at each equation with what it takes and gives."""

    def run(body: Graph, arrays: Arrays) -> list[np.ndarray]:
        known = dict(zip(body.inputs, arrays, strict=True))
        for eqn in body.body:
            given = [known[v] for v in eqn.inputs]
            if is_walked(eqn):
                results = run_bodies(eqn, given, run)
            else:
                results = [np.asarray(x) for x in eqn.op.evaluate(given, eqn.kwargs)]
            look(eqn, given, results)
            known.update(zip(eqn.outputs, results, strict=True))
        return [known[v] for v in body.outputs]

    with np.errstate(all="ignore"):
        run(graph, [np.asarray(x) for x in feeds])


def _is_ordinary(x: np.ndarray) -> bool:
    """Whether there are neither NaN nor infinities nor denormals in `x`."""
    if x.dtype.kind != "f":
        return True
    size = np.abs(x[x != 0])
    return bool(np.all(np.isfinite(size)) and np.all(size >= np.finfo(x.dtype).smallest_normal))


# Kernels.


def layouts(feeds: Arrays, rng: np.random.Generator) -> Iterator[tuple[str, list[np.ndarray]]]:
    """The same numbers, laid out in memory in several ways; all read-only."""
    yield "contiguous", [np.array(x, order="C") for x in feeds]
    yield "Fortran", [np.array(x, order="F") for x in feeds]
    yield "sliced", [_sliced(x, rng) for x in feeds]


def _sliced(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A view with gaps, backwards along some axes, of a larger array."""
    steps = [int(s) for s in rng.choice([-2, -1, 1, 2, 3], x.ndim)]
    whole = np.zeros([max(n * abs(s), 1) for n, s in zip(x.shape, steps, strict=True)], x.dtype)
    view = whole[tuple(slice(None, None, s) for s in steps)]
    view = view[(*(slice(0, n) for n in x.shape), ...)]
    view[...] = x
    return view


def _bits(x: np.ndarray) -> bytes:
    """The bytes of `x`, where one NaN is like any other: NumPy's loops choose its sign."""
    if x.dtype.kind == "c":
        return _bits(x.real) + _bits(x.imag)
    return (np.where(np.isnan(x), np.nan, x) if x.dtype.kind == "f" else x).tobytes()


def check_kernel(
    graph: Graph, style: str, feeds: Arrays, others: Arrays, rng: np.random.Generator
) -> None:
    """A kernel computes what the interpreter does, and shares memory with nothing."""
    with rounding_of(style):
        _check_kernel(graph, style, feeds, others, rng)


def _check_kernel(
    graph: Graph, style: str, feeds: Arrays, others: Arrays, rng: np.random.Generator
) -> None:
    kernel = compile_graph(expand_solutions(graph), style=style)
    expected = interpret(graph, *feeds)
    kept: list[tuple[Arrays, list[bytes]]] = []
    for layout, arrays in layouts(feeds, rng):
        for array in arrays:
            array.setflags(write=False)
        before = [x.tobytes() for x in arrays]
        results = kernel(*arrays)
        what = f"{style} kernel, {layout} feeds"
        demand_equal(what, graph, feeds, expected, results)
        if kept:
            same = [*map(_bits, results)] == [*map(_bits, kept[0][0])]
            demand(same, f"{what}: other bits than for contiguous ones")
        demand(before == [x.tobytes() for x in arrays], f"{what}: a feed was written")
        for i, result in enumerate(results):
            rest = [*arrays, *results[:i], *(x for old, _ in kept for x in old)]
            shared = any(np.shares_memory(result, x) for x in rest)
            demand(not shared, f"{what}: output {i} shares memory")
            demand(result.flags.writeable, f"{what}: output {i} is read-only")
        kept.append((results, [x.tobytes() for x in results]))
    demand_equal(f"{style} kernel, other feeds", graph, others, interpret(graph, *others),
                 kernel(*others))  # fmt: skip
    for results, before in kept:
        demand([x.tobytes() for x in results] == before, f"{style} kernel changes old results")


def check_modes(program: Program, seen: Counter[str]) -> None:
    """All kernels compute what the interpreter does: of every level of mathematics and style, as
    a whole and in blocks of two or three rows, in one thread and in two, which change no bit.
    """
    graphs = dict.fromkeys(optimize_graph(program.graph, level) for level in LEVELS)
    for graph in graphs:
        kernels = {
            "readable": compile_graph(graph, style="readable"),
            "whole": compile_graph(graph, limits=NEVER),
            "in blocks": compile_graph(graph, limits=SHARED),
        }
        for feeds in (program.feeds, program.others):
            expected = interpret(graph, *feeds)
            for what, kernel in kernels.items():
                with threads_at_work(1):
                    found = kernel(*feeds)
                demand_equal(f"kernel, {what}", graph, feeds, expected, found)
            # The kernel may have scalar code, which is used instead of either.
            texts, called = (run(graph, feeds) for run in (results_of_text, results_of_calls))
            same = [*map(_bits, texts)] == [*map(_bits, called)]
            demand(same, "calls have other bits than the text of their plan")
        loops = len(kernel.plan.regions)
        seen["loops over blocks of two or three rows"] += loops
        if loops:
            with threads_at_work(2):
                again = kernel(*feeds)
            same = [x.tobytes() for x in found] == [x.tobytes() for x in again]
            demand(same, f"two threads change bits\n{kernel.planned_source}")


def check_kernels_of_derivatives(
    graph: Graph, wrt: Sequence[int], program: Program, rng: np.random.Generator
) -> None:
    """Kernels of forward and reverse mode, and the passes on these graphs."""
    jvp = linearize(graph, wrt)
    count = len(graph.inputs)
    linear = jvp.with_outputs(jvp.outputs[len(graph.outputs) :])
    vjp = transpose(linear, range(count, count + len(wrt)))
    for derivative in (jvp, vjp):
        more = [v.type for v in derivative.inputs[count:]]
        feeds, others = (
            [*x, *(np.asarray(rng.normal(size=t.shape)).astype(t.dtype) for t in more)]
            for x in (program.feeds, program.others)
        )
        cleaned = clean_up(derivative)
        expected = interpret(derivative, *feeds)
        found = interpret(cleaned, *feeds)
        demand_equal("clean_up of a derivative", derivative, feeds, unsigned(expected),
                     unsigned(found))  # fmt: skip
        check_round_trips(cleaned)
        style = STYLES[int(rng.random() < 0.3)]
        check_kernel(cleaned, style, feeds, others, rng)


# Batches.


def check_batch(graph: Graph, feeds: Arrays, others: Arrays, rng: np.random.Generator) -> None:
    """A batched program maps every sample as the program itself does."""
    size = int(rng.integers(1, 4))
    axes = [None if rng.random() < 0.3 else 0 for _ in feeds]
    sets = [feeds, others]
    samples = [
        [feeds[i] if axis is None else sets[k % 2][i] for i, axis in enumerate(axes)]
        for k in range(size)
    ]
    stacked = [
        feeds[i] if axis is None else np.stack([s[i] for s in samples])
        for i, axis in enumerate(axes)
    ]
    batched = verify(batch(graph, size, axes))
    results = interpret(batched, *stacked)
    for k, sample in enumerate(samples):
        parts = [np.asarray(x[k]) for x in results]
        demand_equal(f"sample {k} of a batch", graph, sample, interpret(graph, *sample), parts)


def check_samples(
    graph: Graph, program: Program, rng: np.random.Generator, seen: Counter[str]
) -> None:
    """Samples that a batch keeps apart are told to be, and no others are."""
    floats = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    ends = [v for v in graph.outputs if v.type.is_float]
    if not floats or not ends:
        return
    size = 3
    chosen = [0 if i in floats and rng.random() < 0.7 else None for i in range(len(graph.inputs))]
    chosen[floats[0]] = 0
    many = batch(graph.with_outputs(ends), size, chosen)
    starts = [v for v, axis in zip(many.inputs, chosen, strict=True) if axis == 0]
    for each in (many, clean_up(many)):
        fault = find_mixing(each, starts)
        demand(fault is None, f"samples of a batch mix in {fault}\n{each}")
    for extent in {v.shape[0] for v in ends if v.shape and v.shape[0] > 1}:
        places = [i for i in floats if graph.inputs[i].shape[:1] == (extent,)]
        if places:
            _check_apart(
                graph, places, [v for v in ends if v.shape[:1] == (extent,)], program, seen
            )


def _check_apart(
    graph: Graph, wrt: list[int], ends: list[Value], program: Program, seen: Counter[str]
) -> None:
    """If the structure keeps samples apart, no sample has a derivative by another one."""
    part = graph.with_outputs(ends)
    if find_mixing(part, [graph.inputs[i] for i in wrt]) is not None:
        seen["samples that may mix"] += 1
        return
    seen["samples apart"] += 1
    jvp = linearize(part, wrt)
    tangents = [np.zeros_like(program.feeds[i]) for i in wrt]
    for tangent in tangents:
        tangent[0] = 1
    found = interpret(jvp.with_outputs(jvp.outputs[len(ends) :]), *program.feeds, *tangents)
    for value in found:
        # Where derivatives are infinite, products with zeros are NaN.
        demand(not np.any(np.nan_to_num(value[1:])), f"sample 0 reaches others\n{part}")
