"""Profiles: time of a kernel by equation and by line of the user's code."""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.base.user_lines import Source
from primgraph.codegen import Kernel
from primgraph.codegen.runtime.feeds import as_feed
from primgraph.codegen.runtime.threads import single_threaded
from primgraph.errors import ArgumentError
from primgraph.inspect.cost import Work, kernel_of, line_of, refuse_fetches, works
from primgraph.ir.frontend.html_tables import ROWS, Row, Sheet, Tabled
from primgraph.ir.frontend.signature import checked_late, checked_methods
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.sizes import fit_to_arrays
from primgraph.program.compile import compile_kernel
from primgraph.program.program import Program
from primgraph.program.run import Executor, Fetch
from primgraph.program.scope import Scope
from primgraph.tables import percent, place_of, quantity, table
from primgraph.view.formats.page import page
from primgraph.view.formats.svg import to_svg
from primgraph.view.picture import picture_of
from primgraph.view.steps import single_step

_SHOWN = 15
_HEAD = ("time", "share", "calls", "moved", "flops", "GB/s", "Gflop/s")
_SHARE = _HEAD.index("share")
# Total seconds of the repeats if their number is not given.
_ENOUGH = 1.0
_FEWEST, _MOST = 5, 1000


class Spent(NamedTuple):
    """Cost of a step in one kernel call: runs, seconds, and work.

    Steps of a loop over blocks run once per block.
    """

    calls: int
    seconds: float
    work: Work

    def add_spent(self, other: Spent) -> Spent:
        return Spent(self.calls + other.calls, self.seconds + other.seconds, self.work + other.work)

    def data(self, total: float) -> dict[str, Any]:
        """Return the figures by name; `share` is the fraction of `total` seconds."""
        return {
            "calls": self.calls,
            "seconds": self.seconds,
            "share": _ratio(self.seconds, total),
            **self.work.data(),
            "flops_per_second": _ratio(self.work.flops, self.seconds),
            "bytes_per_second": _ratio(self.work.bytes_moved, self.seconds),
        }


_NOTHING = Spent(0, 0.0, Work())


class Range(NamedTuple):
    """Minimum and maximum of an array, and the number of NaNs.

    NaNs are ignored; both are NaN if there is no other element.
    """

    least: float
    greatest: float
    nans: int


