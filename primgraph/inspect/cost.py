"""Cost of a graph without running it: operations, bytes moved, and peak memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeVar, final

from primgraph.base.user_lines import Source
from primgraph.codegen import Kernel
from primgraph.codegen.ir.schedule import Schedule, schedule, stored_shape
from primgraph.codegen.lower.arrays.memory_use import call_bytes, kept_bytes, live_bytes
from primgraph.codegen.runtime.threads import get_num_threads
from primgraph.errors import ArgumentError
from primgraph.inspect.residuals import residual_bytes
from primgraph.ir.dims import extent_at, names_in, single_row_size
from primgraph.ir.frontend.html_tables import ROWS, Row, Sheet, Tabled
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.graph import Equation, Graph
from primgraph.ir.index_maps import IndexMap, Lookup
from primgraph.ir.rebuild import NOWHERE
from primgraph.ir.types import smaller
from primgraph.program.program import Program
from primgraph.program.run import Executor, Fetch
from primgraph.program.sized import SizedKernel
from primgraph.tables import place_of, quantity, table
from primgraph.transforms.instantiate_sizes import instantiate
from primgraph.transforms.lower import lower

# Maximum number of lines in a table; the others are added up.
_SHOWN = 12

# Assumed value of symbolic sizes for sorting lines.
_TYPICAL = 64

_HEAD = ("flops", "read", "written", "line")


@final
@dataclass(frozen=True, slots=True)
class Work:
    """Numbers of operations, and of bytes read and written."""

    flops: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.flops + other.flops,
            self.bytes_read + other.bytes_read,
            self.bytes_written + other.bytes_written,
        )

    def __str__(self) -> str:
        return (
            f"{quantity(self.flops, 'flop')}, {quantity(self.bytes_read, 'B')} read, "
            f"{quantity(self.bytes_written, 'B')} written"
        )

    @property
    def bytes_moved(self) -> int:
        return self.bytes_read + self.bytes_written

    def data(self) -> dict[str, int]:
        """Return the figures by name."""
        return {
            "flops": self.flops,
            "bytes_read": self.bytes_read,
            "bytes_written": self.bytes_written,
        }


@final
@dataclass(frozen=True, slots=True, repr=False)
class Cost(Tabled):
    """Cost of one evaluation; it prints as a table by lines of the user's code.

    `work` is the sum of `parts`, which have the work of each equation of `graph`, in order; nothing
    for equations that no output needs. Flops are those of `Primitive.flops`. Bytes count each
    different operand of an equation once, and its results once: views and constants move nothing,
    broadcast operands are read once, and `gather` reads the elements that it takes.

    `peak_bytes` is the peak memory beside inputs and constants. For a graph, it is that of the live
    values in the order of the equations, where views take no memory. For a kernel, it is what its
    planned code allocates in the first call: `kept_bytes` are kept for later calls, which allocate
    `call_bytes` at most, results included. Sizes of inputs, outputs and constants are listed beside
    it. Temporaries within NumPy's functions are extra, and `pg.profile` measures them: none for
    most functions, and at most three times what the function reads and writes, as for random
    numbers, `argmax` along other axes than the last, float16, incomplete gamma and beta functions,
    and what SciPy computes.

    >>> x = pg.spec((1000, 10))
    >>> cost = pg.cost(pg.trace(lambda x: pg.sum(x * x), x))
    >>> print(cost.work.flops, cost.peak_bytes > 0)
    19999 True
    """

    graph: Graph
    parts: tuple[Work, ...]
    work: Work
    peak_bytes: int
    kept_bytes: int
    call_bytes: int
    input_bytes: int
    output_bytes: int
    constant_bytes: int

    @property
    def name(self) -> str:
        return self.graph.name

    @property
    def equations(self) -> int:
        return len(self.graph.body)

    @property
    def flops(self) -> int:
        return self.work.flops

    @property
    def bytes_read(self) -> int:
        return self.work.bytes_read

    @property
    def bytes_written(self) -> int:
        return self.work.bytes_written

    @property
    def residual_bytes(self) -> int:
        """Bytes that reverse mode of `graph`, by all its float inputs, would keep.

        These are the computed values that the backward pass needs; loops count all steps, the most
        there may be. Inputs do not count. Values that checkpoints recompute count once, for the
        largest one. The number is computed when it is read.

        Raises `MissingRuleError` for a primitive without derivative.
        """
        return residual_bytes(self.graph)

    def by_line(self) -> dict[Source | None, Work]:
        """Return the work of each line of the user's code, with derivatives of that line."""
        lines = (line_of(eqn) for eqn in self.graph.body)
        return _sum_by_key(zip(lines, self.parts, strict=True))

    def by_op(self) -> dict[str, Work]:
        """Return the work of each primitive, by name."""
        return _sum_by_key(
            (eqn.op.name, part) for eqn, part in zip(self.graph.body, self.parts, strict=True)
        )

    def data(self) -> dict[str, Any]:
        """Return all figures as dictionaries, lists, strings and numbers, for JSON.

        Formulas in sizes are objects; `to_json` writes them as text.
        """
        lines = [
            {"file": s.file if s else None, "line": s.line if s else None, **work.data()}
            for s, work in self.by_line().items()
        ]
        return {
            "name": self.name,
            "equations": self.equations,
            **self.work.data(),
            "peak_bytes": self.peak_bytes,
            "kept_bytes": self.kept_bytes,
            "call_bytes": self.call_bytes,
            "input_bytes": self.input_bytes,
            "output_bytes": self.output_bytes,
            "constant_bytes": self.constant_bytes,
            "by_line": lines,
            "by_op": {name: work.data() for name, work in self.by_op().items()},
        }

    def to_json(self) -> str:
        """Return the data as JSON text."""
        return json.dumps(self.data(), indent=2, default=str)

    def _title(self) -> str:
        return f"{self.name}: {self.equations} equations, {self.work}"

    def __str__(self) -> str:
        return "\n".join([*self._head(), *table(_HEAD, [row.cells for row in self._rows(_SHOWN)])])

    def _sheet(self) -> Sheet:
        title, *notes = self._head()
        rows = self._rows(ROWS - 1)
        return Sheet(title, "nnnc", _HEAD, rows, len(rows), tuple(notes))

    def _head(self) -> list[str]:
        """Return the lines with the totals."""
        peak = f"peak {quantity(self.peak_bytes, 'B')}"
        if self.kept_bytes:
            peak += (
                f": {quantity(self.kept_bytes, 'B')} kept between calls, "
                f"{quantity(self.call_bytes, 'B')} in each"
            )
        return [
            self._title(),
            f"{peak}; inputs {quantity(self.input_bytes, 'B')}, "
            f"results {quantity(self.output_bytes, 'B')}, "
            f"constants {quantity(self.constant_bytes, 'B')}",
        ]

    def _rows(self, most: int) -> list[Row]:
        """Return the most expensive lines; the others are added up."""
        lines = ((s, work) for s, work in self.by_line().items() if _weight(work))
        order = sorted(lines, key=lambda pair: -_weight(pair[1]))
        named = [(place_of(source), work) for source, work in order[:most]]
        if len(order) > most:
            rest = sum((work for _, work in order[most:]), Work())
            named.append((f"({len(order) - most} more lines)", rest))
        whole = max(_weight(self.work), 1)
        return [Row(_cells(text, work), share=_weight(work) / whole) for text, work in named]


