"""Random programs with extents that have names: at numbers for these they are those with numbers.

Every transform is made of the program with names first, and compared with that of the program at
sizes, for two sets of sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from complex_step import widen_floats
from program_checks import check_round_trips, demand_equal
from program_derivatives import demand
from program_draft import Choices
from program_files import check_files
from program_forms import check_forms
from program_tolerance import has_solutions, roughly_differs
from program_unrolled import pulled, pushed, unrolled
from random_programs import Program, random_draft

import primgraph as pg
from primgraph.errors import FeedError, UnknownSizeError
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.ir.sizes import Fitting
from primgraph.ir.verify import verify
from primgraph.transforms import (
    batch,
    clean_up,
    dead_code,
    fold_constants,
    instantiate,
    lower,
    raise_,
    simplify,
)

Arrays = Sequence[np.ndarray]

SIZES = {"N": 3, "M": 2}

_ULPS = 16.0
_FILES = 0.15
_FORMS = 0.15
_THIRD = 0.3
# How many programs are shown step by step.
_VIEWS = 0.15
_PASSES = (lower, dead_code, fold_constants, simplify, clean_up, raise_)


def named_program(seed: int) -> Program:
    return random_draft(seed, SIZES)[0]


def check_named(program: Program, seen: Counter[str] | None = None) -> None:
    """Make all checks of this file; `seen` counts what was compared."""
    seen = Counter() if seen is None else seen
    draw = Choices(np.random.default_rng((program.seed, 31)))
    graph = program.graph
    if not graph.sizes:
        seen["named: no sizes left"] += 1
        return
    check_round_trips(graph)
    if draw.chance(_FILES):
        check_files(graph, draw.rng)
    if draw.chance(_FORMS):
        check_forms(graph, program.feeds, draw.rng, seen)
    lowered = lower(graph)
    runs = [program.feeds, program.others]
    if _are_refused(graph, program.others):
        runs[1] = program.feeds
        seen["named: other sizes against an assumption"] += 1
    for transform in _PASSES:
        result = verify(transform(graph if transform is lower else lowered))
        check_round_trips(result)
        for feeds in runs:
            demand_equal(f"{transform.__name__} before sizes", _at(graph, feeds), feeds,
                         interpret(graph, *feeds), interpret(result, *feeds))  # fmt: skip
    _check_kernels(lowered, runs, draw)
    _check_batch(lowered, program.feeds, draw)
    _check_cost(lowered, program.feeds)
    if draw.chance(_VIEWS):
        _check_views(graph, seen)
    seen["named"] += 1
    seen["named: with branches or loops"] += lowered.has_bodies
    wrt = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
    ends = [v for v in lowered.outputs if v.type.is_float]
    if program.smooth and wrt and ends:
        _check_slopes(widen_floats(dead_code(lowered.with_outputs(ends))), wrt, runs, draw, seen)


def _check_views(graph: Graph, seen: Counter[str]) -> None:
    """The steps through the compiler, and the source for all sizes, are there to be read."""
    kernel = pg.compile(graph)
    for size in graph.sizes:
        demand(size in str(pg.steps(graph, derivative=False)), f"steps do not tell {size}")
    demand("def " in kernel.source, "there is no source for all sizes")
    demand("<svg" in kernel.to_svg(), "there is no picture")
    seen["named: steps and source"] += 1


def _are_refused(graph: Graph, feeds: Arrays) -> bool:
    """Whether their sizes are against what the program assumes, which all ways to run it say."""
    try:
        interpret(graph, *feeds)
    except FeedError as refusal:
        demand("assumed by" in str(refusal), f"refused: {refusal}")
        for style in ("planned", "readable"):
            with pytest.raises(FeedError, match="assumed by"):
                pg.compile(graph, style=style)(*feeds)
        return True
    return False


def _at(graph: Graph, feeds: Arrays) -> Graph:
    """The graph at the sizes of feeds."""
    if not graph.sizes:
        return graph
    names = [str(i) for i in range(len(graph.inputs))]
    fitting = Fitting(list(zip(names, graph.input_types, strict=True)), graph.sizes)
    shapes = [np.shape(x) for x in feeds]
    fitting.key(shapes)
    return instantiate(graph, fitting.sizes(shapes))


def _check_kernels(graph: Graph, runs: Sequence[Arrays], draw: Choices) -> None:
    """Of all sizes at once, and of each: the first runs of new sizes, and later ones."""
    cleaned = clean_up(graph, last=True)
    for made in (graph, cleaned):
        for style in ("planned", "readable"):
            kernel = pg.compile(made, style=style)
            for k in (0, 1, 0, 0, 1):
                what = f"{style} kernel of sizes, feeds {k}"
                demand_equal(what, _at(graph, runs[k]), runs[k], interpret(graph, *runs[k]),
                             kernel(*runs[k]))  # fmt: skip


def _check_batch(graph: Graph, feeds: Arrays, draw: Choices) -> None:
    """Of a number of samples, and of as many as there are."""
    axes = [0 if draw.chance(0.7) else None for _ in feeds]
    if 0 not in axes:
        return
    stacked = [x if a is None else np.stack([x, x]) for x, a in zip(feeds, axes, strict=True)]
    for size in (2, pg.dim("B_")):
        many = verify(batch(graph, size, axes))
        results = interpret(many, *stacked)
        for k in range(2):
            demand_equal(f"sample {k} of {size}", _at(graph, feeds), feeds,
                         interpret(graph, *feeds), [np.asarray(x[k]) for x in results])  # fmt: skip


def _check_cost(graph: Graph, feeds: Arrays) -> None:
    """The formula at numbers is the cost at numbers, or more where equations become equal there."""
    known = _at(graph, feeds)
    names = [str(i) for i in range(len(graph.inputs))]
    fitting = Fitting(list(zip(names, graph.input_types, strict=True)), graph.sizes)
    shapes = [np.shape(x) for x in feeds]
    fitting.key(shapes)
    sizes = fitting.sizes(shapes)
    formula, expected = pg.cost(graph).flops, pg.cost(known).flops
    found = formula.at(sizes) if isinstance(formula, pg.Dim) else formula
    same = _equations(known) == _equations(graph)
    told = f"flops are {formula} = {found}, not {expected}"
    demand(found == expected if same else found >= expected, told)


def _equations(graph: Graph) -> int:
    """How many there are, those of bodies included."""
    return sum(1 + sum(map(_equations, eqn.bodies)) for eqn in graph.body)


def _check_slopes(
    graph: Graph, wrt: Sequence[int], runs: Sequence[Arrays], draw: Choices, seen: Counter[str]
) -> None:
    """Derivatives of the program with names, beside those of what it does at sizes."""
    orders = ["f", "r", draw.choose(("ff", "fr", "rf", "rr"))]
    if draw.chance(_THIRD):
        orders.append("".join(draw.choose("fr") for _ in range(3)))
    for order in orders:
        derived, feeds = graph, runs[0]
        plain = _at(graph, feeds)
        if not has_solutions(graph):
            plain = unrolled(plain, [np.asarray(x) for x in feeds])
        try:
            for mode in order:
                take = pushed if mode == "f" else pulled
                derived, plain = take(derived, wrt), take(plain, wrt)
        except UnknownSizeError as error:
            demand("prod over" in str(error), f"{order} of sizes: {error}")
            seen["named: products of so many"] += 1
            return
        verify(derived)
        more = [draw.rng.normal(size=t.shape) for t in plain.input_types[len(feeds) :]]
        given = [*feeds, *more]
        with np.errstate(all="ignore"):
            expected, found = interpret(plain, *given), interpret(derived, *given)
        if not all(np.all(np.isfinite(x)) for x in expected):
            seen["named: slopes that are not finite"] += 1
            continue
        for what, results in (("interpreted", found), ("compiled", None)):
            if results is None:
                if not draw.chance(0.4):
                    continue
                style = draw.choose(("planned", "readable"))
                kernel = pg.compile(clean_up(derived, last=True), style=style)
                results = kernel(*given)
            fault = roughly_differs(plain, given, expected, results, _ULPS)
            demand(not fault, f"{order} of sizes, {what}: {fault}")
        seen[f"named, {order}"] += 1