@final
@checked_methods("__init__")
@dataclass(frozen=True, slots=True, repr=False)
class Profile(Tabled):
    """Times of one call; it prints as a table, by lines of the user's code.

    `seconds` is the time of a call of `kernel` without instrumentation: the mean of the faster half
    of `repeats` calls. `style` is the code that ran: "planned", "readable" or "scalar". `parts` has
    the cost of each equation of `graph`, in order. It is zero for equations without code, such as
    views, and for those inlined into a longer expression, which counts for the equation that ends
    it. `around` is the time of lines that belong to no equation, such as unpacking feeds, loop
    headers and returning results. `explained` is the fraction of `seconds` that all these add up
    to; the rest is call overhead and checks of the feeds. `call_bytes` is the measured peak
    allocation of a call, besides memory that the kernel keeps: results that it allocates, and
    NumPy's temporaries.

    `ranges`, if requested, are those of the first results of the equations.

    >>> kernel = pg.compile(pg.trace(lambda x: pg.sum(pg.exp(x)), pg.spec((1000,))))
    >>> profile = pg.profile(kernel, [np.ones(1000)])
    >>> len(profile.parts), profile.seconds > 0
    (2, True)
    """

    kernel: Kernel
    style: str
    seconds: float
    repeats: int
    parts: tuple[Spent, ...]
    around: float
    ranges: tuple[Range, ...] | None
    call_bytes: int

    @property
    def graph(self) -> Graph:
        """Graph that the kernel was compiled from, to which times and ranges belong."""
        return self.kernel.graph

    @property
    def times(self) -> list[float]:
        """Seconds for each equation of the graph, in order."""
        return [part.seconds for part in self.parts]

    @property
    def shares(self) -> dict[Equation, float]:
        """Fraction of the measured time of each equation, from 0 to 1."""
        pairs = zip(self.graph.body, self.parts, strict=True)
        return {eqn: _ratio(part.seconds, self.seconds) for eqn, part in pairs}

    @property
    def explained(self) -> float:
        """Fraction of a call's time that its lines add up to."""
        return _ratio(sum(self.times) + self.around, self.seconds)

    def by_line(self) -> dict[Source | None, Spent]:
        """Return the cost of each line of the user's code, with derivatives of that line."""
        return _sum_by_key(zip(map(line_of, self.graph.body), self.parts, strict=True))

    def by_op(self) -> dict[str, Spent]:
        """Return the cost of each primitive, by name."""
        names = (eqn.op.name for eqn in self.graph.body)
        return _sum_by_key(zip(names, self.parts, strict=True))

    def table(self, by: str = "line", top: int = _SHOWN) -> str:
        """Return a table of the `top` most expensive entries, `by` "line", "equation" or "op".

        The others are added up. Raises `ArgumentError` for another `by`.
        """
        return "\n".join(table((*_HEAD, by), [row.cells for row in self._rows(by, top)]))

    def _sheet(self) -> Sheet:
        rows = self._rows("line", ROWS - 2)
        kinds = "n" * len(_HEAD) + "c"
        return Sheet(self.headline, kinds, (*_HEAD, "line"), rows, len(rows), bar=_SHARE)

    def _rows(self, by: str, top: int) -> list[Row]:
        match by:
            case "line":
                named = [(place_of(s), spent) for s, spent in self.by_line().items()]
            case "op":
                named = list(self.by_op().items())
            case "equation":
                pairs = zip(self.graph.body, self.parts, strict=True)
                named = [
                    (f"{i}: {_describe_equation(e)}", spent) for i, (e, spent) in enumerate(pairs)
                ]
            case _:
                raise ArgumentError(f"tables are by line, equation or op, not by {by!r}")
        order = sorted((n for n in named if n[1].calls), key=lambda n: -n[1].seconds)
        rows = [self._row(text, spent) for text, spent in order[:top]]
        if len(order) > top:
            rest = _sum_by_key(("", spent) for _, spent in order[top:])[""]
            rows.append(self._row(f"({len(order) - top} more)", rest))
        rows.append(self._row("(around the equations)", Spent(1, self.around, Work())))
        return rows

    def _row(self, text: str, spent: Spent) -> Row:
        moved, flops = spent.work.bytes_moved, spent.work.flops
        cells = (
            quantity(spent.seconds, "s"),
            percent(_ratio(spent.seconds, self.seconds)),
            str(spent.calls),
            quantity(moved, "B"),
            quantity(flops, ""),
            f"{_ratio(moved, spent.seconds) / 1e9:.2f}",
            f"{_ratio(flops, spent.seconds) / 1e9:.2f}",
            text,
        )
        return Row(cells, share=_ratio(spent.seconds, self.seconds))

    def data(self) -> dict[str, Any]:
        """Return all figures as dictionaries, lists, strings and numbers, for JSON."""
        lines = [
            {
                "file": s.file if s else None,
                "line": s.line if s else None,
                **spent.data(self.seconds),
            }
            for s, spent in self.by_line().items()
        ]
        equations = [
            {"number": i, "op": eqn.op.name, "source": str(eqn.source or "")}
            | spent.data(self.seconds)
            for i, (eqn, spent) in enumerate(zip(self.graph.body, self.parts, strict=True))
        ]
        for entry, found in zip(equations, self.ranges or (), strict=False):
            limits = [None if x != x or x in (np.inf, -np.inf) else x for x in found[:2]]
            entry["range"] = {"least": limits[0], "greatest": limits[1], "nans": found.nans}
        return {
            "name": self.graph.name,
            "style": self.style,
            "repeats": self.repeats,
            "seconds": self.seconds,
            "around": self.around,
            "call_bytes": self.call_bytes,
            "explained": self.explained,
            "by_line": lines,
            "equations": equations,
        }

    def to_json(self) -> str:
        """Return the data as JSON text; infinities in ranges, which JSON lacks, are null."""
        return json.dumps(self.data(), indent=2)

    def to_html(self) -> str:
        """Return an HTML page of the graph, with darker boxes for slower equations.

        Its cards show the time of each equation, and its range if requested.
        """
        return page([single_step(self.graph, self.times, self.ranges)])

    def to_svg(self, *, limit: int = 60) -> str:
        """Return an SVG picture of the graph with the fraction of the time in each box.

        It is folded if it has more boxes than `limit`.
        """
        picture = picture_of(self.graph, times=self.times, ranges=self.ranges)
        return to_svg(picture, limit=limit)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write page, picture or figures to a file with the extension .html, .svg or .json.

        Raises `ArgumentError` for other extensions.
        """
        match Path(path).suffix.lower():
            case ".html":
                text = self.to_html()
            case ".svg":
                text = self.to_svg()
            case ".json":
                text = self.to_json() + "\n"
            case other:
                raise ArgumentError(f"profiles are saved as .html, .svg or .json, not as {other!r}")
        Path(path).write_text(text, encoding="utf-8")

    @property
    def headline(self) -> str:
        """Summary: time of a call, style, explained fraction, and memory."""
        return (
            f"{self.graph.name}: {quantity(self.seconds, 's')} a call of the {self.style} code, "
            f"{percent(self.explained)} of it in the lines below; it allocates "
            f"{quantity(self.call_bytes, 'B')} at most"
        )

    def _title(self) -> str:
        return self.headline

    def __str__(self) -> str:
        return f"{self.headline}\n{self.table()}"


def _kernel_and_feed(
    target: Graph | Program | Kernel,
    feed: Mapping[str, Any] | Sequence[Any],
    fetch_list: Sequence[Fetch] | None,
) -> tuple[Kernel, Mapping[str, Any] | Sequence[Any]]:
    """Return the kernel to be run, and its arguments."""
    if isinstance(target, Graph):
        refuse_fetches(target, fetch_list)
        given = target.in_order((), feed) if isinstance(feed, Mapping) else feed
        return compile_kernel(fit_to_arrays(target, given) if target.sizes else target), feed
    if isinstance(target, Program):
        executor, named = _executor(target), _require_mapping(feed)
        kernel = kernel_of(target, fetch_list, executor.sizes(target, named, fetch_list))
        return kernel, executor.arguments(target, named, fetch_list)
    return kernel_of(target, fetch_list), feed


@checked_late
def profile(
    target: Graph | Program | Kernel,
    feed: Mapping[str, Any] | Sequence[Any],
    fetch_list: Sequence[Fetch] | None = None,
    *,
    repeats: int | None = None,
    ranges: bool = False,
) -> Profile:
    """Run `target` repeatedly, and measure the time of each step.

    A graph is compiled; a program stands for the kernel of `fetch_list`. `feed` has the inputs by
    name, or in order for a graph or kernel. Copies are run: states of a program and donated inputs
    do not change. Calls with a clock around each step alternate with calls without, `repeats` of
    each; about a second by default. The cost of the clock is subtracted, and the slower half of the
    calls is dropped. All steps run in one thread, so that times add up. One more call under
    `tracemalloc` measures the memory allocated. With `ranges`, another run, equation by equation,
    finds the least and greatest element and the NaNs of every result.

    Raises `FeedError` for feeds that do not fit, and otherwise as `pg.cost`.

    >>> pg.profile(pg.trace(pg.sin, pg.spec(3)), [np.ones(3)], repeats=2).repeats
    2
    """
    if repeats is not None and (not isinstance(repeats, int) or repeats < 1):
        raise ArgumentError(f"repeats is an integer of at least 1, not {repeats!r:.60}")
    kernel, feed = _kernel_and_feed(target, feed, fetch_list)
    arrays = _arrays(kernel.graph, feed)
    flat = kernel.flat
    watched, clocks, places = flat.with_clocks()
    run = _runner(flat, arrays)
    with single_threaded():
        rounds = [*_iter_measurements(run, flat, watched, clocks, repeats)]
        allocated = _peak_memory(run, flat)
    *means, around = _mean_faster_half([seconds for _, seconds, _ in rounds])
    spent = {i: (n, s) for i, n, s in zip(places, rounds[-1][2], means, strict=False) if n}
    parts = [
        Spent(*spent[i], work) if i in spent else _NOTHING
        for i, work in enumerate(works(kernel.graph))
    ]
    return Profile(
        kernel=kernel,
        style=flat.running_style(arrays),
        seconds=_mean_faster_half([[total] for total, _, _ in rounds])[0],
        repeats=len(rounds),
        parts=tuple(parts),
        around=around,
        ranges=_ranges(kernel.graph, arrays) if ranges else None,
        call_bytes=allocated,
    )


def _mean_faster_half(runs: Sequence[Sequence[float]]) -> list[float]:
    """Return the mean of each entry over the half of the runs with the smallest sums.

    The others were interrupted. Unlike medians, these means add up to the mean of the sums.
    """
    chosen = sorted(runs, key=sum)[: (len(runs) + 1) // 2]
    means: list[float] = np.mean(chosen, axis=0).tolist()
    return means


def _iter_measurements(
    run: Callable[[Kernel], float], flat: Kernel, watched: Kernel, clocks: Any, repeats: int | None
) -> Iterator[tuple[float, list[float], list[int]]]:
    """Yield for each repeat the seconds of a call, and those and the calls of each clock."""
    run(flat)
    run(watched)
    clocks.take()
    begun, done = time.perf_counter(), 0
    while _goes_on(done, repeats, begun):
        total = run(flat)
        run(watched)
        yield total, *clocks.take()
        done += 1


def _goes_on(done: int, repeats: int | None, begun: float) -> bool:
    if repeats is not None:
        return done < repeats
    return done < _FEWEST or (done < _MOST and time.perf_counter() - begun < _ENOUGH)


def _require_mapping(feed: Mapping[str, Any] | Sequence[Any]) -> Mapping[str, Any]:
    if not isinstance(feed, Mapping):
        raise ArgumentError(f"the feed of a program is a mapping, not {type(feed).__name__}")
    return feed


def _executor(program: Program) -> Executor:
    """Return an executor that runs a program on copies of its states."""
    scope = Scope()
    scope.put(program.scope.snapshot())
    return Executor(scope)


def _arrays(graph: Graph, feed: Mapping[str, Any] | Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Return copies of the feeds, by name or in order, for the inputs of `graph`."""
    given = graph.in_order((), feed) if isinstance(feed, Mapping) else graph.in_order(feed, {})
    return [np.array(as_feed(a, v.type, v.hint)) for a, v in zip(given, graph.inputs, strict=True)]


