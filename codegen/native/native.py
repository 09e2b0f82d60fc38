"""Native code for a graph: compiled C, and what NumPy does between, behind one call."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, final

import numpy as np

from primgraph.codegen.kernel import compile_graph
from primgraph.codegen.native.build import caller, library
from primgraph.codegen.native.nests import Nests, Outside, nests
from primgraph.codegen.native.source import Segment, Source, source
from primgraph.codegen.plan.schedule import schedule
from primgraph.codegen.run import blas
from primgraph.ir.dims import is_open
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.types import Shape, TensorType

# Below this many elements other threads are not let in meanwhile: that takes as long.
_FEW = 4096


@cache
def _native() -> Any:
    """The type whose objects call native functions."""
    path = str(caller())
    loader = importlib.machinery.ExtensionFileLoader("primgraph_call", path)
    spec = importlib.util.spec_from_loader("primgraph_call", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module.Native


def _told(type: TensorType) -> tuple[int, tuple[int, ...]]:
    return type.dtype.num, type.shape


def native_function(graph: Graph, alone: bool) -> Callable[..., Any] | None:
    """`function(*arrays)`: the results in a list, or the one that is alone; None for what does
    not fit. No function for a graph with stacks that grow."""
    steps = schedule(graph)
    if any(is_open(t.shape) for t in steps.types):
        return None
    plan = nests(steps)
    made = source(plan, "kernel")
    if all(isinstance(piece, Outside) for piece in made.order):
        held = None
    else:
        held = ctypes.CDLL(str(library(made.text)))
        for name, itemsize in (("dgemm", 64), ("sgemm", 32)):
            found = blas.product(name)
            if found is not None:
                ctypes.c_void_p.in_dll(held, f"pg_gemm_f{itemsize}").value = found[0]
                ctypes.c_int.in_dll(held, "pg_gemm_wide").value = found[1]
    inputs, types = list(range(plan.schedule.inputs)), plan.types
    if len(made.order) == 1 and isinstance(made.order[0], Segment):
        results = [types[v].with_shape(types[k].shape) for v, k in zip(plan.outputs, plan.schedule.outputs, strict=True)]
        return _called(plan, made, made.order[0], held, inputs, plan.outputs, alone, results)
    return _Mixed(plan, made, held, alone)


def _called(
    plan: Nests,
    made: Source,
    segment: Segment,
    held: Any,
    inputs: Sequence[int],
    outputs: Sequence[int],
    alone: bool,
    results: Sequence[TensorType] | None = None,
) -> Callable[..., Any]:
    types = plan.types
    if results is None:
        results = [types[v] for v in outputs]
    place = {v: k for k, v in enumerate([*inputs, *plan.constants, *outputs])}
    found: Callable[..., Any] = _native()(
        ctypes.cast(getattr(held, segment.name), ctypes.c_void_p).value,
        tuple([_told(types[v]) for v in inputs]),
        tuple(map(_told, results)),
        tuple(plan.constants.values()),
        tuple([place[v] for v in segment.arrays]),
        made.arena,
        alone,
        sum(types[v].size for v in segment.arrays) > _FEW,
        held,
    )
    return found


@final
class _Mixed:
    """Functions of C, and steps of NumPy's between them."""

    def __init__(self, plan: Nests, made: Source, held: Any, alone: bool) -> None:
        self.types = [plan.types[v] for v in range(plan.schedule.inputs)]
        self.alone = alone
        outputs = zip(plan.outputs, plan.schedule.outputs, strict=True)
        self.outputs = [(v, plan.types[k].shape) for v, k in outputs]
        self.constants = dict(plan.constants)
        # What runs, what it takes, by value and shape, and the values that it gives.
        self.pieces: list[tuple[Callable[..., Any], list[tuple[int, Shape]], tuple[int, ...]]] = []
        for piece in made.order:
            if isinstance(piece, Segment):
                read = tuple([v for v in piece.arrays if v not in piece.written and v not in plan.constants])
                run = _called(plan, made, piece, held, read, piece.written, False)
                taken = [(v, plan.types[v].shape) for v in read]
                self.pieces.append((run, taken, piece.written))
            else:
                shapes = [t.shape for t in piece.step.operands]
                taken = list(zip(piece.operands, shapes, strict=True))
                self.pieces.append((_by_numpy(piece), taken, piece.values))

    def __call__(self, *arrays: Any) -> Any:
        if not all(map(_fits, arrays, self.types)):
            return None
        values: dict[int, Any] = {**self.constants, **dict(enumerate(arrays))}
        for run, read, written in self.pieces:
            found = run(*[values[v].reshape(shape) for v, shape in read])
            values.update(zip(written, found, strict=True))
        results = [values[v].reshape(shape) for v, shape in self.outputs]
        return results[0] if self.alone else results


def _fits(array: Any, type: TensorType) -> bool:
    return (
        isinstance(array, np.ndarray)
        and array.dtype == type.dtype
        and array.shape == type.shape
        and array.flags.carray_ro if hasattr(array.flags, "carray_ro") else bool(array.flags.c_contiguous and array.flags.aligned)
    )


def _by_numpy(piece: Outside) -> Callable[..., Any]:
    eqn = piece.step.eqn
    inputs = [Value(v.type) for v in eqn.inputs]
    outputs = [Value(v.type) for v in eqn.outputs]
    graph = Graph(inputs, [Equation(eqn.op, tuple(inputs), eqn.params, tuple(outputs), eqn.source)], outputs)
    return compile_graph(graph)
