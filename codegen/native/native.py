"""Native code for a graph: compiled C, and what NumPy does between, behind one call."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.machinery
import importlib.util
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.codegen.native.build import (
    FailedError,
    UnavailableError,
    caller,
    compiler,
    has_products,
    library,
)
from primgraph.codegen.native.cache import forget
from primgraph.codegen.native.choice import tell_of_lapack
from primgraph.codegen.native.growing import stays_inside
from primgraph.codegen.native.items import Control, Nests, Outside
from primgraph.codegen.native.nests import nests
from primgraph.codegen.native.regions import LIMITS
from primgraph.codegen.native.source import Segment, Source, origin_of, source
from primgraph.codegen.native.told import SIZES, Told, shape_at
from primgraph.codegen.plan.limits import Limits, default_limits
from primgraph.codegen.plan.program import Options
from primgraph.codegen.plan.schedule import Step, schedule
from primgraph.codegen.run import blas, threads
from primgraph.errors import BuildError, CompileError
from primgraph.ir.dims import typical
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.sizes import at_sizes
from primgraph.ir.types import INT64, Shape, TensorType
from primgraph.primitives.control import while_loop

# Below this many elements other threads are not let in meanwhile: that takes as long.
_FEW = 4096
# For how many sets of sizes a step of NumPy's is kept.
_KEPT = 64
_NAME = "kernel"


@cache
def _caller() -> Any:
    """The extension module that calls native functions, and has their threads."""
    path = str(caller())
    loader = importlib.machinery.ExtensionFileLoader("primgraph_call", path)
    spec = importlib.util.spec_from_loader("primgraph_call", loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        forget(Path(path))
        raise UnavailableError(f"what was compiled cannot be loaded: {error}") from error
    threads.follow(module.set_threads)
    return module


def direct_type(kind: type) -> type | None:
    """The class derived from `kind` whose calls go to native code first; None if there is none."""
    try:
        caller = _caller()
        known: dict[type, type] = caller.__dict__.setdefault("kinds", {})
        if kind not in known:
            known[kind] = caller.direct_type(kind)
        return known[kind]
    except CompileError:
        # Whoever compiles tells why.
        return None


def direct(kernel: Any, native: Any, pack: Callable[..., Any] | None, inputs: int) -> None:
    """Let calls of `kernel`, which is new and of such a class, go to `native` code first.

    `pack` makes of a list of results what a call returns.
    """
    _caller().direct(kernel, native, pack, inputs)


def _has_long_loops(plan: Nests) -> bool:
    """Whether there may be loops of so many operations that other threads would wait for long."""
    steps = [item.step for item in plan.items if isinstance(item, Control)]
    return any(
        step.op is while_loop or typical(step.op.flops(step.operands, step.params)) > _FEW
        for step in steps
    )


def native_function(
    graph: Graph,
    options: Options,
    limits: Limits,
    by_numpy: Callable[..., Callable[..., Any]],
) -> Callable[..., Any] | None:
    """`function(*arrays)`, whose arrays are the inputs and then those that are handed for results:
    the results in a list, or the one that is alone; None for what does not fit.

    `by_numpy` compiles what this back end cannot spell. No function for a graph with stacks that
    grow, and none, with a warning, where nothing can be compiled.

    Raises `CompileError` where a compiler refuses its source.
    """
    try:
        return _function(graph, options, limits, by_numpy)
    except UnavailableError as error:
        warnings.warn(f"{error.message}: NumPy runs instead", RuntimeWarning, stacklevel=2)
    except FailedError as error:
        raise CompileError(error.message, origin=error.origin) from None
    return None


def _function(
    graph: Graph,
    options: Options,
    limits: Limits,
    by_numpy: Callable[..., Callable[..., Any]],
) -> Callable[..., Any] | None:
    steps = schedule(graph)
    if compiler() is None:
        return None
    told = Told(graph) if graph.sizes else None
    plan = nests(steps, LIMITS if limits == default_limits() else limits)
    if not stays_inside(plan):
        return None
    made = source(plan, _NAME, told)
    arrays = {v for piece in made.order if isinstance(piece, Segment) for v in piece.arrays}
    library = _Library(
        made, told, sum([plan.types[v].size for v in arrays - {SIZES}]), options.loose
    )
    donated = dict(options.donated)
    modes = [
        donated.get(k, _HANDED if k in options.given else _MADE) for k in range(len(plan.outputs))
    ]
    if len(made.order) == 1 and isinstance(made.order[0], Segment):
        pairs = zip(plan.outputs, steps.outputs, strict=True)
        results = [plan.types[v].with_shape(steps.types[k].shape) for v, k in pairs]
        parts = _Parts(range(steps.inputs), plan.outputs, results, modes, options.alone)
        return _called(plan, library, made.order[0], parts)
    return _Mixed(plan, library, graph, modes, options.alone, by_numpy)


_MADE, _HANDED = -1, -2


@final
class _Library:
    """The functions of C, made when one is asked for first: what they are called with is known."""

    def __init__(self, made: Source, told: Told | None, elements: int, loose: bool) -> None:
        self.made, self.told, self.elements, self.loose = made, told, elements, loose
        self._held: ctypes.CDLL | None = None

    @property
    def held(self) -> ctypes.CDLL:
        if self._held is None:
            self._held = self._compiled()
        return self._held

    def _compiled(self) -> ctypes.CDLL:
        text = self.made.text
        if self.told is not None:
            lines = self.told.functions(_NAME, self.made.arena, self.elements)
            text = "\n".join([text, *lines, ""])
        try:
            return _held(text, self.loose)
        except FailedError as error:
            raise error.located(origin_of(text, error.told, self.made.plans)) from None

    def address(self, name: str) -> int:
        found = ctypes.cast(getattr(self.held, name), ctypes.c_void_p).value
        assert found is not None
        return found

    def coded(self, types: Iterable[TensorType]) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Types as calls are told them."""
        told = self.told
        return tuple([(t.dtype.num, told.coded(t.shape) if told else t.shape) for t in types])