def _runner(kernel: Kernel, arrays: Sequence[np.ndarray[Any, Any]]) -> Callable[[Kernel], float]:
    """Return a function that calls a kernel and measures the seconds; it resets donated inputs.

    New values of states are written into fixed arrays, as in runs of a program.
    """
    feeds = list(arrays)
    outputs = [kernel.graph.outputs[k].type for k in kernel.handed]
    handed = [np.empty(t.shape, t.dtype) for t in outputs]
    for j in kernel.donated.values():
        feeds[j] = arrays[j].copy()

    def run(called: Kernel) -> float:
        for j in kernel.donated.values():
            feeds[j][...] = arrays[j]
        before = time.perf_counter()
        called.fill(feeds, handed)
        return time.perf_counter() - before

    return run


def _peak_memory(run: Callable[[Kernel], float], kernel: Kernel) -> int:
    """Return the peak number of bytes that a run allocates."""
    watched = tracemalloc.is_tracing()
    if not watched:
        tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        run(kernel)
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not watched:
            tracemalloc.stop()


def _ranges(graph: Graph, arrays: Sequence[np.ndarray[Any, Any]]) -> tuple[Range, ...]:
    """Return the range of the first result of each equation, freeing results early."""
    known: dict[Value, Any] = dict(zip(graph.inputs, arrays, strict=True))
    last = {v: i for i, eqn in enumerate(graph.body) for v in (*eqn.outputs, *eqn.inputs)}
    found = []
    with np.errstate(all="ignore"):
        for i, eqn in enumerate(graph.body):
            results = eqn.op.evaluate([known[v] for v in eqn.inputs], eqn.kwargs)
            for value, result in zip(eqn.outputs, results, strict=True):
                known[value] = np.asarray(result, dtype=value.dtype)
            found.append(range_of(known[eqn.outputs[0]]) if eqn.outputs else _EMPTY)
            for value in dict.fromkeys((*eqn.inputs, *eqn.outputs)):
                if last[value] == i:
                    del known[value]
    return tuple(found)


_EMPTY = Range(float("nan"), float("nan"), 0)


def range_of(array: np.ndarray[Any, Any]) -> Range:
    """Return minimum and maximum of `array` without NaNs, and the number of NaNs."""
    missing = np.isnan(array) if array.dtype.kind in "fc" else np.zeros(array.shape, np.bool_)
    numbers = array[~missing]
    if not numbers.size:
        return Range(float("nan"), float("nan"), int(missing.sum()))
    return Range(float(numbers.min()), float(numbers.max()), int(missing.sum()))


def _sum_by_key(pairs: Iterable[tuple[Any, Spent]]) -> dict[Any, Spent]:
    total: dict[Any, Spent] = {}
    for key, spent in pairs:
        total[key] = total.get(key, _NOTHING).add_spent(spent)
    return total


def _describe_equation(eqn: Equation) -> str:
    results = ", ".join(str(v.type) for v in eqn.outputs)
    return f"{eqn.op.name} -> {results}   {eqn.source or ''}".rstrip()


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
