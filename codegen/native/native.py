"""Native code for a graph: compiled C, and what NumPy does between, behind one call."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.machinery
import importlib.util
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.base.debug_mode import debugging
from primgraph.base.journal import FROM_CACHE, note_source
from primgraph.codegen.native.code_cache import (
    FIRST,
    HANDED,
    MADE,
    SIZES_OF,
    Called,
    Entry,
    Left,
    Taken,
    key_of,
    modes_of,
    recall,
    remember,
)
from primgraph.codegen.native.loading import load
from primgraph.codegen.native.toolchain.cache import Stored, forget
from primgraph.codegen.native.toolchain.compile_c import (
    FailedError,
    UnavailableError,
    caller,
    compiler,
    has_products,
    kept,
    library,
)
from primgraph.codegen.plan.program import Options
from primgraph.codegen.plan.storage.limits import Limits
from primgraph.codegen.run import blas, threads
from primgraph.errors import BuildError, CompileError
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.sizes import at_sizes
from primgraph.ir.types import Shape, TensorType

# For how many sets of sizes a step of NumPy's is kept.
_KEPT = 64


@cache
def _caller() -> Any:
    """The extension module that calls native functions, and has their threads."""
    stored = caller()
    try:
        module = load(stored, _extension)
    except (OSError, ImportError) as error:
        forget(stored.name)
        raise UnavailableError(f"what was compiled cannot be loaded: {error}") from error
    threads.follow(module.set_threads)
    return module


def _extension(path: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader("primgraph_call", path)
    spec = importlib.util.spec_from_loader("primgraph_call", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
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


def direct(
    kernel: Any, native: Any, pack: Callable[..., Any] | None, late: Any, inputs: int
) -> None:
    """Let calls of `kernel`, which is new and of such a class, go to `native` code first.

    `pack` makes of a list of results what a call returns. With a `late` there are further inputs,
    which are `late.kept` after the first call: what is computed but once.
    """
    _caller().direct(kernel, native, pack, late, inputs)


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
    chosen = compiler()
    if chosen is None:
        return None
    key = None if debugging.get() else key_of(graph, options, limits, chosen)
    found = None if key is None else recall(key, graph)
    if found is not None:
        with contextlib.suppress(FailedError):
            entry, constants = found
            stored = kept(entry.library) or library(entry.text, loose=options.loose)
            held = _held(entry, stored, options.loose)
            note_source(FROM_CACHE)
            return _bound(held, entry, constants, graph, options, by_numpy)
    made = importlib.import_module("primgraph.codegen.native.driver").made(graph, options, limits)
    if made is None:
        return None
    try:
        # Without what calls it nothing else is of use.
        _caller()
        stored = library(made.entry.text, loose=options.loose)
    except FailedError as error:
        raise error.located(made.origin(error.told)) from None
    held = _held(made.entry, stored, options.loose)
    if key is not None:
        remember(key, graph, made.entry._replace(library=stored.name), made.constants)
    return _bound(held, made.entry, made.constants, graph, options, by_numpy)


def _bound(
    held: ctypes.CDLL,
    entry: Entry,
    constants: Sequence[Any],
    graph: Graph,
    options: Options,
    by_numpy: Callable[..., Callable[..., Any]],
) -> Callable[..., Any]:
    """The function that an entry is of, when it is compiled."""
    if entry.is_alone:
        (piece,) = entry.pieces
        assert isinstance(piece, Called)
        return _called(piece, held, constants)
    runs = [
        (_called(piece, held, constants), bool(graph.sizes))
        if isinstance(piece, Called)
        else _step(graph.body[piece.at], graph.sizes, by_numpy)
        for piece in entry.pieces
    ]
    tell = None if entry.tell is None else _called(entry.tell, held, ())
    return _Mixed(entry, constants, graph, options, runs, tell)


def _called(piece: Called, held: ctypes.CDLL, constants: Sequence[Any]) -> Callable[..., Any]:
    found: Callable[..., Any] = _caller().Native(
        _address(held, piece.name),
        piece.inputs,
        piece.results,
        tuple(constants),
        piece.places,
        piece.modes,
        piece.arena,
        piece.alone,
        piece.releases,
        held,
        _address(held, SIZES_OF) if piece.finds else 0,
        piece.numbers,
    )
    return found


def _address(held: ctypes.CDLL, name: str) -> int:
    found = ctypes.cast(getattr(held, name), ctypes.c_void_p).value
    assert found is not None
    return found


def _held(entry: Entry, stored: Stored, loose: bool) -> ctypes.CDLL:
    """Return the library with the functions of an entry, which knows of BLAS and of threads."""
    try:
        return _linked(entry, stored)
    except _UNUSABLE:
        # It may have been made by a compiler that was damaged.
        forget(stored.name)
    stored = library(entry.text, loose=loose)
    try:
        return _linked(entry, stored)
    except _UNUSABLE as error:
        forget(stored.name)
        raise UnavailableError(f"what was compiled cannot be loaded: {error}") from error


# What loading raises for what is no library, and for one that lacks a function or a variable.
_UNUSABLE = (OSError, AttributeError, ValueError)


def _linked(entry: Entry, stored: Stored) -> ctypes.CDLL:
    held, text = load(stored, ctypes.CDLL), entry.text
    for called in entry.calls:
        _address(held, called.name)
        if called.finds:
            _address(held, SIZES_OF)
    for name, bits in (("dgemm", 64), ("sgemm", 32)) if has_products(text) else ():
        found = blas.product(name)
        if found is not None:
            ctypes.c_void_p.in_dll(held, f"pg_gemm_f{bits}").value = found[0]
            ctypes.c_int.in_dll(held, "pg_gemm_wide").value = found[1]
    if "pg_lapack_" in text:
        importlib.import_module("primgraph.codegen.native.blas_dispatch").tell_of_lapack(held, text)
    ctypes.c_void_p.in_dll(held, "pg_crew").value = _caller().crew
    main = threading.main_thread().ident
    ctypes.c_void_p.in_dll(held, "pg_stop").value = _caller().stop_address(main)
    return held


class _Piece(NamedTuple):
    """What runs, what it takes, by value and coded shape, and the values that it gives.

    It takes numbers of sizes behind that if it `asks` for them.
    """

    run: Callable[..., Any]
    read: Taken
    written: tuple[int, ...]
    asks: bool


@final
class _Mixed:
    """Functions of C, and steps of NumPy's between them."""

    def __init__(
        self,
        entry: Entry,
        constants: Sequence[Any],
        graph: Graph,
        options: Options,
        runs: Sequence[tuple[Callable[..., Any], bool]],
        tell: Callable[..., Any] | None,
    ) -> None:
        self.types = list(graph.input_types)
        self.modes, self.alone = modes_of(options, len(graph.outputs)), options.alone
        self.constants = dict(zip(entry.constants, constants, strict=True))
        self.outputs, self.tell = entry.outputs, tell
        self.pieces = [
            _Piece(run, piece.taken, piece.values, asks)
            for (run, asks), piece in zip(runs, entry.pieces, strict=True)
        ]
        places = [piece.at for piece in entry.pieces if isinstance(piece, Left)]
        self.for_all_sizes = not any(graph.body[k].op.has_bodies for k in places)

    def __call__(self, *arrays: Any) -> Any:
        count, handed = len(self.types), self.modes.count(HANDED)
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
            given = [values[v].reshape(_shape_at(shape, numbers)) for v, shape in read]
            found = run(*given, numbers) if asks else run(*given)
            if found is None:
                return None
            values.update(zip(written, found, strict=True))
        results = [values[v].reshape(_shape_at(shape, numbers)) for v, shape in self.outputs]
        rest = iter(arrays[count:])
        for k, mode in enumerate(self.modes):
            if mode == MADE:
                # Memory that something else shares, or is not to be written, is not handed out.
                if (
                    results[k].base is not None
                    and results[k].base is not values[self.outputs[k][0]]
                ):
                    results[k] = results[k].copy()
                continue
            target = next(rest) if mode == HANDED else arrays[mode]
            np.copyto(target, results[k])
            results[k] = target
        return results[0] if self.alone else results


