"""Ensembles of independent solves or trainings, computed in blocks of members."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any, TypeAlias, final

import numpy as np

from primgraph import tree
from primgraph.base.files import open_regular
from primgraph.base.frames import is_interruption
from primgraph.codegen.ir.limits import default_limits
from primgraph.codegen.runtime import blas
from primgraph.distributed.engine import dask_module, engine_of, new_name
from primgraph.distributed.parcels import Named, Parcel, open_parcel, pack
from primgraph.distributed.tasks import UNREADABLE, drop_dask_lines, write_atomically
from primgraph.errors import (
    ArgumentError,
    LoadError,
    OptionError,
    PrimgraphError,
    RunError,
    ShapeError,
)
from primgraph.ir.frontend.containers import unflatten_value
from primgraph.ir.slices import drop_formal
from primgraph.ir.types import INT64, TensorType
from primgraph.operators.promotion import array_of
from primgraph.program.archives import pack_arrays
from primgraph.program.compile import style_for
from primgraph.program.trace import trace
from primgraph.transforms.hoist import input_free
from primgraph.transforms.pipeline import optimize_graph

Array: TypeAlias = "np.ndarray[Any, Any]"

# Default number of members per task.
_BLOCK = 16
# Name of a result that is not in a container.
_ALONE = "result"


def vmap(
    f: Callable[..., Any],
    over: Any,
    *,
    key: int | None = None,
    client: Any = None,
    block: int = _BLOCK,
    out: str | os.PathLike[str] | None = None,
    compiled: bool = True,
) -> Any:
    """Apply `f` to each member of an ensemble; return the results, one row a member.

    `over` has the members: an array, or a container of arrays, whose rows `f` takes one by one; or
    their number, and `f` takes none. With a `key`, an integer, `f` takes a second argument: the
    integer key of the member, for `pg.random`, which depends on `key` and the number of the member
    only. A task computes `block` members.

    `f` is compiled once, and a member has the bits that it has alone. With `compiled=False` `f` is
    called as it is, with arrays, and may do anything, such as train a network; it returns an array
    or a dict of arrays. Changes in functions that it calls are then not noticed.

    With `out`, a folder that all workers reach, each finished block is written there, and a restart
    computes only the missing ones; the returned dask arrays read the files.

    Raises `ArgumentError` for what are no members, `OptionError` for a folder with the results of
    another ensemble, `ShapeError` for members that return other arrays than the first one, and the
    errors of a member, with its number.
    """
    engine = engine_of(client)
    _require_integers(block, key)
    leaves, structure, count = _members(over)
    parcel, large, form, said = _packed(f, leaves, structure, key is not None, compiled)
    folder = None if out is None else Path(out).absolute()
    if folder is not None:
        _claim(folder, _digest(f, said, leaves, count, key, block))
    blocks = _blocks_of(leaves, structure, count, block, key, folder)
    waiting = [b for b in blocks if b.file is None or not Path(b.file).exists()]

    def draft() -> list[tuple[Any, ...]]:
        work = f if parcel is None else engine.parcel(parcel)
        constants = engine.large(parcel, large) if parcel is not None else []
        return [(run_block, work, constants, b) for b in waiting]

    found: list[dict[str, Array]] = engine.gather_results("vmap", draft, []) if waiting else []
    for other, done in zip(waiting, found, strict=True):
        _require_same(other.start, _kinds(done), _kinds(found[0]), waiting[0].start)
    return _assembled(blocks, found, folder is not None, form)


def _require_integers(block: Any, key: Any) -> None:
    if type(block) is not int or block < 1:
        raise ArgumentError(f"block is an integer from 1 on, not {block!r:.60}")
    if key is not None and type(key) is not int:
        raise ArgumentError(f"key is an integer, not {key!r:.60}")


def _blocks_of(
    leaves: Sequence[Array],
    structure: tree.Structure,
    count: int,
    size: int,
    key: int | None,
    folder: Path | None,
) -> list[Block]:
    """Return the members in blocks of `size`, with the files of their results."""
    return [
        Block(
            start,
            tuple([a[start : start + size] for a in leaves]),
            None if leaves else min(size, count - start),
            structure,
            key,
            None if folder is None else str(folder / f"members-{start:09d}.npz"),
        )
        for start in range(0, count, size)
    ]


def _assembled(
    blocks: Sequence[Block], found: Sequence[dict[str, Array]], is_lazy: bool, form: Any
) -> Any:
    """Return the results of all blocks in the containers of one result."""
    if is_lazy:
        names, columns = _lazy([(b.file or "", len(b)) for b in blocks])
    else:
        names = list(found[0])
        columns = [np.concatenate([saved[name] for saved in found]) for name in names]
    if form is not None:
        return unflatten_value(form, iter(columns))
    return columns[0] if names == [_ALONE] else dict(zip(names, columns, strict=True))


def member_key(key: int, number: int) -> int:
    """Return the key of a member: a function of the ensemble's key and its number."""
    state = np.random.SeedSequence([abs(key), int(key < 0), number]).generate_state(1, np.uint64)
    return int(state[0] >> 1)


