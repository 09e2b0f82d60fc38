"""Task functions: load a chunk, run its kernel, add up results. They do not import dask."""

from __future__ import annotations

import os
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

from primgraph import tree
from primgraph.base.files import open_regular
from primgraph.base.frames import is_interruption
from primgraph.base.locks import make_lock
from primgraph.codegen.runtime import blas
from primgraph.distributed.parcels import Named, Parcel, open_parcel
from primgraph.errors import NumericalError, PrimgraphError, RunError, ShapeError
from primgraph.ir.graph import Graph
from primgraph.ir.text import typed_equation
from primgraph.ir.types import TensorType
from primgraph.operators.promotion import array_of
from primgraph.program.finite import check_finite

Array: TypeAlias = "np.ndarray[Any, Any]"


@final
@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of an array in a file, read on the worker."""

    file: str
    dtype: Any
    offset: int
    shape: tuple[int, ...]

    def load(self) -> Array:
        if 0 in self.shape:
            return np.zeros(self.shape, self.dtype)
        with open_regular(self.file) as file:
            return np.asarray(np.memmap(file, self.dtype, "r", self.offset, self.shape))


@final
@dataclass(frozen=True, slots=True)
class Rows:
    """Rows that are sent with the task."""

    array: Array

    def load(self) -> Array:
        return self.array


@final
@dataclass(frozen=True, slots=True)
class File:
    """File with the function that loads arrays from it."""

    path: str
    loader: Callable[[str], Any]

    def load(self) -> Any:
        return self.loader(self.path)


@final
@dataclass(frozen=True, slots=True)
class Chunk:
    """Description of a chunk: number, label, and types of its arrays; `first` is its first row.

    `types` is None if unknown, and `whole` says that one item contains all arrays.
    """

    number: int
    label: str
    first: int | None
    types: tuple[TensorType, ...] | None
    names: tuple[str, ...]
    whole: bool


@final
@dataclass(frozen=True, slots=True)
class Given:
    """Common arguments of all chunks, the first inputs of the kernel, and whether to debug."""

    arrays: tuple[Array, ...]
    debug: bool = False


@final
@dataclass
class ProcessStatistics:
    """Statistics of this process: number of tasks, seconds for loading and for kernels, and
    processor seconds of kernels."""

    tasks: int = 0
    loading: float = 0.0
    kernels: float = 0.0
    computing: float = 0.0
    lock: Any = field(default_factory=make_lock, repr=False)


spent = ProcessStatistics()


def process_statistics() -> dict[str, float]:
    """Return the statistics of this process and its total processor time, for benchmarks."""
    found = {n: getattr(spent, n) for n in ("tasks", "loading", "kernels", "computing")}
    return {**found, "process": time.process_time()}


def same(item: Any) -> Any:
    return item


def run_chunk(
    parcel: Parcel | Named,
    large: Sequence[Array],
    given: Given,
    chunk: Chunk,
    items: Sequence[Any],
) -> list[Array]:
    """Run the kernel on one chunk."""
    start = ready = time.perf_counter()
    begun = time.thread_time()
    try:
        arrays = load_chunk(chunk, items)
        ready, begun = time.perf_counter(), time.thread_time()
        kernel = open_parcel(parcel, large)
        if given.debug:
            return _evaluate_checked(kernel.graph, given.arrays, arrays, chunk)
        # Tasks run in parallel: BLAS threads would compete with them.
        found: list[Array] = blas.single_threaded(kernel)(*given.arrays, *arrays)
        return found
    except PrimgraphError as error:
        error.origin = (f"in {chunk.label}", *error.origin)
        raise drop_dask_lines(error) from error.__cause__
    finally:
        end = time.perf_counter()
        with spent.lock:
            spent.tasks += 1
            spent.loading += ready - start
            spent.kernels += end - ready
            spent.computing += time.thread_time() - begun


def drop_dask_lines(error: PrimgraphError) -> PrimgraphError:
    """Remove the executing line from `error`: it is dask's; the client knows the user's line."""
    error.place = None
    return error


def run_rows(
    parcel: Parcel, large: Sequence[Array], given: Given, chunk: Chunk, items: Sequence[Any]
) -> tuple[Array, ...]:
    """Return the results of `run_chunk` as a tuple, from which dask takes single arrays."""
    return tuple(run_chunk(parcel, large, given, chunk, items))


def item_of(found: Sequence[Any], number: int) -> Any:
    return found[number]


def load_chunk(chunk: Chunk, items: Sequence[Any]) -> list[Array]:
    """Load the arrays of a chunk, and check their types."""
    found = _load_items(chunk, items)
    if chunk.whole:
        found = concatenate_parts(found[0])
    arrays = [array_of(a) for a in found]
    if chunk.types is not None:
        require_types(chunk, [TensorType(a.shape, a.dtype) for a in arrays])
    return arrays


def _load_items(chunk: Chunk, items: Sequence[Any]) -> list[Any]:
    """Load the items of a chunk. Raises `RunError` if a file cannot be read."""
    try:
        return [i.load() if isinstance(i, Piece | Rows | File) else i for i in items]
    except Exception as error:
        if is_interruption(error):
            raise
        raise RunError(
            f"{chunk.label} cannot be loaded: {type(error).__name__}: {error}"
        ) from error


def concatenate_parts(item: Any) -> list[Any]:
    """Return the arrays of one chunk; those of a bag partition are concatenated."""
    if isinstance(item, Parts):
        listed = [[array_of(a) for a in tree.leaves(part)] for part in item.parts]
        first, *others = [
            (tree.structure(part), [(a.ndim, a.shape[1:]) for a in arrays])
            for part, arrays in zip(item.parts, listed, strict=True)
        ]
        if not all(ndim for ndim, _ in first[1]):
            raise ShapeError(
                f"a bag has {item.parts[0]!r:.60}, which has no rows",
                hint="its items are arrays, or tuples or dicts of such, of some rows each",
            )
        for i, other in enumerate(others, start=1):
            if other != first:
                raise ShapeError(
                    f"a bag has items with different columns: number {i} and the first"
                )
        return [np.concatenate(columns) for columns in zip(*listed, strict=True)]
    return tree.leaves(item)


@final
@dataclass(frozen=True, slots=True)
class Parts:
    """Items of a bag partition."""

    parts: tuple[Any, ...]


def partition(items: Any) -> Parts:
    return Parts(tuple(items))


def require_types(chunk: Chunk, types: Sequence[TensorType]) -> None:
    """Raise `ShapeError` unless the arrays of a chunk have the expected types."""
    expected = chunk.types or ()
    for name, found, wanted in zip(chunk.names, types, expected, strict=False):
        if found != wanted:
            raise ShapeError(f"{chunk.label}: {name} is {found}, and {wanted} was expected")
    if len(types) != len(expected):
        raise ShapeError(
            f"{chunk.label} has {len(types)} arrays, and {len(expected)} were expected"
        )


def look(
    chunk: Chunk, items: Sequence[Any]
) -> tuple[Any, list[tuple[tuple[int, ...], str]]] | None:
    """Return the containers of a chunk's arrays, and their shapes and dtypes.

    None for an empty bag partition.
    """
    try:
        (item,) = _load_items(chunk, items)
        if isinstance(item, Parts) and not item.parts:
            return None
        first = item.parts[0] if isinstance(item, Parts) else item
        found = [np.asarray(a) for a in concatenate_parts(item)]
        if any(a.dtype.kind not in "biufc" for a in found):
            kind = type(first).__name__
            raise RunError(f"{chunk.label} has {kind} {first!r:.60}, not an array")
        found = [array_of(a) for a in concatenate_parts(item)]
    except PrimgraphError as error:
        if chunk.label not in error.message:
            error.origin = (f"in {chunk.label}", *error.origin)
        raise drop_dask_lines(error) from error.__cause__
    return tree.structure(first), [(a.shape, a.dtype.str) for a in found]


def add_up(parts: Sequence[Sequence[Array]]) -> list[Array]:
    """Return the sums of the chunks' results, in order."""
    first, *others = parts
    found = [np.array(a) for a in first]
    for other in others:
        for total, array in zip(found, other, strict=True):
            np.add(total, array, out=total)
    return found


def _evaluate_checked(
    graph: Graph, given: Sequence[Array], arrays: Sequence[Array], chunk: Chunk
) -> list[Array]:
    """Evaluate `graph` with a check of every equation, and of the chunk itself, for NaN."""
    inputs = graph.inputs[len(given) :]
    for name, value, array in zip(chunk.names, inputs, arrays, strict=True):
        bad = ~np.isfinite(array) if array.dtype.kind in "fc" else np.zeros(0, bool)
        if not bad.any():
            continue
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        users = [e for e in graph.body if value in e.inputs]
        row = "" if chunk.first is None else f", row {chunk.first + place[0]} of all"
        lines = []
        if users:
            source = users[0].source
            lines.append(f"first used by:  {typed_equation(users[0], graph)}")
            if source is not None:
                lines.insert(0, f"written here:  {source}   {source.text}".rstrip())
        raise NumericalError(
            f"{name} has {array[place]} at [{', '.join(map(str, place))}]{row}", origin=lines
        )
    return check_finite(graph, *given, *arrays)


# Exceptions of NumPy for files that are damaged or no archives of arrays.
UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile)


def write_atomically(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file by `write` atomically: completely or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        with draft.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
