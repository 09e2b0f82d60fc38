"""Native kernels: compiled C functions, with NumPy steps in between, behind one call."""

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
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.debug_mode import debugging
from primgraph.base.journal import FROM_CACHE, note_source
from primgraph.codegen.ir.limits import Limits, Options
from primgraph.codegen.runtime import blas, threads
from primgraph.codegen.runtime.lapack import tell_of_lapack
from primgraph.codegen.runtime.toolchain.cache import Stored, forget
from primgraph.codegen.runtime.toolchain.code_cache import (
    FIRST,
    HANDED,
    MADE,
    SIZES_OF,
    Entry,
    FunctionInterface,
    NumpyStep,
    key_of,
    modes_of,
    recall,
    remember,
)
from primgraph.codegen.runtime.toolchain.compile_c import (
    FailedError,
    UnavailableError,
    caller,
    compiler,
    forget_library,
    has_products,
    library,
    load_cached,
)
from primgraph.codegen.runtime.toolchain.loading import load
from primgraph.errors import BuildError, CompileError
from primgraph.ir.graph import Equation, Graph, Value
from primgraph.ir.sizes import specialize_graph
from primgraph.ir.types import Shape, TensorType

# Number of size combinations for which a NumPy step is cached.
_KEPT = 64


@cache
def _caller() -> Any:
    """Return the extension module that calls native functions and owns their threads."""
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
    """Return a subclass of `kind` whose calls run native code first; None if unavailable."""
    try:
        caller = _caller()
        known: dict[type, type] = caller.__dict__.setdefault("kinds", {})
        if kind not in known:
            known[kind] = caller.direct_type(kind)
        return known[kind]
    except CompileError:
        # The caller reports why compilation is unavailable.
        return None


def direct(
    kernel: Any, native: Any, pack: Callable[..., Any] | None, late: Any, inputs: int
) -> None:
    """Let calls of `kernel`, which is new and of a `direct_type`, run `native` code first.

    `pack` converts a list of results to the return value. With `late`, further inputs are
    `late.kept` after the first call: values that are computed only once.
    """
    _caller().direct(kernel, native, pack, late, inputs)


# A function that compiles steps for NumPy.
_ByNumpy: TypeAlias = Callable[..., Callable[..., Any]]


def native_function(
    graph: Graph, options: Options, limits: Limits, by_numpy: _ByNumpy
) -> Callable[..., Any] | None:
    """Return `function(*arrays)`, whose arrays are the inputs and then buffers for results.

    It returns the results in a list, or a single result, or None if the arguments do not match.
    `by_numpy` compiles steps that C cannot do. Return None for a graph whose growing stacks leave
    the C code, and, with a warning, if nothing can be compiled.

    Raises `CompileError` if a compiler rejects its source.
    """
    try:
        return _function(graph, options, limits, by_numpy)
    except UnavailableError as error:
        warnings.warn(f"{error.message}: NumPy runs instead", RuntimeWarning, stacklevel=2)
    except FailedError as error:
        raise CompileError(error.message, origin=error.origin) from None
    return None


def _function(
    graph: Graph, options: Options, limits: Limits, by_numpy: _ByNumpy
) -> Callable[..., Any] | None:
    found = prepare(graph, options, limits)
    return None if found is None else _bind_entry(*found, graph, options, by_numpy)


def cached_key(graph: Graph, options: Options, limits: Limits) -> str | None:
    """Return the key of the C of a graph in the disk cache; None if it is not to be cached."""
    chosen = compiler()
    return None if debugging.get() or chosen is None else key_of(graph, options, limits, chosen)


def prepare(
    graph: Graph, options: Options, limits: Limits
) -> tuple[ctypes.CDLL, Entry, Sequence[Any]] | None:
    """Return the loaded C of a graph, its interface and constants, from the disk cache or compiled.

    Return None for a graph whose growing stacks leave the C code, and without a compiler. Raises
    `UnavailableError` if nothing can be compiled, and `FailedError` if the source is rejected.
    """
    if compiler() is None:
        return None
    key = cached_key(graph, options, limits)
    found = None if key is None else recall(key, graph)
    if found is not None:
        with contextlib.suppress(FailedError):
            entry, constants = found
            stored = load_cached(entry.library) or library(
                entry.text, loose=options.loose, units=entry.units
            )
            held = _load_library(entry, stored, options.loose)
            note_source(FROM_CACHE)
            return held, entry, constants
    made = importlib.import_module("primgraph.codegen.targets.c.driver").generate_native(
        graph, options, limits
    )
    if made is None:
        return None
    try:
        stored = library(made.entry.text, loose=options.loose, units=made.entry.units)
    except FailedError as error:
        raise error.located(made.origin(error.told)) from None
    held = _load_library(made.entry, stored, options.loose)
    if key is not None:
        remember(key, graph, made.entry._replace(library=stored.name), made.constants)
    return held, made.entry, made.constants