@final
@dataclass(frozen=True, slots=True)
class Block:
    """Block of members, from number `start` on, and the file for their results."""

    start: int
    arrays: tuple[Array, ...]
    count: int | None
    structure: tree.Structure
    key: int | None
    file: str | None

    def __len__(self) -> int:
        return len(self.arrays[0]) if self.count is None else self.count


Kinds: TypeAlias = "dict[str, tuple[tuple[int, ...], Any]]"


def _kinds(stacked: Mapping[str, Array]) -> Kinds:
    """Return shapes and dtypes of the results of a block's members."""
    return {name: (a.shape[1:], a.dtype) for name, a in stacked.items()}


def _require_same(number: int, found: Kinds, wanted: Kinds, first: int) -> None:
    """Raise `ShapeError` if a member returned other arrays than the first one."""
    if found != wanted:
        listed = (
            ", ".join(f"{name}: {dtype} of shape {shape}" for name, (shape, dtype) in kinds.items())
            for kinds in (found, wanted)
        )
        mine, theirs = listed
        raise ShapeError(f"member {number} returned {mine}, and member {first} {theirs}")


def run_block(work: Any, large: Sequence[Array], block: Block) -> dict[str, Array]:
    """Compute the results of a block by name; without rows if they are written to a file."""
    members: list[dict[str, Array]] = []
    kernel = open_parcel(work, large) if isinstance(work, Parcel | Named) else None
    for i in range(len(block)):
        number = block.start + i
        keys = [] if block.key is None else [member_key(block.key, number)]
        leaves = [np.array(a[i]) for a in block.arrays]
        try:
            if kernel is not None:
                found = blas.single_threaded(kernel)(*leaves, *[np.asarray(k) for k in keys])
                members.append({str(k): a for k, a in enumerate(found)})
            else:
                given = [tree.unflatten(block.structure, leaves)] if leaves else []
                members.append(_result_arrays(work(*given, *keys)))
        except PrimgraphError as error:
            error.origin = (f"in member {number}", *error.origin)
            raise drop_dask_lines(error) from error.__cause__
        except Exception as error:
            if is_interruption(error):
                raise
            text = f"member {number} failed: {type(error).__name__}: {error}"
            raise drop_dask_lines(RunError(text)) from error
    kinds = [{name: (a.shape, a.dtype) for name, a in m.items()} for m in members]
    try:
        for i, kind in enumerate(kinds):
            _require_same(block.start + i, kind, kinds[0], block.start)
    except ShapeError as error:
        raise drop_dask_lines(error) from None
    stacked = {name: np.stack([m[name] for m in members]) for name in members[0]}
    if block.file is None:
        return stacked
    # `np.savez` has parameters whose names may clash with names of results.
    content = pack_arrays(stacked)
    write_atomically(Path(block.file), lambda file: file.write(content))
    return {name: array[:0] for name, array in stacked.items()}


def _result_arrays(result: Any) -> dict[str, Array]:
    """Return the result of an uncompiled member as a dict of arrays."""
    named = result if isinstance(result, dict) else {_ALONE: result}
    found = {str(name): np.asarray(value) for name, value in named.items()}
    if not found:
        raise ArgumentError("a member returned a dict without arrays")
    for name, array in found.items():
        if array.dtype.kind not in "biufc":
            raise ArgumentError(
                f"a member returns an array, or a dict of arrays, not {named[name]!r:.60}"
            )
    return found


def _members(over: Any) -> tuple[list[Array], tree.Structure, int]:
    """Return the arrays with members along axis 0, and the number of members."""
    if type(over) is int:
        if over < 1:
            raise ArgumentError(f"an ensemble has at least one member, not {over}")
        return [], tree.structure(0.0), over
    leaves, structure = tree.flatten(over)
    arrays = [array_of(leaf) for leaf in leaves]
    counts = {a.shape[:1] for a in arrays}
    if len(counts) != 1 or () in counts or (0,) in counts:
        raise ArgumentError(
            "over has arrays with one number of members along axis 0, or is that number, not "
            f"{[a.shape for a in arrays]}"
        )
    return arrays, structure, arrays[0].shape[0]


