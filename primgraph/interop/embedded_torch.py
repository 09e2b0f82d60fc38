"""Kernels as functions of torch: for autograd, for `torch.func`, and one operator to compile."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol
from weakref import WeakValueDictionary

from primgraph.ir.graph import Graph
from primgraph.ir.sizes import output_types_for
from primgraph.ir.types import FLOAT64, TensorType


class Embedded(Protocol):
    """A graph of primitives with its kernel, and the graphs of its derivatives and batches.

    `floats` are the inputs that have cotangents, `inexact` the outputs. `function` is that of
    torch, and `number` that of the kernel, when they are made.
    """

    graph: Graph
    floats: list[int]
    inexact: list[int]
    function: Any
    number: int

    @property
    def pullback(self) -> Embedded: ...

    @property
    def pushforward(self) -> Embedded: ...

    def run(self, arrays: Sequence[Any]) -> list[Any]: ...

    def batched(self, size: int, axes: tuple[int | None, ...]) -> Embedded: ...


_counter = itertools.count(1)
# Kernels by the numbers that compiled code has.
_kernels: WeakValueDictionary[int, Embedded] = WeakValueDictionary()


def apply_in_torch(torch: Any, embedded: Embedded, given: Sequence[Any]) -> Sequence[Any]:
    """Apply a kernel to tensors, in a step that torch differentiates by its pullback.

    `torch.compile` has the operator of `define_operator` in its graph.
    """
    if torch.compiler.is_compiling():
        found: Sequence[Any] = torch.ops.primgraph.run(embedded.number, list(given))
        return found
    if embedded.function is None:
        embedded.function = _function_of_torch(torch, embedded)
    found = embedded.function.apply(*given)
    return found


def kind_in_torch(tensor: Any) -> str:
    """Return the kind of NumPy's dtype for that of a tensor, `i` for integers."""
    if tensor.is_complex():
        return "c"
    return "f" if tensor.is_floating_point() else "b" if str(tensor.dtype) == "torch.bool" else "i"


def number_of(embedded: Embedded) -> int:
    """Return a new number, by which compiled code finds a kernel as long as it lives."""
    number = next(_counter)
    _kernels[number] = embedded
    return number


def _run(torch: Any, embedded: Embedded, tensors: Sequence[Any]) -> list[Any]:
    """Return the results of a kernel, on the device of the first tensor."""
    device = tensors[0].device if tensors else None
    arrays = embedded.run([t.detach().cpu().resolve_neg().numpy() for t in tensors])
    return [torch.from_numpy(a).to(device) for a in arrays]


def _backward(torch: Any, embedded: Embedded, ctx: Any, cotangents: Sequence[Any]) -> list[Any]:
    """Return the cotangents of the inputs, None for those that are not floats."""
    cts = [cotangents[i] for i in embedded.inexact]
    found = apply_in_torch(torch, embedded.pullback, [*ctx.saved_tensors, *cts])
    by_place = dict(zip(embedded.floats, found, strict=True))
    return [by_place.get(i) for i in range(len(embedded.graph.inputs))]


def _function_of_torch(torch: Any, embedded: Embedded) -> Any:
    """Return the step of autograd and of `torch.func`: reverse and forward mode, and batches."""

    def forward(*tensors: Any) -> Any:
        return tuple(_run(torch, embedded, tensors))

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
        ctx.mark_non_differentiable(*(t for t in output if not t.is_floating_point()))

    def backward(ctx: Any, *cotangents: Any) -> Any:
        return tuple(_backward(torch, embedded, ctx, cotangents))

    def jvp(ctx: Any, *tangents: Any) -> Any:
        given, floats = ctx.saved_tensors, embedded.floats
        moves = [torch.zeros_like(given[i]) if tangents[i] is None else tangents[i] for i in floats]
        found = apply_in_torch(torch, embedded.pushforward, [*given, *moves])
        by_place = dict(zip(embedded.inexact, found, strict=True))
        return tuple([by_place.get(i) for i in range(len(embedded.graph.outputs))])

    def vmap(info: Any, axes: Any, *tensors: Any) -> Any:
        pairs = zip(tensors, axes, strict=True)
        moved = [x if axis is None else x.movedim(axis, 0) for x, axis in pairs]
        leading = tuple([None if axis is None else 0 for axis in axes])
        found = apply_in_torch(torch, embedded.batched(info.batch_size, leading), moved)
        return tuple(found), (0,) * len(found)

    # torch asks for the signature in each call.
    vars(forward)["__signature__"] = inspect.signature(forward)
    methods = {f.__name__: staticmethod(f) for f in (forward, setup_context, backward, jvp, vmap)}
    return type(embedded.graph.name, (torch.autograd.Function,), methods)


@cache
def define_operator(torch: Any) -> None:
    """Define the operator of torch that runs the kernel of a number."""

    def run(number: int, tensors: list[Any]) -> list[Any]:
        return _run(torch, _kernels[number], tensors)

    def run_fake(number: int, tensors: list[Any]) -> list[Any]:
        # Numbers in place of torch's own symbolic sizes: other sizes are compiled again.
        shapes = [TensorType(tuple(map(int, t.shape)), FLOAT64) for t in tensors]
        types = output_types_for(_kernels[number].graph, shapes)
        device = tensors[0].device if tensors else None
        return [
            torch.empty(t.shape, dtype=getattr(torch, t.dtype.name), device=device) for t in types
        ]

    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.number, tensors = inputs
        ctx.save_for_backward(*tensors)

    def backward(ctx: Any, cotangents: Sequence[Any]) -> Any:
        return None, _backward(torch, _kernels[ctx.number], ctx, cotangents)

    schema = "(int number, Tensor[] tensors) -> Tensor[]"
    operator: Any = torch.library.custom_op("primgraph::run", run, mutates_args=(), schema=schema)
    operator.register_fake(run_fake)
    operator.register_autograd(backward, setup_context=setup_context)