@checked_late
def cost(
    target: Graph | Program | Kernel | SizedKernel,
    fetch_list: Sequence[Fetch] | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
) -> Cost:
    """Compute the cost of `target` without running it: operations, bytes and peak memory.

    A graph is taken as it is, with operators lowered. A kernel is taken as compiled; a program
    stands for the kernel of `fetch_list`. Equations that a kernel does not compute again in each
    run do not count: those that depend on nothing, or only on unchanged parameters.

    An unbounded `while_loop`, and the loops over its stacks, count as one step.

    With symbolic sizes, figures are formulas, or numbers with `sizes`; equations of a graph that
    are equal at these numbers then count once. Formulas of a program or kernel are those of the
    code for all sizes; code for given sizes may cost less.

    Raises `ArgumentError` for anything else, for fetches of what is no program, and for a program
    without fetches and updates; `MissingRuleError` for a primitive without a cost.

    >>> pg.cost(pg.trace(lambda a, b: a @ b, pg.spec((2, 3)), pg.spec((3, 4)))).flops
    48
    """
    if isinstance(target, Graph):
        refuse_fetches(target, fetch_list)
        plain = lower(target if sizes is None else instantiate(target, sizes))
        return _cost_of(plain, None)
    general = _general_kernel(target, fetch_list) if sizes is None else None
    if general is not None:
        return _cost_of(general.graph, None, general.once)
    kernel = kernel_of(target, fetch_list, sizes)
    return _cost_of(kernel.graph, kernel, kernel.once)


def _general_kernel(
    target: Program | Kernel | SizedKernel, fetch_list: Sequence[Fetch] | None
) -> Kernel | None:
    """Return the size-generic kernel of a target with symbolic sizes; None for others."""
    if isinstance(target, SizedKernel):
        refuse_fetches(target, fetch_list)
        return target.generic
    if not isinstance(target, Program):
        return None
    return _with_results(Executor().general_kernel(target, fetch_list))


def kernel_of(
    target: Program | Kernel | SizedKernel,
    fetch_list: Sequence[Fetch] | None,
    sizes: Mapping[str, int] | None = None,
) -> Kernel:
    """Return the kernel of `target`. Raises `ArgumentError` for anything but a program or a
    kernel."""
    if isinstance(target, Kernel):
        refuse_fetches(target, fetch_list)
        return target
    if isinstance(target, SizedKernel):
        refuse_fetches(target, fetch_list)
        return target.at(**(sizes or {}))
    if not isinstance(target, Program):
        raise ArgumentError(
            f"a graph, a program or a kernel is needed, not {type(target).__name__}",
            hint="make a graph with pg.trace(function, *specs)",
        )
    return _with_results(Executor().repeated_kernel(target, fetch_list, sizes=sizes))


