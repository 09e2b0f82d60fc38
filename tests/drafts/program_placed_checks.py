"""What is made part by part is what the interpreter makes, wherever it comes from and goes to.

Feeds lie in memory in several ways, results are new, given, borrowed or in donated feeds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
from native_checks import together
from plan_checks import NEVER, SHARED, SMALL, poisoned_results
from program_checks import layouts, unsigned
from program_derivatives import demand
from program_draft import Choices
from program_placed import PlacedProgram
from program_tolerance import differs, rounding_of

from primgraph.codegen import compile_graph
from primgraph.codegen.ir.statements import Put
from primgraph.codegen.kernel import Kernel
from primgraph.ir.graph import Graph
from primgraph.ir.interpret import interpret
from primgraph.transforms import clean_up, linearize, lower, transpose
from primgraph.transforms.hoist import input_free

Arrays = Sequence[np.ndarray]

_LIMITS = {
    "usual": None,
    "whole": NEVER,
    "in blocks": replace(SMALL, rows=31),
    "in threads": replace(SHARED, rows=31),
}
_POISON = {"f": np.nan, "c": complex(np.nan, np.nan), "i": -77, "u": 77, "b": True}
_SLOPES = 0.3


def check_placed(program: PlacedProgram, seen: Counter[str]) -> None:
    draw = Choices(np.random.default_rng((program.seed, 47)))
    feeds, others = program.feeds(0), program.feeds(1)
    graphs = [program.graph]
    if program.dtype.kind == "f" and draw.chance(_SLOPES):
        graphs.append(_slopes(program.graph))
    for graph in graphs:
        more = [_like(draw, v.type) for v in graph.inputs[len(feeds) :]]
        graph = clean_up(graph) if draw.chance(0.7) else graph
        _check(graph, [*feeds, *more], [*others, *more], draw, seen)


def _check(graph: Graph, feeds: Arrays, others: Arrays, draw: Choices, seen: Counter[str]) -> None:
    name = draw.choose(list(_LIMITS))
    compiled: list[tuple[str, Callable[..., Kernel]]] = [
        (f"planned, {name}", lambda **k: compile_graph(graph, limits=_LIMITS[name], **k)),
        ("readable", lambda **k: compile_graph(graph, style="readable", **k)),
    ]
    judge = _Judge(graph)
    for what, kernel in compiled:
        check_calls(what, judge, kernel, feeds, others, draw)
    found = poisoned_results(graph, [np.array(x, order="C") for x in feeds], _LIMITS[name] or NEVER)
    judge("poisoned", feeds, interpret(graph, *feeds), found)
    plan = compile_graph(graph, limits=NEVER).plan
    seen["placed: parts made where they land"] += sum(isinstance(x, Put) for x in plan.flat())
    seen["placed"] += 1


def _like(draw: Choices, type: Any) -> np.ndarray:
    return draw.rng.normal(size=type.shape).astype(type.dtype)


def _slopes(graph: Graph) -> Graph:
    """Reverse mode by all inputs."""
    places = range(len(graph.inputs))
    lowered = lower(graph)
    jvp = linearize(lowered, places)
    count = len(graph.inputs)
    return transpose(jvp.with_outputs(jvp.outputs[len(graph.outputs) :]), range(count, 2 * count))


class _Judge:
    """Whether results are those of a graph; what has been found to be is not measured again."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known: set[tuple[bytes, ...]] = set()

    def __call__(self, what: str, feeds: Arrays, expected: Arrays, found: Arrays) -> None:
        bits = tuple([x.tobytes() for x in (*feeds, *found)])
        if bits not in self.known:
            fault = differs(self.graph, feeds, unsigned(expected), unsigned(found))
            demand(not fault, f"{what}: {fault}")
            self.known.add(bits)


def check_calls(
    what: str,
    judge: _Judge,
    kernel: Callable[..., Kernel],
    feeds: Arrays,
    others: Arrays,
    draw: Choices,
) -> None:
    """Calls with feeds of all layouts, and results in all places, some of them donated."""
    plain, donated = kernel(), donated_of(judge.graph, draw)
    _check_plain(what, judge, plain, feeds, others, draw)
    if donated:
        _check_donated(f"{what}, donated", judge, kernel(donated=donated), feeds, others, draw)