def _loaded(text: str, loose: bool) -> ctypes.CDLL:
    path = library(text, loose=loose)
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        # It may have been removed meanwhile, or be no library at all.
        forget(path)
    path = library(text, loose=loose)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        forget(path)
        raise UnavailableError(f"what was compiled cannot be loaded: {error}") from error


def _held(text: str, loose: bool) -> ctypes.CDLL:
    """The library of functions of C, which knows of BLAS."""
    held = _loaded(text, loose)
    for name, bits in (("dgemm", 64), ("sgemm", 32)) if has_products(text) else ():
        found = blas.product(name)
        if found is not None:
            ctypes.c_void_p.in_dll(held, f"pg_gemm_f{bits}").value = found[0]
            ctypes.c_int.in_dll(held, "pg_gemm_wide").value = found[1]
    tell_of_lapack(held, text)
    ctypes.c_void_p.in_dll(held, "pg_crew").value = _caller().crew
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


def _called(plan: Nests, library: _Library, segment: Segment, parts: _Parts) -> Callable[..., Any]:
    types, told, arena = plan.types, library.told, library.made.arena
    place = {v: k for k, v in enumerate([*parts.inputs, *plan.constants, *parts.outputs])}
    # Numbers of sizes come last, whether they are given or found.
    place[SIZES] = len(parts.inputs) + len(plan.constants) + len(parts.outputs)
    inputs = library.coded([types[v] for v in parts.inputs if v != SIZES])
    results = library.coded(parts.results)
    finds = told is not None and SIZES not in parts.inputs
    if told is not None and not finds:
        inputs += ((INT64.num, (len(told),)),)
    found: Callable[..., Any] = _caller().Native(
        library.address(segment.name),
        inputs,
        results,
        tuple(plan.constants.values()),
        tuple([place[v] for v in segment.arrays]),
        tuple(parts.modes),
        arena if told is None else 0,
        parts.alone,
        _has_long_loops(plan) or (told is None and library.elements > _FEW),
        library.held,
        library.address(f"{_NAME}_sizes") if finds else 0,
        0 if told is None else len(told),
    )
    return found


def _telling(graph: Graph, library: _Library, told: Told) -> Callable[..., Any]:
    """What finds the numbers of sizes from inputs; None where these do not fit."""
    inputs = library.coded(graph.input_types)
    found: Callable[..., Any] = _caller().Native(
        library.address(f"{_NAME}_told"), inputs, ((INT64.num, (len(told),)),), (),
        (len(inputs) + 1, len(inputs)), (_MADE,), 0, True, False, library.held,
        library.address(f"{_NAME}_sizes"), len(told),
    )  # fmt: skip
    return found


