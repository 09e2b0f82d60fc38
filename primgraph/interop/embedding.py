"""Graphs as functions of JAX and torch, which differentiate them by graphs of primgraph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, final

import numpy as np

from primgraph.base.locks import cached_property
from primgraph.errors import ArgumentError, FeedError, UnsupportedError
from primgraph.interop.embedded_torch import (
    apply_in_torch,
    define_operator,
    kind_in_torch,
    number_of,
)
from primgraph.ir.frontend.containers import unflatten_value
from primgraph.ir.graph import Graph, Value
from primgraph.ir.sizes import output_types_for
from primgraph.program.compile import compile, source_of
from primgraph.transforms.batch_graphs import batch
from primgraph.transforms.lower import lower
from primgraph.transforms.optimize.clean_up import clean_up
from primgraph.transforms.pullback import pullback, pushforward

# The kinds of dtypes that are converted to each; that of bfloat16 is V.
_CONVERTED = {"b": "b", "i": "biu", "u": "biu", "f": "biufV"}


def to_torch(kernel: Any, *, target: str | None = None) -> Callable[..., Any]:
    """Return a function of torch's tensors that runs a kernel, or that of a graph.

    `target` is that of `pg.compile`, or of the kernel. The function takes and returns containers as
    the traced one did, and shares memory with tensors on the CPU. Gradients of any order, forward
    mode and batches of `torch.func` are kernels too, and `torch.compile` calls the kernel as an
    operator, which it differentiates once. Arguments are converted to the
    dtypes of the inputs, but no float to an integer, and no number to a boolean: that is a
    `FeedError`. Raises `ArgumentError` for what is no graph and no kernel that `pg.compile`
    returned, `UnsupportedError` for complex numbers.

    >>> import torch
    >>> doubled = pg.compile(pg.trace(lambda x: 2.0 * x, pg.spec(3)))
    >>> pg.interop.to_torch(doubled)(torch.ones(3, dtype=torch.float64))
    tensor([2., 2., 2.], dtype=torch.float64)
    """
    torch, (graph, embedded) = import_module("torch"), _embed("to_torch", kernel, target)
    define_operator(torch)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = []
        for x, v in zip(graph.in_order(args, kwargs), graph.inputs, strict=True):
            tensor, dtype = torch.as_tensor(x), getattr(torch, v.type.dtype.name)
            _require_fit(v, tensor, kind_in_torch(tensor) in _CONVERTED[v.type.dtype.kind])
            given.append(tensor.to(dtype))
        return _in_form(graph, apply_in_torch(torch, embedded, given))

    call.__name__ = call.__qualname__ = graph.name
    return call


def to_jax(kernel: Any, *, target: str | None = None) -> Callable[..., Any]:
    """Return a function of JAX's arrays that calls a kernel, or that of a graph, on the CPU.

    `target` is that of `pg.compile`, or of the kernel. `jax.jit`, `jax.vmap`, sample by sample, and
    reverse mode of any order apply; JAX has no forward mode of it. For source that JAX compiles
    itself, see `pg.compile(graph, target="jax")`. Arguments are converted to the dtypes of the
    inputs, but no float to an integer, no number to a boolean, and none to 64 bits unless JAX has
    these: that is a `FeedError`. Other errors are those of `to_torch`.

    >>> import jax.numpy as jnp
    >>> doubled = pg.compile(pg.trace(lambda x: 2.0 * x, pg.spec(3, "float32")))
    >>> pg.interop.to_jax(doubled)(jnp.ones(3))
    Array([2., 2., 2.], dtype=float32)
    """
    jax, (graph, embedded) = import_module("jax"), _embed("to_jax", kernel, target)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = []
        for x, v in zip(graph.in_order(args, kwargs), graph.inputs, strict=True):
            dtype, array = v.type.dtype, jax.numpy.asarray(x)
            _require_fit(v, array, array.dtype.kind in _CONVERTED[dtype.kind])
            if jax.dtypes.canonicalize_dtype(dtype) != dtype:
                raise FeedError(
                    f"input {v.hint!r} is {v.type}, but JAX rounds numbers of 64 bits to 32",
                    hint="call jax.config.update('jax_enable_x64', True) first",
                )
            given.append(jax.numpy.asarray(array, dtype))
        return _in_form(graph, _function_of_jax(jax, embedded)(*given))

    call.__name__ = call.__qualname__ = graph.name
    return call


@final
class _Embedded:
    """A graph of primitives with its kernel; `pullback` is that of its cotangents.

    `floats` are the inputs that have cotangents, `inexact` the outputs.
    """

    def __init__(self, graph: Graph, target: str | None) -> None:
        self.graph, self._target = graph, target
        self.floats = [i for i, v in enumerate(graph.inputs) if v.type.is_float]
        self.inexact = [i for i, v in enumerate(graph.outputs) if v.type.is_float]
        self._kernel = compile(graph, target=target)
        # The function of JAX or torch, when it has been made.
        self.function: Any = None
        self._batches: dict[Any, _Embedded] = {}
        self.number = number_of(self)

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the results for arrays of NumPy, as arrays."""
        return [np.asarray(x) for x in self._kernel(*arrays)]

    @cached_property
    def pullback(self) -> _Embedded:
        """Return the cotangents of float inputs, from all inputs and those of float outputs."""
        return self._derived(pullback)

    @cached_property
    def pushforward(self) -> _Embedded:
        """Return the tangents of float outputs, from all inputs and those of float inputs."""
        return self._derived(pushforward)

    def _derived(self, derivative: Callable[..., Graph]) -> _Embedded:
        outputs = [self.graph.outputs[i] for i in self.inexact]
        found = derivative(self.graph.with_outputs(outputs), self.floats)
        return _Embedded(clean_up(found), self._target)

    def batched(self, size: int, axes: tuple[int | None, ...]) -> _Embedded:
        """Return the results for a batch of samples; inputs have an axis of it first, or None."""
        if (size, axes) not in self._batches:
            found = clean_up(batch(self.graph, size, axes))
            self._batches[size, axes] = _Embedded(found, self._target)
        return self._batches[size, axes]