def donated_of(graph: Graph, draw: Choices) -> dict[int, int]:
    """Inputs of the type of outputs, for some of these; each once."""
    donated: dict[int, int] = {}
    for k in draw.order(len(graph.outputs)):
        fits = [
            i
            for i, v in enumerate(graph.inputs)
            if v.type == graph.outputs[k].type and i not in donated.values()
        ]
        if fits and draw.chance(0.7):
            donated[k] = draw.choose(fits)
    return donated


def _check_plain(
    what: str, judge: _Judge, kernel: Kernel, feeds: Arrays, others: Arrays, draw: Choices
) -> None:
    graph = judge.graph
    expected, after = interpret(graph, *feeds), interpret(graph, *others)
    for layout, arrays in layouts(feeds, draw.rng):
        for array in arrays:
            array.setflags(write=False)
        before = [x.tobytes() for x in arrays]
        judge(f"{what}, {layout}", feeds, expected, kernel(*arrays))
        out = given_for(graph, draw)
        found = kernel(*arrays, out=out)
        judge(f"{what}, {layout}, out=", feeds, expected, found)
        _demand_given(what, found, out)
        borrowed = kernel(*arrays, borrow=True)
        judge(f"{what}, {layout}, borrowed", feeds, expected, borrowed)
        again = kernel(*others, out=out, borrow=True)
        judge(f"{what}, {layout}, out= again", others, after, again)
        demand([x.tobytes() for x in arrays] == before, f"{what}, {layout}: a feed was written")
    results = kernel(*feeds)
    lent = kernel(*feeds, borrow=True)
    judge(f"{what}, borrowed again", feeds, expected, lent)
    # What was lent may come back as a feed.
    fits = [
        (i, lent[k])
        for i, v in enumerate(graph.inputs)
        for k, end in enumerate(graph.outputs)
        if end.type == v.type
    ]
    if fits:
        i, array = draw.choose(fits)
        given = [array if i == j else x for j, x in enumerate(feeds)]
        kept = [x.copy() for x in given]
        turned = kernel(*given, borrow=True)
        judge(f"{what}, lent as a feed", kept, interpret(graph, *kept), turned)
    judge(f"{what}, kept", feeds, expected, results)


def _check_donated(
    what: str, judge: _Judge, kernel: Kernel, feeds: Arrays, others: Arrays, draw: Choices
) -> None:
    graph, donated = judge.graph, kernel.donated
    for numbers in (feeds, others):
        expected = interpret(graph, *numbers)
        for layout, arrays in layouts(numbers, draw.rng):
            given = [
                np.array(numbers[j], order="C") if j in donated.values() else x
                for j, x in enumerate(arrays)
            ]
            out = given_for(graph, draw)
            for k in donated:
                out[k] = None
            found = kernel(*given, out=out) if draw.chance(0.5) else kernel(*given)
            judge(f"{what}, {layout}", numbers, expected, found)
            for k, j in donated.items():
                demand(found[k] is given[j], f"{what}: output {k} is not the donated array")


def given_for(graph: Graph, draw: Choices) -> list[np.ndarray | None]:
    """Arrays full of something for some outputs."""
    return [
        np.full(v.shape, _POISON[v.type.dtype.kind], v.type.dtype) if draw.chance(0.6) else None
        for v in graph.outputs
    ]


def _demand_given(what: str, found: Arrays, out: Sequence[np.ndarray | None]) -> None:
    for k, (one, other) in enumerate(zip(found, out, strict=True)):
        demand(other is None or one is other, f"{what}: output {k} is not the array given for it")


def check_placed_natively(seeds: Sequence[int]) -> None:
    """Programs of all these seeds, and slopes of some, in one file of C."""
    draw = Choices(np.random.default_rng((seeds[0], 53)))
    graphs, feeds, others = [], [], []
    for seed in seeds:
        program = PlacedProgram(seed)
        slopes = program.dtype.kind == "f" and draw.chance(_SLOPES)
        graph = clean_up(lower(_slopes(program.graph) if slopes else program.graph))
        count = len(program.graph.inputs)
        more = [_like(draw, v.type) for v in graph.inputs[count:]]
        graphs.append(graph)
        feeds += [*program.feeds(0), *more]
        others += [*program.feeds(1), *more]
    whole = together(graphs)
    # What depends on no input goes along with each call after the first.
    with mock.patch.dict(input_free.__globals__, {"_LEAST_PART": 0.0}):
        once = input_free(whole) if draw.chance(0.5) else ()
    with rounding_of("native"):
        check_calls(
            "native",
            _Judge(whole),
            lambda **options: compile_graph(whole, style="native", once=once, **options),
            feeds,
            others,
            draw,
        )