class _Piece(NamedTuple):
    """What runs, what it takes, by value and coded shape, and the values that it gives.

    It takes numbers of sizes behind that if it `asks` for them.
    """

    run: Callable[..., Any]
    read: list[tuple[int, Shape]]
    written: tuple[int, ...]
    asks: bool


@final
class _Mixed:
    """Functions of C, and steps of NumPy's between them."""

    def __init__(
        self,
        plan: Nests,
        library: _Library,
        graph: Graph,
        modes: list[int],
        alone: bool,
        by_numpy: Callable[..., Callable[..., Any]],
    ) -> None:
        steps, told = plan.schedule, library.told
        self.types = list(steps.types[: steps.inputs])
        self.modes, self.alone = modes, alone
        self.constants = dict(plan.constants)
        pairs = zip(plan.outputs, steps.outputs, strict=True)
        coded = (lambda s: s) if told is None else told.coded
        self.outputs = [(v, coded(steps.types[k].shape)) for v, k in pairs]
        self.pieces: list[_Piece] = []
        outside = [piece for piece in library.made.order if isinstance(piece, Outside)]
        self.for_all_sizes = not any(piece.step.op.has_bodies for piece in outside)
        if told is not None:
            # All extents are known before the library is made.
            for type in dict.fromkeys([*plan.types.values(), *steps.types]):
                told.coded(type.shape)
        for piece in library.made.order:
            if isinstance(piece, Outside):
                shapes = [coded(t.shape) for t in piece.step.operands]
                taken = list(zip(piece.operands, shapes, strict=True))
                run, asks = _step(_graph_of(piece.step), told, by_numpy)
                self.pieces.append(_Piece(run, taken, piece.values, asks))
                continue
            known = {*piece.written, *plan.constants, SIZES}
            read = [v for v in piece.arrays if v not in known]
            types = [plan.types[v] for v in piece.written]
            inputs = read if told is None else [*read, SIZES]
            parts = _Parts(inputs, piece.written, types, [_MADE] * len(types), False)
            run = _called(plan, library, piece, parts)
            taken = [(v, coded(plan.types[v].shape)) for v in read]
            self.pieces.append(_Piece(run, taken, piece.written, told is not None))
        self.tell = None if told is None else _telling(graph, library, told)

    def __call__(self, *arrays: Any) -> Any:
        count, handed = len(self.types), self.modes.count(_HANDED)
        if len(arrays) != count + handed:
            return None
        numbers = None
        if self.tell is not None:
            numbers = self.tell(*arrays[:count])
            if numbers is None:
                return None
        elif not all(map(_fits, arrays, self.types)):
            return None
        if not all(arrays[j].flags.writeable for j in self.modes if j >= 0):
            return None
        values: dict[int, Any] = {**self.constants, **dict(enumerate(arrays[:count]))}
        for run, read, written, asks in self.pieces:
            given = [values[v].reshape(shape_at(shape, numbers)) for v, shape in read]
            found = run(*given, numbers) if asks else run(*given)
            if found is None:
                return None
            values.update(zip(written, found, strict=True))
        results = [values[v].reshape(shape_at(shape, numbers)) for v, shape in self.outputs]
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


def _step(
    graph: Graph, told: Told | None, by_numpy: Callable[..., Callable[..., Any]]
) -> tuple[Callable[..., Any], bool]:
    """What runs a step of NumPy's, and whether it asks for numbers of sizes."""
    if told is None or not graph.sizes:
        return by_numpy(graph), False
    tell = told.sizes
    with contextlib.suppress(BuildError):
        # Where the step's own operands tell all sizes, and its code needs to know no more.
        return by_numpy(graph, style="readable"), False

    @lru_cache(maxsize=_KEPT)
    def at(sizes: tuple[int, ...]) -> Callable[..., Any]:
        return by_numpy(at_sizes(graph, dict(zip(told.names, sizes, strict=True))))

    def run(*arrays: Any) -> Any:
        *given, numbers = arrays
        return at(tuple(tell(numbers).values()))(*given)

    return run, True


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
