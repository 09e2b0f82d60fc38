"""Data in chunks of rows: dask arrays, bags, delayed chunks, files and memory maps."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeAlias, final

import numpy as np

from primgraph import tree
from primgraph.base.locks import cached_property
from primgraph.distributed.engine import Engine, dask_module
from primgraph.distributed.tasks import Chunk, File, Piece, Rows, look, partition
from primgraph.errors import ArgumentError, OptionError, ShapeError
from primgraph.ir.types import TensorType, as_dtype
from primgraph.operators.promotion import array_of
from primgraph.program.program import Program
from primgraph.tables import quantity

Array: TypeAlias = "np.ndarray[Any, Any]"

_ONE = tree.structure(0.0)

# Default size of chunks made here: a task costs dask some milliseconds, and a simple kernel
# processes this many bytes in thirty.
CHUNK_BYTES = 1 << 28
# Larger arrays in the client's memory are not sent with tasks.
SENT_BYTES = 10_000_000


def chunks(
    data: Any,
    loader: Callable[[str], Any] | None = None,
    *,
    rows: int | None = None,
) -> Chunks:
    """Return `data` in chunks of rows, for the functions of this module.

    `data` is an array, or a dict or tuple of arrays with the same rows: dask arrays, chunked along
    axis 0 only; memory maps, whose files all workers can read, and small arrays, which are cut into
    `rows` rows (by default about 256 MiB). Or it is a list of paths with a `loader`, which returns
    an array, or a dict or tuple of arrays; a list of `dask.delayed` chunks, or of futures; or a bag
    of chunks. Files, delayed chunks and bags are loaded once in advance, to learn their numbers of
    rows. A `Chunks` is returned as it is.

    Raises `ArgumentError` for anything else, and for arrays that are too large to be sent;
    `ShapeError` for arrays with different numbers of rows or different chunks.
    """
    if isinstance(data, Chunks):
        return data
    if rows is not None and (type(rows) is not int or rows < 1):
        raise ArgumentError(f"rows is an integer from 1 on, not {rows!r:.60}")
    if loader is not None:
        return _chunks_of_files(data, loader)
    if isinstance(data, list):
        if data and all(_is_delayed(item) for item in data):
            return _chunks_of_delayed(data, False)
        raise ArgumentError(
            f"a list is of delayed chunks, or of files with a loader, not {data!r:.60}",
            hint="several arrays are a tuple, or a dict; for files give loader=np.load",
        )
    if _is_delayed(data):
        return _chunks_of_delayed([data], False)
    if _is_bag(data):
        step = dask_module("dask").delayed(partition, pure=True)
        return _chunks_of_delayed([step(part) for part in data.to_delayed()], True)
    return _chunks_of_arrays(data, rows)


def split_feed(
    program: Program, data: Any, engine: Engine
) -> tuple[Chunks, dict[str, TensorType], dict[str, Any]]:
    """Return the chunks fed to a program, its columns by name, and the arrays fed to all chunks.

    In a dict of arrays, those whose input has a symbolic size are chunked.
    """
    feed: dict[str, Any] = {}
    if isinstance(data, Mapping):
        inputs = program.inputs
        feed = {n: a for n, a in data.items() if n in inputs and not inputs[n].type.names}
        data = {n: a for n, a in data.items() if n not in feed}
    chunked = chunks(data).load_unknown_rows(engine)
    structure = chunked.structure
    if structure.kind is not dict:
        raise ArgumentError("data of a program are a dict by the names of its inputs")
    return chunked, dict(zip(map(str, structure.keys), chunked.columns, strict=True)), feed


@final
@dataclass
class Chunks:
    """Data in chunks of rows; see `chunks`.

    `items` are the arguments of tasks for each chunk, `labels` the chunk's names in messages. Once
    `is_known`, `structure` has the containers of the arrays, `columns` the type of a row of each,
    and `rows` the number of rows of each chunk. `sources` are the dask collections.
    """

    items: list[list[Any]]
    labels: list[str]
    sources: list[Any]
    whole: bool
    is_known: bool = False
    structure: tree.Structure = _ONE
    columns: tuple[TensorType, ...] = ()
    rows: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        known = f", {self.total:,} rows" if self.is_known else ""
        return f"<{len(self)} chunks{known}>"

    def load_unknown_rows(self, engine: Engine) -> Chunks:
        """Load chunks if their rows are unknown, and return self with known rows and columns.

        Raises `ShapeError` if a chunk has other columns than the first one.
        """
        if self.is_known:
            return self
        found = engine.gather_results(
            "look",
            lambda: [(look, self.plain(i), self.items[i]) for i in range(len(self))],
            self.sources,
        )
        model_label, (first, types) = next(
            (pair for pair in zip(self.labels, found, strict=True) if pair[1] is not None),
            ("", (None, [])),
        )
        if first is None:
            raise ShapeError("the bag is empty: none of its partitions has anything")
        rows = []
        for seen, label in zip(found, self.labels, strict=True):
            if seen is None:
                rows.append(0)
                continue
            other, shapes = seen
            if other != first:
                raise ShapeError(f"{label} is {other}, and {model_label} is {first}")
            paths = tree.paths_of(first, "data")
            for path, (shape, dtype), (model, wanted) in zip(paths, shapes, types, strict=True):
                if shape[1:] != model[1:] or dtype != wanted or len(shape) != len(model):
                    raise ShapeError(
                        f"chunks have different columns: {path} is {_type(shape, dtype)} in "
                        f"{label}, and {_type(model, wanted)} in {model_label}"
                    )
            if not shapes:
                raise ShapeError(f"{label} has no arrays")
            if not all(shape for shape, _ in shapes):
                raise ShapeError(f"{label} has numbers, which have no rows: their shape is ()")
            if len({shape[:1] for shape, _ in shapes}) != 1:
                raise ShapeError(f"{label} has arrays with different numbers of rows: {shapes}")
            rows.append(shapes[0][0][0])
        self.is_known = True
        self.rows = tuple(rows)
        self.structure = first
        self.columns = tuple([TensorType(shape[1:], as_dtype(dtype)) for shape, dtype in types])
        return self

    def plain(self, number: int) -> Chunk:
        """Return the description of a chunk without types and rows."""
        return Chunk(number, self.labels[number], None, None, (), self.whole)

    def chunk(self, number: int) -> Chunk:
        """Return the description of a chunk for its task."""
        first = self._starts[number]
        label = f"{self.labels[number]} (rows {first} to {first + self.rows[number] - 1})"
        names = tuple(tree.paths_of(self.structure, "data"))
        return Chunk(number, label, first, self.types(number), names, self.whole)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(self.rows)]

    def types(self, number: int) -> tuple[TensorType, ...]:
        """Return the types of the arrays of a chunk."""
        count = self.rows[number]
        return tuple([t.with_shape((count, *t.shape)) for t in self.columns])

    @property
    def total(self) -> int:
        """Total number of rows."""
        return sum(self.rows)

    def bytes_of(self, number: int) -> int:
        return sum(t.nbytes for t in self.types(number))

    def nonempty_chunks(self) -> list[int]:
        """Return the numbers of the nonempty chunks."""
        return [i for i, n in enumerate(self.rows) if n]

    def only(self, numbers: Sequence[int]) -> Chunks:
        """Return some of the chunks, in that order."""
        return Chunks(
            [self.items[i] for i in numbers],
            [self.labels[i] for i in numbers],
            self.sources,
            self.whole,
            True,
            self.structure,
            self.columns,
            tuple([self.rows[i] for i in numbers]),
        )


def _type(shape: tuple[int, ...], dtype: str) -> str:
    return f"{np.dtype(dtype)} of shape {shape}"


def _is_delayed(item: Any) -> bool:
    """Return whether `item` is a delayed value, a future, or a tuple or dict of these."""
    leaves = tree.leaves(item) if isinstance(item, tuple | dict) else [item]
    homes = "dask.delayed", "distributed.client"
    return bool(leaves) and all(
        str(type(leaf).__module__).startswith(homes) and hasattr(leaf, "key") for leaf in leaves
    )


def _is_bag(item: Any) -> bool:
    return str(type(item).__module__).startswith("dask.bag")


def _is_dask(item: Any) -> bool:
    return str(type(item).__module__).startswith("dask.array")


def _chunks_of_files(data: Any, loader: Callable[[str], Any]) -> Chunks:
    if not callable(loader):
        raise ArgumentError(f"a loader is a function of a path, not {loader!r:.60}")
    paths = list(data) if isinstance(data, list | tuple) else [data]
    if not paths or not all(isinstance(p, str | os.PathLike) for p in paths):
        raise ArgumentError(f"a loader loads a list of paths, not {data!r:.60}")
    names = [os.fspath(p) for p in paths]
    # Workers may run in another directory. A name that is no file here is passed to the loader
    # unchanged.
    places = [str(Path(n).absolute()) if Path(n).exists() else n for n in names]
    items: list[list[Any]] = [[File(place, loader)] for place in places]
    labels = [f"chunk {i}, file {name}" for i, name in enumerate(names)]
    return Chunks(items, labels, [], True)


def _chunks_of_delayed(given: Sequence[Any], bag: bool) -> Chunks:
    delayed = dask_module("dask").delayed
    parts = [part if type(part).__name__ == "Delayed" else delayed(part) for part in given]
    what = "partition" if bag else "chunk"
    labels = [f"{what} {i}, {part.key!s:.60}" for i, part in enumerate(parts)]
    return Chunks([[part.key] for part in parts], labels, list(parts), True)


def _chunks_of_arrays(data: Any, rows: int | None) -> Chunks:
    leaves, structure = tree.flatten(data)
    paths = tree.paths_of(structure, "data")
    if not leaves:
        raise ArgumentError("data has no arrays")
    for path, leaf in zip(paths, leaves, strict=True):
        if not (isinstance(leaf, np.ndarray) or _is_dask(leaf)):
            raise ArgumentError(
                f"{path} is {type(leaf).__name__} {leaf!r:.60}, not an array",
                hint="data is an array of NumPy's or dask's, a tuple or dict of such, a list of "
                "delayed chunks, or pg.distributed.chunks(paths, loader)",
            )
        if not leaf.ndim:
            raise ShapeError(f"{path} has no rows: its shape is ()")
        if isinstance(leaf, np.ndarray):
            array_of(leaf[:0])  # masked arrays and matrices are refused
    extents = _extents(paths, leaves, rows)
    columns = tuple([TensorType(leaf.shape[1:], as_dtype(leaf.dtype)) for leaf in leaves])
    per_leaf = [[*_items(path, leaf, extents)] for path, leaf in zip(paths, leaves, strict=True)]
    sources = [leaf for leaf in leaves if _is_dask(leaf)]
    file = next((f" of {leaf.filename}" for leaf in leaves if isinstance(leaf, np.memmap)), "")
    labels = [f"chunk {i}{file}" for i in range(len(extents))]
    items = [list(row) for row in zip(*per_leaf, strict=True)]
    return Chunks(items, labels, sources, False, True, structure, columns, tuple(extents))


def _extents(paths: Sequence[str], leaves: Sequence[Any], rows: int | None) -> list[int]:
    """Return the number of rows of each chunk: those of dask arrays, if there are any."""
    lazy = [(path, leaf) for path, leaf in zip(paths, leaves, strict=True) if _is_dask(leaf)]
    for path, leaf in lazy:
        if any(math.isnan(n) for axis in leaf.chunks for n in axis):
            raise ShapeError(
                f"{path} has chunks of unknown sizes",
                hint="call its compute_chunk_sizes() first",
            )
        if any(len(axis) != 1 for axis in leaf.chunks[1:]):
            whole = ", ".join(f"{i}: -1" for i in range(1, leaf.ndim))
            raise ShapeError(
                f"{path} is chunked along other axes than 0 too: {leaf.chunks!s:.80}",
                hint=f"rows have to be whole: x.rechunk({{{whole}}})",
            )
    counts = {path: leaf.shape[0] for path, leaf in zip(paths, leaves, strict=True)}
    if len(set(counts.values())) != 1:
        listed = ", ".join(f"{path} has {count}" for path, count in counts.items())
        raise ShapeError(f"arrays have different numbers of rows: {listed}")
    if lazy:
        path, model = lazy[0]
        for other, leaf in lazy[1:]:
            if leaf.chunks[0] != model.chunks[0]:
                raise ShapeError(
                    f"{path} and {other} have other chunks of rows",
                    hint="y.rechunk({0: x.chunks[0]}) gives y those of x",
                )
        if rows is not None:
            raise OptionError("arrays of dask's have their chunks", hint="rechunk them first")
        return [int(n) for n in model.chunks[0]]
    (count,) = set(counts.values())
    if rows is None:
        width = sum(math.prod(a.shape[1:]) * a.dtype.itemsize for a in leaves)
        rows = max(1, CHUNK_BYTES // max(width, 1))
    return [min(rows, count - start) for start in range(0, count, rows)] or [0]


def _items(path: str, leaf: Any, extents: Sequence[int]) -> Iterator[Any]:
    """Yield the arguments of tasks for the rows of one array."""
    if _is_dask(leaf):
        zeros = (0,) * (leaf.ndim - 1)
        for i in range(len(extents)):
            yield (leaf.name, i, *zeros)
        return
    start = 0
    where = _memory_map_location(leaf)
    for count in extents:
        if where is None:
            yield Rows(leaf[start : start + count])
        else:
            file, offset = where
            shape = (count, *leaf.shape[1:])
            yield Piece(file, leaf.dtype, offset + start * leaf.strides[0], shape)
        start += count


def require_sendable(chunked: Chunks) -> None:
    """Raise `ArgumentError` for arrays in the client's memory that are too large to send with
    tasks."""
    rows = [item.array for items in chunked.items for item in items if isinstance(item, Rows)]
    total = sum(a.nbytes for a in rows)
    if total > SENT_BYTES:
        raise ArgumentError(
            f"the data are {quantity(total, 'B')} in the client's memory, too much to be sent "
            "with tasks",
            hint="write them to a file that all workers can read, and open it by "
            'np.load(file, mmap_mode="r"); or scatter them as chunks of dask.array',
        )


def _memory_map_location(leaf: Array) -> tuple[str, int] | None:
    """Return the file of a memory map and the offset of its first element, if it is contiguous.

    Changes in a map of mode "c" are not in its file, so None is returned for it.
    """
    if not isinstance(leaf, np.memmap) or leaf.filename is None or not leaf.flags.c_contiguous:
        return None
    if leaf.mode == "c":
        return None
    root: Any = leaf
    while isinstance(root.base, np.memmap):
        root = root.base
    first = leaf.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return str(Path(leaf.filename).absolute()), root.offset + first