def _embed(name: str, given: Any, target: str | None) -> tuple[Graph, _Embedded]:
    """Return a graph, or that of a kernel, and the same as one of primitives with a kernel."""
    source = (given, None) if isinstance(given, Graph) else source_of(given)
    if source is None:
        raise ArgumentError(
            f"{name} takes a graph, or a kernel of pg.compile, not {type(given).__name__}",
            hint="pg.trace(function, *specs) is a graph; a pickled kernel has lost its own",
        )
    graph, own = source
    types = (*graph.input_types, *graph.output_types)
    if any(t.dtype.kind == "c" for t in types):
        raise UnsupportedError(f"{name}: {graph.name} takes or returns complex numbers")
    return graph, _Embedded(lower(graph).in_form(None), own if target is None else target)


def _require_fit(value: Value, given: Any, may_cast: bool) -> None:
    """Raise `FeedError` for an argument of another shape, or whose dtype does not convert."""
    type = value.type
    fits = len(given.shape) == type.ndim and all(
        n == m for n, m in zip(given.shape, type.shape, strict=True) if isinstance(m, int)
    )
    if not fits or not may_cast:
        why = "the dtype does not convert" if fits else "the shapes differ"
        dtype = str(given.dtype).removeprefix("torch.")
        raise FeedError(f"input {value.hint!r} is {type}: {dtype}{[*given.shape]} is given, {why}")


def _in_form(graph: Graph, results: Sequence[Any]) -> Any:
    """Return results in the containers of the graph."""
    if graph.form is None:
        return [*results]
    return unflatten_value(graph.form.results, iter(results))


def _function_of_jax(jax: Any, embedded: _Embedded) -> Any:
    """Return the function that JAX differentiates by the pullback."""
    if embedded.function is not None:
        return embedded.function

    def call(*arrays: Any) -> Any:
        types = output_types_for(embedded.graph, arrays)
        shapes = tuple([jax.ShapeDtypeStruct(t.shape, t.dtype) for t in types])
        return jax.pure_callback(_run, shapes, *arrays, vmap_method="sequential")

    def _run(*arrays: Any) -> tuple[Any, ...]:
        return tuple(embedded.run([np.asarray(a) for a in arrays]))

    def backward(arrays: Sequence[Any], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        cts = [cotangents[i] for i in embedded.inexact]
        found = iter(_function_of_jax(jax, embedded.pullback)(*arrays, *cts))
        return tuple([
            next(found) if i in embedded.floats else np.zeros(a.shape, jax.dtypes.float0)
            for i, a in enumerate(arrays)
        ])  # fmt: skip

    function = jax.custom_vjp(call)
    # Derivatives of the derivative go through the values, too.
    function.defvjp(lambda *arrays: (function(*arrays), arrays), backward)
    embedded.function = function
    return function