def _bind_entry(
    held: ctypes.CDLL,
    entry: Entry,
    constants: Sequence[Any],
    graph: Graph,
    options: Options,
    by_numpy: _ByNumpy,
) -> Callable[..., Any]:
    """Return the function of an entry, once it is compiled."""
    if entry.is_alone:
        (piece,) = entry.pieces
        assert isinstance(piece, FunctionInterface)
        return _bind_piece(piece, held, constants)
    runs = [
        (_bind_piece(piece, held, constants), bool(graph.sizes))
        if isinstance(piece, FunctionInterface)
        else _step(graph.body[piece.at], graph.sizes, by_numpy)
        for piece in entry.pieces
    ]
    tell = None if entry.tell is None else _bind_piece(entry.tell, held, ())
    return _Mixed(entry, constants, graph, options, runs, tell)


def _bind_piece(
    piece: FunctionInterface, held: ctypes.CDLL, constants: Sequence[Any]
) -> Callable[..., Any]:
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
    return blas.address_of(getattr(held, name))


def _load_library(entry: Entry, stored: Stored, loose: bool) -> ctypes.CDLL:
    """Return the library of an entry, linked to BLAS and to the thread pool."""
    try:
        return _link_library(entry, stored)
    except _UNUSABLE:
        # The file may come from a broken compiler: compile again.
        forget_library(stored, entry.text, loose=loose)
    stored = library(entry.text, loose=loose, units=entry.units)
    try:
        return _link_library(entry, stored)
    except _UNUSABLE as error:
        forget_library(stored, entry.text, loose=loose)
        raise UnavailableError(f"what was compiled cannot be loaded: {error}") from error


# Errors of loading a damaged library, or one that lacks a symbol.
_UNUSABLE = (OSError, AttributeError, ValueError)


def _link_library(entry: Entry, stored: Stored) -> ctypes.CDLL:
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
    tell_of_lapack(held, text)
    ctypes.c_void_p.in_dll(held, "pg_crew").value = _caller().crew
    main = threading.main_thread().ident
    ctypes.c_void_p.in_dll(held, "pg_stop").value = _caller().stop_address(main)
    return held


@final
class _Mixed:
    """A sequence of C functions and NumPy steps; `runs` that ask take the array of sizes, too."""

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
        self.pieces = list(zip(runs, entry.pieces, strict=True))
        places = [piece.at for piece in entry.pieces if isinstance(piece, NumpyStep)]
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
        for (run, asks), piece in self.pieces:
            given = [values[v].reshape(_shape_at(shape, numbers)) for v, shape in piece.taken]
            found = run(*given, numbers) if asks else run(*given)
            if found is None:
                return None
            values.update(zip(piece.values, found, strict=True))
        results = [values[v].reshape(_shape_at(shape, numbers)) for v, shape in self.outputs]
        rest = iter(arrays[count:])
        for k, mode in enumerate(self.modes):
            if mode == MADE:
                # Memory that is shared, or must not be written, is not returned.
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
    eqn: Equation, names: Sequence[str], by_numpy: _ByNumpy
) -> tuple[Callable[..., Any], bool]:
    """Return a callable for a NumPy step, and whether it takes the sizes of these names."""
    graph = _graph_of(eqn)
    if not graph.sizes:
        return by_numpy(graph), False
    with contextlib.suppress(BuildError):
        # Succeeds if the operands of the step determine all sizes.
        return by_numpy(graph, style="readable"), False

    @lru_cache(maxsize=_KEPT)
    def specialize(sizes: tuple[int, ...]) -> Callable[..., Any]:
        return by_numpy(specialize_graph(graph, dict(zip(names, sizes, strict=True))))

    def run(*arrays: Any) -> Any:
        *given, numbers = arrays
        return specialize(tuple([int(numbers[k + FIRST]) for k in range(len(names))]))(*given)

    return run, True


def _fits(array: Any, type: TensorType) -> bool:
    """Return whether `array` has exactly this type and is contiguous."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype == type.dtype
        and array.shape == type.shape
        and bool(array.flags.c_contiguous and array.flags.aligned)
    )


def _shape_at(coded: Shape, numbers: Any) -> Shape:
    """Decode a shape of `Told.coded` for these sizes."""
    if numbers is None:
        return coded
    return tuple([n if n >= 0 else int(numbers[-1 - n]) for n in coded])


def _graph_of(eqn: Equation) -> Graph:
    """Return a graph of a single equation."""
    inputs, outputs = ([Value(v.type) for v in vs] for vs in (eqn.inputs, eqn.outputs))
    alone = Equation(eqn.op, tuple(inputs), eqn.params, tuple(outputs), eqn.source)
    return Graph(inputs, [alone], outputs)
