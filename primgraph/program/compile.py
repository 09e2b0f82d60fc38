"""From a graph to a kernel: the passes, then the code generator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

from primgraph.codegen import Kernel, compile_graph
from primgraph.errors import ArgumentError
from primgraph.ir.collection import uncollected
from primgraph.ir.graph import Graph
from primgraph.ir.signature import checked_late
from primgraph.transforms.hoist import hoist, input_free
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.optimize.join_products import join_products
from primgraph.transforms.optimize.matrix_chain import matrix_chain


@checked_late
@uncollected
def compile(
    graph: Graph,
    *,
    style: str = "planned",
    math: str = "exact",
    donated: Mapping[int, int] | None = None,
) -> Kernel:
    """Compile `graph` into NumPy code.

    `style` chooses the code that runs: "planned", with preallocated buffers, or "readable", the
    code that `Kernel.source` shows. `math` says which rewrites are allowed: "exact" ones give the
    same bits whatever the feeds; "signs" ones may differ in signs of zeros, and where a product
    with a power of two over- or underflows on the way, which is what derivatives are always
    allowed; "finite" ones also where a NaN, an infinity, an overflow or an underflow occurs; "fast"
    ones are true of real numbers and may round differently. `donated` maps positions of outputs to
    those of inputs of the same type, whose arrays they overwrite. What depends on no input is
    computed at the first call of the kernel, and kept by it.

    The kernel of a traced function takes what the function took, by position or by the name of
    the parameter, and returns what it returned: an array for a variable, a dict for a dict. That
    of a graph made otherwise, by hand, by `parse` or by a transform, returns a list. Positions in
    `donated` count arrays, as they stand in `graph.inputs` and `graph.outputs`.

    Raises `ArgumentError` for anything but a graph and for an unknown level, `CompileError` for
    an unknown style.
    """
    if not isinstance(graph, Graph):
        raise ArgumentError(
            f"compile takes a graph, not {type(graph).__name__}",
            hint="make one with pg.trace(function, *specs), or program.graph([outputs])",
        )
    return _kernel(optimized(graph, math), style=style, donated=donated)


@final
@dataclass(frozen=True)
class Pipeline:
    """A graph compiled for runs between which some of its inputs mostly stay as they are.

    `kernel` takes the inputs of `graph`, which is optimized, and then what `early`, where there is
    one, computes from those at `still`. Whoever runs it keeps that as long as they do.
    """

    graph: Graph
    kernel: Kernel
    early: Kernel | None
    still: tuple[int, ...]

    @cached_property
    def whole(self) -> Kernel:
        """One kernel for all of the graph."""
        return self.kernel if self.early is None else _kernel(self.graph)


def pipeline(
    graph: Graph, math: str, still: Sequence[int] = (), handed: Sequence[int] = ()
) -> Pipeline:
    """Compile `graph`, of which the inputs at `still` are seldom others than in the run before.

    The outputs at `handed` are written into arrays that are handed to the kernel.
    """
    plain = optimized(graph, math)
    first, rest = hoist(plain, still)
    early = _kernel(first) if first.outputs else None
    return Pipeline(plain, _kernel(rest, handed=handed), early, tuple(still))


def _kernel(
    graph: Graph,
    *,
    style: str = "planned",
    donated: Mapping[int, int] | None = None,
    handed: Sequence[int] = (),
) -> Kernel:
    """What every program, function and graph is run by, in whatever way it is compiled."""
    once = input_free(graph)
    return compile_graph(graph, style=style, donated=donated, once=once, handed=handed)


def optimized(graph: Graph, math: str = "exact") -> Graph:
    """The graph that is compiled: lowered and cleaned up at level `math`."""
    plain = clean_up(lower(graph), math, last=True)
    if math == "fast":
        joined = join_products(plain)
        plain = matrix_chain(plain if joined is plain else clean_up(joined, math, last=True))
    return plain.in_form(graph.form).titled(graph.titles)
