"""Lazy dask arrays of functions of samples, mapped over chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from primgraph import tree
from primgraph.distributed.chunks import chunks
from primgraph.distributed.engine import dask_module, engine_of, new_name
from primgraph.distributed.kernels import Kernels
from primgraph.distributed.parcels import Parcel
from primgraph.distributed.summands import (
    function_summand,
    jacobian_rows,
    require_rows,
    rows_of,
)
from primgraph.distributed.tasks import item_of, run_rows, same
from primgraph.errors import ArgumentError, ShapeError
from primgraph.ir.frontend.containers import unflatten_value

Array: TypeAlias = "np.ndarray[Any, Any]"


def map(f: Callable[..., Any], data: Any, params: Any = None, client: Any = None) -> Any:
    """Apply `f` to all rows of `data`; return dask arrays in the containers of its result.

    `f(data)`, or `f(params, data)` with `params`, is called with some rows, `*data` for a tuple,
    and returns a row for each. Types, shapes and chunks are known before anything is computed; use
    `compute()`, `to_zarr` and other methods of dask. For `data` see `pg.distributed.chunks`;
    `client` is needed only to load files and delayed chunks.

    Raises `MixedSamplesError` where a row of a result depends on other rows, with the line, and
    `ShapeError` for a result without rows.
    """
    engine = engine_of(client)
    chunked = chunks(data).load_unknown_rows(engine)
    summand = function_summand(f, params, chunked.structure, chunked.columns)
    kernels = Kernels(summand, chunked, rows_of)
    rows = next((n for n in chunked.rows if n), 1)
    drawn = summand.graph_for_rows(rows)
    require_rows(drawn)
    columns = [t.shape[1:] for t in drawn.parts.each.output_types]
    types = [t.dtype for t in drawn.parts.each.output_types]
    found = _lazy(kernels, getattr(f, "__name__", "map"), [*zip(columns, types, strict=True)])
    form = drawn.raw.form
    assert form is not None
    return unflatten_value(form.results, iter(found))


def jacobian(f: Callable[..., Any], params: Any, data: Any, client: Any = None) -> Any:
    """Compute the Jacobian of `f` by `params` for each row, as dask arrays.

    They are in the containers of `params`, each of shape `(rows, *shape of a row, *param.shape)`,
    chunked by rows. Arguments and errors are those of `pg.distributed.map`; `f` returns one array.
    """
    engine = engine_of(client)
    chunked = chunks(data).load_unknown_rows(engine)
    summand = function_summand(f, params, chunked.structure, chunked.columns)
    if not summand.params:
        raise ArgumentError("there are no parameters: params has no arrays")
    kernels = Kernels(summand, chunked, jacobian_rows)
    rows = next((n for n in chunked.rows if n), 1)
    drawn = summand.graph_for_rows(rows)
    require_rows(drawn)
    if len(drawn.parts.each.outputs) != 1:
        raise ShapeError(f"a function with one result is needed: {summand.name} has several")
    (of_row,) = drawn.parts.each.output_types
    kinds = [
        ((*of_row.shape[1:], *a.shape), np.result_type(of_row.dtype, a.dtype))
        for a in summand.params
    ]
    found = _lazy(kernels, f"jacobian-{summand.name}", kinds)
    return tree.unflatten(tree.structure(params), found)


def _lazy(kernels: Kernels, title: str, kinds: Sequence[tuple[tuple[int, ...], Any]]) -> list[Any]:
    """Return a dask array for each result of the kernels, with these row shapes and dtypes."""
    module = dask_module("dask.array")
    graphs = dask_module("dask.highlevelgraph").HighLevelGraph
    chunked, summand = kernels.chunks, kernels.summand
    name = new_name(title)
    given = kernels.common_arguments(summand.params)
    layer: dict[Any, Any] = {(name, "given"): (same, given)}
    sent: dict[str, list[Any]] = {}
    for i in chunked.nonempty_chunks():
        parcel, large = kernels.pack_parcel(chunked.rows[i])
        if parcel.digest not in sent:
            sent[parcel.digest] = _add_kernel_tasks(layer, name, parcel, large)
        kernel, *constants = sent[parcel.digest]
        shared = name, "given"
        task = run_rows, kernel, constants, shared, chunked.chunk(i), chunked.items[i]
        layer[name, i] = task
    whole = graphs.from_collections(name, layer, dependencies=chunked.sources)
    found = []
    for k, (shape, dtype) in enumerate(kinds):
        own, layer = f"{name}-{k}", {}
        zeros = (0,) * len(shape)
        for i, count in enumerate(chunked.rows):
            made: tuple[Any, ...] = (item_of, (name, i), k)
            if not count:
                made = (np.zeros, (0, *shape), dtype)
            layer[own, i, *zeros] = made
        graph = graphs({**whole.layers, own: layer}, {**whole.dependencies, own: {name}})
        extents = chunked.rows, *((n,) for n in shape)
        found.append(module.Array(graph, own, extents, dtype=dtype))
    return found


def _add_kernel_tasks(
    layer: dict[Any, Any], name: str, parcel: Parcel, large: Sequence[Array]
) -> list[Any]:
    """Return the keys of a kernel and its large constants, each a task."""
    keys: list[Any] = [(name, "kernel", parcel.digest)]
    layer[keys[0]] = (same, parcel)
    for digest, array in zip(parcel.large, large, strict=True):
        keys.append((name, "constant", digest))
        layer[keys[-1]] = (np.asarray, array)
    return keys