_K = TypeVar("_K", Kernel, Kernel | None)


def _with_results(kernel: _K) -> _K:
    """Return `kernel`, and raise if it has no outputs."""
    if kernel is not None and not kernel.graph.outputs:
        raise ArgumentError(
            "nothing is fetched, and the program updates nothing",
            hint="name the results: fetch_list=[...]",
        )
    return kernel


def refuse_fetches(
    target: Graph | Kernel | SizedKernel, fetch_list: Sequence[Fetch] | None
) -> None:
    """Raise `ArgumentError` for fetches of a target whose outputs are fixed."""
    if fetch_list is not None:
        raise ArgumentError(
            f"fetch_list chooses the results of a program, not of {target!r:.80}",
            hint="leave it out: all outputs count",
        )


def line_of(eqn: Equation) -> Source | None:
    """Return the user's line of an equation, also for derived equations."""
    source = eqn.source
    if source is None or source.file == NOWHERE.file:
        return None
    return source.drop_marks


def works(graph: Graph) -> tuple[Work, ...]:
    """Return the work of each equation of a graph of primitives; zero for dead ones."""
    return _works(graph, schedule(graph))


def _works(graph: Graph, plan: Schedule) -> tuple[Work, ...]:
    found: dict[Equation, Work] = {}
    elements = _different_elements(plan)
    for step in plan.steps:
        types = step.operands
        flops = step.op.flops(types, step.params)
        if plan.is_view(step.outputs[0]) or step.op.literal:
            found[step.eqn] = Work(flops)
            continue
        read = dict.fromkeys(step.inputs, 0)
        for value in read:
            read[value] = elements[value] * plan.types[value].dtype.itemsize
        written = sum(single_row_size(t.nbytes) for t in step.results)
        for i, value in enumerate(step.inputs):
            shown = step.eqn.dependence(0, i)
            if isinstance(shown, IndexMap) and any(isinstance(p, Lookup) for p in shown.operand):
                read[value] = smaller(read[value], written)
        found[step.eqn] = Work(flops, sum(read.values()), written)
    return tuple(found.get(eqn, Work()) for eqn in graph.body)


def _different_elements(plan: Schedule) -> list[int]:
    """Return the number of distinct elements of each value in memory."""
    count = [single_row_size(t.size) for t in plan.types]
    for step in plan.steps:
        if step.op.literal:
            count[step.outputs[0]] = single_row_size(prod(stored_shape(step)))
        else:
            for value in step.outputs:
                if plan.is_view(value):
                    count[value] = smaller(count[value], count[step.inputs[0]])
    return count


def _cost_of(graph: Graph, kernel: Kernel | None, once: Sequence[int] = ()) -> Cost:
    plan = schedule(graph)
    parts = _clear_work(_works(graph, plan), once)
    kept, call = 0, live_bytes(plan)
    peak = call
    if kernel is not None:
        layout, threads = kernel.plan, get_num_threads()
        kept, call = kept_bytes(layout, threads), call_bytes(layout)
        peak = kept + call
        early = kernel.plan_of_once
        if early is not None:
            first, results = early
            kept += results
            peak = max(kept + call, kept_bytes(first, threads) + call_bytes(first))
    constants = [s.results[0] for s in plan.steps if s.eqn.array is not None]
    return Cost(
        graph=graph,
        parts=parts,
        work=sum(parts, Work()),
        peak_bytes=peak,
        kept_bytes=kept,
        call_bytes=call,
        input_bytes=sum(t.nbytes for t in graph.input_types),
        output_bytes=sum(t.nbytes for t in graph.output_types),
        constant_bytes=sum(t.nbytes for t in constants),
    )


def _clear_work(parts: Sequence[Work], places: Sequence[int]) -> tuple[Work, ...]:
    """Return `parts` with zero work at `places`, which are not run again."""
    left_out = set(places)
    return tuple([Work() if i in left_out else part for i, part in enumerate(parts)])


def _sum_by_key(pairs: Iterable[tuple[Any, Work]]) -> dict[Any, Work]:
    total: dict[Any, Work] = {}
    for key, work in pairs:
        total[key] = total.get(key, Work()) + work
    return total


def _weight(work: Work) -> int:
    """Sort key of lines: an operation takes about as long as moving a byte."""
    total = work.flops + work.bytes_moved
    return extent_at(total, dict.fromkeys(names_in(total), _TYPICAL))


def _cells(text: str, work: Work) -> tuple[str, ...]:
    return (
        quantity(work.flops, ""),
        quantity(work.bytes_read, "B"),
        quantity(work.bytes_written, "B"),
        text,
    )