def _packed(
    f: Callable[..., Any],
    leaves: Sequence[Array],
    structure: tree.Structure,
    keyed: bool,
    compiled: bool,
) -> tuple[Parcel | None, list[Array], Any, str]:
    """Return the packed kernel of one member, its large constants, the form of its result, and its
    computation as text without source lines. There are none if it is not to be compiled."""
    if not compiled:
        return None, [], None, ""
    specs = [TensorType(a.shape[1:], a.dtype) for a in leaves]
    given = [tree.unflatten(structure, specs)] if leaves else []
    graph = trace(f, *given, *([TensorType((), INT64)] if keyed else []))
    form = graph.form
    assert form is not None
    plain = drop_formal(optimize_graph(graph.in_form(None)))
    limits = replace(default_limits(), processors=1)
    parts: tuple[Any, ...] = plain, style_for("planned", None), {}, limits, input_free(plain), ()
    parcel, large = pack(parts)
    return parcel, large, form.results, f"{parcel.version} {plain}"


def _digest(
    f: Any, said: str, leaves: Sequence[Array], count: int, key: int | None, block: int
) -> str:
    """Return the identity of an ensemble; `said` is the text of a compiled `f`."""
    found = hashlib.sha256(repr((count, key, block)).encode())
    name = f"{getattr(f, '__module__', '')}.{getattr(f, '__qualname__', type(f).__qualname__)}"
    code = getattr(f, "__code__", None)
    found.update((said or f"{name} {_describe_code(code)}").encode())
    for array in leaves:
        found.update(repr((array.shape, array.dtype.str)).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _describe_code(item: Any) -> str:
    """Return a description of code without its location, equal in all processes."""
    if isinstance(item, CodeType):
        return f"{item.co_code.hex()} {item.co_names} {[_describe_code(c) for c in item.co_consts]}"
    return repr(sorted(map(repr, item)) if isinstance(item, frozenset) else item)


def _claim(folder: Path, digest: str) -> None:
    """Mark `folder` as that of an ensemble, unless it belongs to another one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionError(f"out is a folder, and {folder} cannot be one: {error}") from None
    about = folder / "ensemble.json"
    if about.exists():
        try:
            with open_regular(about) as file:
                known = json.load(file)["digest"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LoadError(f"{about} does not tell of an ensemble: {error}") from None
        if known != digest:
            raise OptionError(
                f"{folder} has results of another ensemble: of another function, other members, "
                "keys or blocks",
                hint="name another folder, or remove this one",
            )
        return
    if any(folder.glob("members-*.npz")):
        raise OptionError(f"{folder} has results, and nothing that tells of what")
    text = json.dumps({"digest": digest}).encode()
    write_atomically(about, lambda file: file.write(text))


def _lazy(files: Sequence[tuple[str, int]]) -> tuple[list[str], list[Any]]:
    """Return names of results, and dask arrays that read them from files with these row counts."""
    module = dask_module("dask.array")
    first = _read_results(files[0][0])
    kinds = {name: (array.shape[1:], array.dtype) for name, array in first.items()}
    columns = []
    for name, (shape, dtype) in kinds.items():
        own, zeros = new_name(f"members-{name}"), (0,) * len(shape)
        layer = {(own, i, *zeros): (read_result, file, name) for i, (file, _) in enumerate(files)}
        extents = tuple([count for _, count in files]), *((n,) for n in shape)
        columns.append(module.Array(layer, own, extents, dtype=dtype))
    return list(kinds), columns


def read_result(file: str, name: str) -> Array:
    """Read one result of the members from a file."""
    try:
        return _read_results(file, [name])[name]
    except LoadError as error:
        raise drop_dask_lines(error) from None


def _read_results(file: str, names: Sequence[str] | None = None) -> dict[str, Array]:
    """Read results from a file. Raises `LoadError` if it is damaged."""
    try:
        with open_regular(file) as archive, np.load(archive) as found:
            return {name: found[name] for name in (found.files if names is None else names)}
    except UNREADABLE as error:
        raise LoadError(
            f"{file} has no results of an ensemble: {error}",
            hint="remove it, and its members are computed again",
        ) from None