def _step(
    eqn: Equation, names: Sequence[str], by_numpy: Callable[..., Callable[..., Any]]
) -> tuple[Callable[..., Any], bool]:
    """What runs a step of NumPy's, and whether it asks for numbers of the sizes of these names."""
    graph = _graph_of(eqn)
    if not graph.sizes:
        return by_numpy(graph), False
    with contextlib.suppress(BuildError):
        # Where the step's own operands tell all sizes, and its code needs to know no more.
        return by_numpy(graph, style="readable"), False

    @lru_cache(maxsize=_KEPT)
    def at(sizes: tuple[int, ...]) -> Callable[..., Any]:
        return by_numpy(at_sizes(graph, dict(zip(names, sizes, strict=True))))

    def run(*arrays: Any) -> Any:
        *given, numbers = arrays
        return at(tuple([int(numbers[k + FIRST]) for k in range(len(names))]))(*given)

    return run, True


def _fits(array: Any, type: TensorType) -> bool:
    """Whether that is an array of exactly this type, in row-major order."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype == type.dtype
        and array.shape == type.shape
        and bool(array.flags.c_contiguous and array.flags.aligned)
    )


def _shape_at(coded: Shape, numbers: Any) -> Shape:
    """The shape that `Told.coded` has written, for these numbers."""
    return (
        coded if numbers is None else tuple([n if n >= 0 else int(numbers[-1 - n]) for n in coded])
    )


def _graph_of(eqn: Equation) -> Graph:
    """A graph of one equation alone."""
    inputs, outputs = ([Value(v.type) for v in vs] for vs in (eqn.inputs, eqn.outputs))
    alone = Equation(eqn.op, tuple(inputs), eqn.params, tuple(outputs), eqn.source)
    return Graph(inputs, [alone], outputs)
