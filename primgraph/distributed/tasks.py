"""What runs in the tasks: load a chunk, run its kernel, add results up. It needs no dask."""

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
from primgraph.codegen.run import blas
from primgraph.distributed.parcels import Named, Parcel, opened
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
    """Some rows of an array in a file, which are read where they are needed."""

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
    """Rows that are sent along with the task."""

    array: Array

    def load(self) -> Array:
        return self.array


@final
@dataclass(frozen=True, slots=True)
class File:
    """A file and what makes arrays of it."""

    path: str
    loader: Callable[[str], Any]

    def load(self) -> Any:
        return self.loader(self.path)


@final
@dataclass(frozen=True, slots=True)
class Chunk:
    """Which chunk it is, in words too, and what its arrays are; `first` is its first row.

    `types` are None where that is not known, and `whole` says that one item has all arrays.
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
    """What is the same for all chunks: the first inputs of the kernel; and how to run it."""

    arrays: tuple[Array, ...]
    debug: bool = False


@final
@dataclass
class Spent:
    """What this process has done: tasks, and seconds in which it loaded chunks and ran kernels;
    and of the latter the seconds of processor time."""

    tasks: int = 0
    loading: float = 0.0
    kernels: float = 0.0
    computing: float = 0.0
    lock: Any = field(default_factory=make_lock, repr=False)


spent = Spent()


def spent_here() -> dict[str, float]:
    """What this process has done so far, and all of its processor time; for those who measure."""
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
    """What the kernel gives for one chunk."""
    start = ready = time.perf_counter()
    begun = time.thread_time()
    try:
        arrays = loaded(chunk, items)
        ready, begun = time.perf_counter(), time.thread_time()
        kernel = opened(parcel, large)
        if given.debug:
            return _checked(kernel.graph, given.arrays, arrays, chunk)
        # Tasks run beside each other: threads of BLAS would only get into each other's way.
        found: list[Array] = blas.single_threaded(kernel)(*given.arrays, *arrays)
        return found
    except PrimgraphError as error:
        error.origin = (f"in {chunk.label}", *error.origin)
        raise elsewhere(error) from error.__cause__
    finally:
        end = time.perf_counter()
        with spent.lock:
            spent.tasks += 1
            spent.loading += ready - start
            spent.kernels += end - ready
            spent.computing += time.thread_time() - begun


def elsewhere(error: PrimgraphError) -> PrimgraphError:
    """`error` without the line that was being executed: it is dask's, and the client knows which
    line of the user's asked for it."""
    error.place = None
    return error


def run_rows(
    parcel: Parcel, large: Sequence[Array], given: Given, chunk: Chunk, items: Sequence[Any]
) -> tuple[Array, ...]:
    """The same in a tuple, of which dask takes one array or another."""
    return tuple(run_chunk(parcel, large, given, chunk, items))


def item_of(found: Sequence[Any], number: int) -> Any:
    return found[number]


def loaded(chunk: Chunk, items: Sequence[Any]) -> list[Array]:
    """The arrays of a chunk, which have the types that were expected."""
    found = _fetched(chunk, items)
    if chunk.whole:
        found = opened_whole(found[0])
    arrays = [array_of(a) for a in found]
    if chunk.types is not None:
        require_types(chunk, [TensorType(a.shape, a.dtype) for a in arrays])
    return arrays


def _fetched(chunk: Chunk, items: Sequence[Any]) -> list[Any]:
    """What is in the items of a chunk. Raises `RunError` where a file cannot be read."""
    try:
        return [i.load() if isinstance(i, Piece | Rows | File) else i for i in items]
    except Exception as error:
        if is_interruption(error):
            raise
        raise RunError(
            f"{chunk.label} cannot be loaded: {type(error).__name__}: {error}"
        ) from error


def opened_whole(item: Any) -> list[Any]:
    """The arrays in what one chunk is; those of a partition of a bag are put together."""
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
    """What a partition of a bag has."""

    parts: tuple[Any, ...]


def partition(items: Any) -> Parts:
    return Parts(tuple(items))


def require_types(chunk: Chunk, types: Sequence[TensorType]) -> None:
    """Raise `ShapeError` unless the arrays of a chunk are of the types that were expected."""
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
    """The containers in which a chunk's arrays are, and their shapes and dtypes.

    None for a partition of a bag that has nothing.
    """
    try:
        (item,) = _fetched(chunk, items)
        if isinstance(item, Parts) and not item.parts:
            return None
        first = item.parts[0] if isinstance(item, Parts) else item
        found = [np.asarray(a) for a in opened_whole(item)]
        if any(a.dtype.kind not in "biufc" for a in found):
            kind = type(first).__name__
            raise RunError(f"{chunk.label} has {kind} {first!r:.60}, not an array")
        found = [array_of(a) for a in opened_whole(item)]
    except PrimgraphError as error:
        if chunk.label not in error.message:
            error.origin = (f"in {chunk.label}", *error.origin)
        raise elsewhere(error) from error.__cause__
    return tree.structure(first), [(a.shape, a.dtype.str) for a in found]


def add_up(parts: Sequence[Sequence[Array]]) -> list[Array]:
    """The sums of what chunks gave, in their order."""
    first, *others = parts
    found = [np.array(a) for a in first]
    for other in others:
        for total, array in zip(found, other, strict=True):
            np.add(total, array, out=total)
    return found


def _checked(
    graph: Graph, given: Sequence[Array], arrays: Sequence[Array], chunk: Chunk
) -> list[Array]:
    """What `graph` gives, where every equation is looked at; and the chunk itself."""
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


# What NumPy raises for files that are no archives of arrays, or parts of one.
UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile)


def write_atomically(path: Path, write: Callable[[Any], None]) -> None:
    """Let `write` fill a file that is there whole, or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.part")
    try:
        with draft.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
