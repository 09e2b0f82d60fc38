"""Native code for a graph: compiled C, and what NumPy does between, behind one call."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.codegen.native.build import caller, compiler, library
from primgraph.codegen.native.items import Control, Nests, Outside
from primgraph.codegen.native.nests import nests
from primgraph.codegen.native.source import Segment, Source, source
from primgraph.codegen.plan.program import Options
from primgraph.codegen.plan.schedule import Step, schedule
from primgraph.codegen.run import blas
from primgraph.ir.dims import is_open, typical
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.types import Shape, TensorType
from primgraph.primitives.control import while_loop

# Below this many elements other threads are not let in meanwhile: that takes as long.
_FEW = 4096


@cache
def _caller() -> Any:
    """The extension module that calls native functions."""
    path = str(caller())
    loader = importlib.machinery.ExtensionFileLoader("primgraph_call", path)
    spec = importlib.util.spec_from_loader("primgraph_call", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _has_long_loops(plan: Nests) -> bool:
    """Whether there may be loops of so many operations that other threads would wait for long."""
    steps = [item.step for item in plan.items if isinstance(item, Control)]
    return any(
        step.op is while_loop or typical(step.op.flops(step.operands, step.params)) > _FEW
        for step in steps
    )


def _told(type: TensorType) -> tuple[int, tuple[int, ...]]:
    return type.dtype.num, type.shape


def native_function(
    graph: Graph, options: Options, by_numpy: Callable[[Graph], Callable[..., Any]]
) -> Callable[..., Any] | None:
    """`function(*arrays)`, whose arrays are the inputs and then those that are handed for results:
    the results in a list, or the one that is alone; None for what does not fit.

    `by_numpy` compiles what this back end cannot spell. No function for a graph with stacks that
    grow, or where there is no compiler.
    """
    steps = schedule(graph)
    if compiler() is None or any(is_open(t.shape) for t in steps.types):
        return None
    plan = nests(steps)
    made = source(plan, "kernel")
    donated = dict(options.donated)
    modes = [
        _HANDED if k in options.given else donated.get(k, _MADE) for k in range(len(plan.outputs))
    ]
    if len(made.order) == 1 and isinstance(made.order[0], Segment):
        pairs = zip(plan.outputs, steps.outputs, strict=True)
        results = [plan.types[v].with_shape(steps.types[k].shape) for v, k in pairs]
        parts = _Parts(range(steps.inputs), plan.outputs, results, modes, options.alone)
        return _called(plan, made, made.order[0], _held(made), parts)
    return _Mixed(plan, made, modes, options.alone, by_numpy)


_MADE, _HANDED = -1, -2


def _held(made: Source) -> ctypes.CDLL:
    """The library of the functions of C, which knows of BLAS."""
    held = ctypes.CDLL(str(library(made.text)))
    for name, bits in (("dgemm", 64), ("sgemm", 32)):
        found = blas.product(name)
        if found is not None:
            ctypes.c_void_p.in_dll(held, f"pg_gemm_f{bits}").value = found[0]
            ctypes.c_int.in_dll(held, "pg_gemm_wide").value = found[1]
    main = threading.main_thread().ident
    ctypes.c_void_p.in_dll(held, "pg_stop").value = _caller().stop_address(main)
    return held


class _Parts(NamedTuple):
    """What a function of C takes and gives: values, types of results, and where these are left."""

    inputs: Sequence[int]
    outputs: Sequence[int]
    results: Sequence[TensorType]
    modes: Sequence[int]
    alone: bool


def _called(
    plan: Nests, made: Source, segment: Segment, held: ctypes.CDLL, parts: _Parts
) -> Callable[..., Any]:
    types = plan.types
    place = {v: k for k, v in enumerate([*parts.inputs, *plan.constants, *parts.outputs])}
    found: Callable[..., Any] = _caller().Native(
        ctypes.cast(getattr(held, segment.name), ctypes.c_void_p).value,
        tuple([_told(types[v]) for v in parts.inputs]),
        tuple(map(_told, parts.results)),
        tuple(plan.constants.values()),
        tuple([place[v] for v in segment.arrays]),
        tuple(parts.modes),
        made.arena,
        parts.alone,
        sum(types[v].size for v in segment.arrays) > _FEW or _has_long_loops(plan),
        held,
    )
    return found


@final
class _Mixed:
    """Functions of C, and steps of NumPy's between them."""

    def __init__(
        self,
        plan: Nests,
        made: Source,
        modes: list[int],
        alone: bool,
        by_numpy: Callable[[Graph], Callable[..., Any]],
    ) -> None:
        steps = plan.schedule
        self.types = list(steps.types[: steps.inputs])
        self.modes, self.alone = modes, alone
        pairs = zip(plan.outputs, steps.outputs, strict=True)
        self.outputs = [(v, steps.types[k].shape) for v, k in pairs]
        self.constants = dict(plan.constants)
        # What runs, what it takes, by value and shape, and the values that it gives.
        self.pieces: list[tuple[Callable[..., Any], list[tuple[int, Shape]], tuple[int, ...]]] = []
        has_c = any(isinstance(piece, Segment) for piece in made.order)
        held = _held(made) if has_c else None
        for piece in made.order:
            if isinstance(piece, Outside):
                shapes = [t.shape for t in piece.step.operands]
                taken = list(zip(piece.operands, shapes, strict=True))
                self.pieces.append((by_numpy(_graph_of(piece.step)), taken, piece.values))
                continue
            known = {*piece.written, *plan.constants}
            read = [v for v in piece.arrays if v not in known]
            types = [plan.types[v] for v in piece.written]
            parts = _Parts(read, piece.written, types, [_MADE] * len(types), False)
            assert held is not None
            run = _called(plan, made, piece, held, parts)
            taken = [(v, plan.types[v].shape) for v in read]
            self.pieces.append((run, taken, piece.written))

    def __call__(self, *arrays: Any) -> Any:
        count, handed = len(self.types), self.modes.count(_HANDED)
        if len(arrays) != count + handed or not all(map(_fits, arrays, self.types)):
            return None
        if not all(arrays[j].flags.writeable for j in self.modes if j >= 0):
            return None
        values: dict[int, Any] = {**self.constants, **dict(enumerate(arrays[:count]))}
        for run, read, written in self.pieces:
            found = run(*[values[v].reshape(shape) for v, shape in read])
            if found is None:
                return None
            values.update(zip(written, found, strict=True))
        results = [values[v].reshape(shape) for v, shape in self.outputs]
        rest = iter(arrays[count:])
        for k, mode in enumerate(self.modes):
            if mode == _MADE:
                # Memory that something else shares, or is not to be written, is not handed out.
                if (
                    results[k].base is not None
                    and results[k].base is not values[self.outputs[k][0]]
                ):
                    results[k] = results[k].copy()
                continue
            target = next(rest) if mode == _HANDED else arrays[mode]
            np.copyto(target, results[k])
            results[k] = target
        return results[0] if self.alone else results


def _fits(array: Any, type: TensorType) -> bool:
    """Whether that is an array of exactly this type, in row-major order."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype == type.dtype
        and array.shape == type.shape
        and bool(array.flags.c_contiguous and array.flags.aligned)
    )


def _graph_of(step: Step) -> Graph:
    """A graph of one step alone."""
    eqn = step.eqn
    inputs, outputs = ([Value(v.type) for v in vs] for vs in (eqn.inputs, eqn.outputs))
    alone = Equation(eqn.op, tuple(inputs), eqn.params, tuple(outputs), eqn.source)
    return Graph(inputs, [alone], outputs)
