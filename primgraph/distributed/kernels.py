"""Kernels of chunks: selection by number of rows, packing, and common arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.codegen.ir.limits import default_limits
from primgraph.distributed.chunks import Chunks, require_sendable
from primgraph.distributed.engine import Engine
from primgraph.distributed.parcels import Parcel, pack
from primgraph.distributed.summands import SplitGraph, Summand
from primgraph.distributed.tasks import Given, run_chunk
from primgraph.errors import UnknownSizeError
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import specialize_graph
from primgraph.ir.slices import drop_formal
from primgraph.program.compile import simplify_symbolic, style_for
from primgraph.transforms.hoist import input_free
from primgraph.transforms.lower import lower
from primgraph.transforms.pipeline import optimize_graph

Array: TypeAlias = "np.ndarray[Any, Any]"
Maker: TypeAlias = Callable[[SplitGraph, Graph, int], Graph]

# Maximum number of row counts with specialised kernels.
_OWN = 4


@final
class Kernels:
    """Kernels for chunks: specialised ones for frequent row counts, and a generic one.

    The choice depends only on the row counts of all chunks, and so do the bits of the results. If
    no generic kernel is possible, each row count has its own.
    """

    def __init__(self, summand: Summand, chunks: Chunks, make: Maker) -> None:
        self.summand, self.chunks, self._make = summand, chunks, make
        counts = Counter(n for n in chunks.rows if n)
        often = [n for n, times in counts.most_common(_OWN) if times > 1 or len(counts) == 1]
        self._own = frozenset(often)
        self._graphs: dict[int | None, Graph] = {}
        self._parts: dict[tuple[int | None, bool], tuple[Any, ...]] = {}
        # By the id of the parts, which are kept alive.
        self._packed: dict[int, tuple[Parcel, list[Array]]] = {}

    def graph(self, rows: int | None) -> Graph:
        """Return the graph for chunks of this many rows, or of any number."""
        found = self._graphs.get(rows)
        if found is None:
            found = self._graphs[rows] = self._build_graph(rows)
        return found

    def _build_graph(self, rows: int | None) -> Graph:
        summand = self.summand
        if not summand.is_sized:
            assert rows is not None
            drawn = summand.graph_for_rows(rows)
            return self._make(drawn, drawn.parts.each, len(summand.params))
        drawn, count = summand.graph_for_rows(1), len(summand.params)
        if rows is None:
            return simplify_symbolic(self._make(drawn, drawn.parts.each, count))
        sizes = {summand.size: rows}
        try:
            whole = self.graph(None)
        except UnknownSizeError:
            return self._make(drawn, specialize_graph(drawn.parts.each, sizes), count)
        return specialize_graph(whole, sizes)

    def pack_parcel(self, rows: int, debug: bool = False) -> tuple[Parcel, list[Array]]:
        """Return the parcel for a chunk of this many rows, and its large constants."""
        parts = self.parts(rows, debug)
        found = self._packed.get(id(parts))
        if found is None:
            found = self._packed[id(parts)] = pack(parts)
        return found

    def parts(self, rows: int, debug: bool = False) -> tuple[Any, ...]:
        """Return the constructor arguments of the kernel for this many rows."""
        key = rows if rows in self._own or not self.summand.is_sized or debug else None
        found = self._parts.get((key, debug))
        if found is None:
            try:
                found = _parts_of(self.graph(key), debug)
            except UnknownSizeError:
                # The generated code would need the symbolic size as a number.
                self._own |= {rows}
                key, found = rows, _parts_of(self.graph(rows), debug)
            self._parts[key, debug] = found
        return found

    def tasks(
        self, engine: Engine, given: Given, numbers: Sequence[int] | None = None
    ) -> list[tuple[Any, ...]]:
        """Return a task for each nonempty chunk, or for those with these numbers."""
        if engine.client is not None:
            require_sendable(self.chunks)
        shared = engine.prepare_arguments(given)
        sent: dict[str, tuple[Any, list[Any]]] = {}
        found = []
        for i in self.chunks.nonempty_chunks() if numbers is None else numbers:
            parcel, large = self.pack_parcel(self.chunks.rows[i], given.debug)
            if parcel.digest not in sent:
                sent[parcel.digest] = engine.parcel(parcel), engine.large(parcel, large)
            kernel, constants = sent[parcel.digest]
            items = self.chunks.items[i]
            found.append((run_chunk, kernel, constants, shared, self.chunks.chunk(i), items))
        return found

    def numbers(self, total: int | None = None) -> list[Array]:
        """Return the arrays of total sample counts that kernels use."""
        rows = next((n for n in self.chunks.rows if n), 1)
        sizes = {self.summand.size: self.chunks.total if total is None else total}
        return self.summand.graph_for_rows(rows).numbers(sizes)

    def common_arguments(
        self,
        params: Sequence[Array],
        vectors: Sequence[Array] = (),
        debug: bool = False,
        total: int | None = None,
    ) -> Given:
        """Return the common arguments of all chunks, besides their rows."""
        arrays = (*params, *self.summand.constants, *self.numbers(total), *vectors)
        return Given(tuple(arrays), debug)


def _parts_of(graph: Graph, debug: bool) -> tuple[Any, ...]:
    """Return kernel arguments for one thread, with the limits of this machine, as these affect
    bits."""
    if debug:
        return lower(graph), "readable", {}, None, (), ()
    plain = drop_formal(optimize_graph(graph))
    once = () if plain.sizes else input_free(plain)
    style = "readable" if plain.sizes else style_for("planned", None)
    limits = replace(default_limits(), processors=1)
    return plain, style, {}, limits, once, ()
