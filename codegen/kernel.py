"""Kernels: executable graphs."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from primgraph.base.providers import MODELS, late, provider
from primgraph.base.records import Fixed
from primgraph.codegen.compiled import Compiled
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.recipe import Recipe, require_style
from primgraph.codegen.runner import Runner
from primgraph.codegen.runtime.feeds import as_feed
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.containers import Form, packer
from primgraph.ir.frontend.drawable import PICTURES, Drawn
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import require_closed, require_known
from primgraph.ir.slices import drop_formal
from primgraph.ir.types import TensorType

if TYPE_CHECKING:
    from primgraph.codegen.ir.program import Plan
    from primgraph.codegen.targets.text import clocks as timing
else:
    timing = late("primgraph.codegen.targets.text.clocks")


Array = np.ndarray[Any, Any]

# Suffixes of C files, of headers, and of C++ files.
_OF_C = (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp")


def compile_graph(
    graph: Graph,
    *,
    style: str = "planned",
    donated: Mapping[int, int] | None = None,
    limits: Limits | None = None,
    once: Sequence[int] = (),
    handed: Sequence[int] = (),
    loose: bool = False,
) -> Kernel:
    """Return a kernel that computes `graph`, which consists of primitives.

    `style` says which source runs: "planned" is fast, "readable" what a person would write.
    `donated` maps positions of outputs to those of inputs of the same type: the array given for
    the input is overwritten with the output, and is what the kernel returns for it. `limits`
    say which steps run in blocks, and of what size; by default those that pay on this machine.
    `once` are the places in the body of equations that depend on no input: the planned code
    computes them at its first call, and keeps the results. `handed` are outputs that `fill`
    writes into arrays which are handed to it. `loose` native code has functions within four units
    in the last place, and rounds as it likes.
    Raises `CompileError` for an op that is not a primitive and for a style that does not exist.

    >>> from primgraph.codegen import compile_graph
    >>> compile_graph(pg.trace(pg.sin, pg.spec(2)))(np.zeros(2))
    array([0., 0.])
    """
    return _build_kernel(drop_formal(graph), style, donated, limits, once, handed, loose)


class _Call(NamedTuple):
    """Call information of a kernel: types and names of inputs, whether they are nested, and more.

    `direct` is a fast path for matching arguments, if any, and returns what the kernel does, or
    None; `pack` converts a list of results to the return value.
    """

    inputs: tuple[tuple[TensorType, str], ...]
    nested: bool
    direct: Callable[..., Any] | None
    pack: Callable[[list[Array]], Any] | None


class Awaited:
    """Base class of kernels, whose C may be compiled in the background."""

    __slots__ = ()

    def wait(self, seconds: float | None = None) -> Self:
        """Return the kernel when no C is being compiled for it in the background.

        With `target="auto"` the compilation is begun if it is expected to pay. After `seconds` the
        kernel is returned in any case. Other kernels are never compiled in the background.
        """
        return self


@checked_methods("fill")
class Kernel(Fixed, Drawn, Awaited):
    """An executable graph: call it with an array for each input.

    Arrays are given in order, or by the names of the inputs. It returns a list of arrays, one per
    output, of exactly the declared shapes and dtypes. The kernel of a traced function takes and
    returns what the function did. Results belong to the caller: they are writable, and share memory
    with nothing, including each other. Arguments are never written, except donated ones. Many
    threads may call one kernel at the same time.

    >>> kernel = pg.compile(pg.trace(lambda x: 2.0 * x, pg.spec(2)))
    >>> kernel(np.ones(2))
    array([2., 2.])
    """

    __slots__ = (
        "__weakref__",
        "_call",
        "_code",
        "_flat",
        "_recipe",
        "_runner",
        "donated",
        "graph",
        "handed",
        "once",
        "style",
    )

    graph: Graph
    style: str
    donated: dict[int, int]
    once: tuple[int, ...]
    handed: tuple[int, ...]
    _recipe: Recipe
    _runner: Runner
    _code: Compiled
    _call: _Call
    _flat: Kernel | None

    def __init__(
        self,
        graph: Graph,
        style: str = "planned",
        donated: Mapping[int, int] | None = None,
        limits: Limits | None = None,
        once: Sequence[int] = (),
        handed: Sequence[int] = (),
        loose: bool = False,
    ) -> None:
        recipe = Recipe.from_parts(graph, style, donated or {}, limits, once, handed, loose)
        _become(self, recipe, recipe.compile_style(style))

    def __call__(self, /, *feeds: Any, out: Any = None, borrow: bool = False, **named: Any) -> Any:
        """Compute the outputs for `feeds`, which are in the order of the graph's inputs.

        Keyword feeds, `named`, go by the names of the inputs, for a traced function those of its
        parameters. Inputs named `out` or `borrow` must be positional.

        `out` is a list with an array or None for each result, or for a traced function a container
        like its result. Results are written into these arrays, which have exactly the declared
        types, are in row-major order and share memory with nothing else. With `borrow`, the next
        such call in the same thread overwrites the results, unless it is given them; this saves
        allocating large arrays again and again.

        Raises `FeedError` for feeds that do not fit, `ArgumentError` for an `out` that does not
        fit, and `RunError`, with the equation and the user's line, where the computation fails.
        """
        inputs, nested, direct, pack = self._call
        plain = not named and len(feeds) == len(inputs)
        alone = plain and out is None and not borrow
        if direct is not None and alone and (found := direct(*feeds)) is not None:
            return found
        if nested or not plain:
            feeds = tuple(self.graph.in_order(feeds, named))
        arrays = convert_feeds(self, feeds)
        runner = self._runner
        if self.donated:
            runner.require_writable(feeds, arrays)
        if out is not None or borrow:
            given = runner.run_into(arrays, out, borrow)
            results: Any = given[0] if self._recipe.is_alone else given
        elif self.handed:
            results = runner.run_handed(arrays, runner.allocate_outputs())
        elif alone and direct is not None and arrays is feeds:
            # The direct path has been tried.
            results = runner.compute(self._code, arrays)
        else:
            results = runner.run(self._code, arrays)
        return results if pack is None else pack(results)

    def fill(
        self,
        arrays: Sequence[Array],
        handed: Sequence[Array],
        *,
        out: Sequence[Array | None] | None = None,
        borrow: bool = False,
    ) -> list[Array]:
        """Return all outputs for `arrays`; write the outputs `self.handed` into `handed`.

        All arrays must have exactly the declared types and be in row-major order, which is not
        checked. The arrays `handed` must not be shared; their contents are undefined while the
        kernel runs, and if it fails. `out` and `borrow` are as in a call, with None in `out` for
        outputs that are handed.
        """
        if out is not None or borrow:
            return self._runner.run_into(arrays, out, borrow, handed)
        return self._runner.run_handed(arrays, handed)

    def running_style(self, feeds: Sequence[Any]) -> str:
        """Return the code that these feeds run: "planned", "readable", "scalar" or "native"."""
        return self._runner.running_style(feeds)

    def with_clocks(self) -> tuple[Kernel, timing.Clocks, list[int]]:
        """Return a copy with a clock per step, its clocks, and the steps' indices in the graph."""
        return _copy_with_clocks(self)

    @property
    def flat(self) -> Kernel:
        """The same kernel, but one that takes its arrays in order, and returns a list of them."""
        if self.graph.form is None:
            return self
        flat = self._flat
        if flat is None:
            flat = in_form(self, None)
            object.__setattr__(self, "_flat", flat)
        return flat

    @property
    def plan(self) -> Plan:
        """Return the plan of the planned style, which prints, with what C does first."""
        return self._recipe.plan(is_native=self._code.is_native)

    @property
    def explanation(self) -> str:
        """Return what runs where, and why: C, steps of NumPy, and code for other arguments."""
        return self._recipe.explanation(self._code)

    @property
    def plan_of_once(self) -> tuple[Plan, int] | None:
        """Return the plan of the part that is computed once, and its result size; or None."""
        return self._recipe.plan_of_once

    @property
    def source(self) -> str:
        """Return the readable NumPy source, which is what runs in that style."""
        return self._runner.code_of("readable").loaded.source

    @property
    def planned_source(self) -> str:
        """Return the NumPy source with buffers, which is what runs in the style "planned"."""
        return self._runner.code_of("planned").loaded.source

    def lines(self, style: str = "planned") -> list[tuple[str, int]]:
        """Return the lines of the source in that style, each with the index of its equation.

        Indices are positions in the body of `graph`, -1 for lines without an equation. Raises
        `CompileError` for an unknown style.
        """
        require_style(style)
        return self._runner.code_of(style).lines()

    def save(
        self,
        path: str | os.PathLike[str],
        *others: Kernel,
        force: bool = False,
        scipy: bool = False,
        blas: bool = False,
        target: str = "numpy",
    ) -> None:
        """Write a file with a function, named as its graph, for this kernel and each of `others`.

        - `.py` gives Python that needs NumPy only, or the `target` "jax", "torch" or "cupy". Its
          functions take what `np.asarray` converts, return an array or a tuple, and raise
          ValueError on a wrong shape. With `scipy` it may import SciPy, as for `erf`.
        - `.c` gives C11 that needs the C library only, and a header. Sizes come first among the
          arguments. With `blas`, large matrix products call BLAS, as declared in `cblas.h`.
        - `.onnx` gives a model of ONNX, by the package `onnx`; symbolic sizes are named axes.
        - `.mlir` gives a program of StableHLO, by JAX; symbolic sizes are dynamic dimensions.
        - `.svg`, `.html`, `.dot`, `.mmd`, `.json`, `.png` and `.pdf` give a picture of this kernel.

        Raises `CompileError` for a primitive without code, for two graphs of one name, and in C
        for numbers of 16 bits and names with a meaning in C; `UnsupportedError` that lists what
        ONNX or StableHLO lacks; ImportError without their package; `ArgumentError` for no kernel,
        `others` in a picture or model, other endings, and, unless `force`, files of other origin.
        """
        _require_kernels(path, others)
        if Path(path).suffix.lower() in PICTURES:
            super().save(path)
        else:
            _save_code(path, [self, *others], (force, scipy, blas), target)

    def __reduce__(self) -> tuple[Any, ...]:
        return _build_kernel, self._recipe.parts

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.graph.input_types))
        outputs = ", ".join(map(str, self.graph.output_types))
        return f"<{self.style} kernel {self.graph.name}: ({inputs}) -> ({outputs})>"


def kernel_of(recipe: Recipe) -> Kernel:
    """Return the kernel of a recipe."""
    return _build_kernel(*recipe.parts)


def _build_kernel(graph: Graph, style: str, *parts: Any) -> Kernel:
    """Return a kernel, whose calls run native code directly if it has any."""
    # Native code supports all sizes, too.
    require = require_closed if style in ("readable", "native") else require_known
    require("a kernel", graph)
    plain = Kernel(graph, style, *parts)
    kind = _native("direct_type")(Kernel) if style == "native" else None
    if kind is None:
        return plain
    kernel: Kernel = kind.__new__(kind)
    _become(kernel, plain._recipe, plain._code)
    code, call = kernel._code, kernel._call
    if code.is_native and not call.nested and not kernel.donated:
        late = code if code.once is not None else None
        _native("direct")(kernel, code.scalar, call.pack, late, len(call.inputs))
    return kernel


def in_form(kernel: Kernel, form: Form | None) -> Kernel:
    """The same kernel, which takes and returns its arrays in the containers of `form`."""
    if kernel.graph.form is form:
        return kernel
    make: Callable[..., Kernel] | None = getattr(kernel, "_in_form", None)
    return kernel_of(kernel._recipe.in_form(form)) if make is None else make(form)


def _copy_with_clocks(kernel: Kernel) -> tuple[Kernel, timing.Clocks, list[int]]:
    """Return a copy of `kernel` that runs code with clocks, the clocks, and the steps' indices."""
    clocks: list[timing.Clocks] = []
    code = kernel._recipe.compile_style(kernel.style, clocks=clocks)
    other = object.__new__(Kernel)
    _become(other, kernel._recipe, code)
    return other, clocks[0], code.positions()


def _native(name: str) -> Any:
    """Return a name of the module of native calls, imported lazily."""
    return getattr(importlib.import_module("primgraph.codegen.native"), name)


def convert_feeds(kernel: Kernel, feeds: Sequence[Any]) -> Sequence[Array]:
    """Return `feeds`, one per input, as `kernel.fill` takes them; converted only if needed.

    Raises `FeedError` for one that does not match.
    """
    if kernel._code.fit(*feeds):
        return feeds
    return [as_feed(a, t, name) for a, (t, name) in zip(feeds, kernel._call.inputs, strict=True)]


def direct(kernel: Kernel) -> Callable[..., Any] | None:
    """Return the fast path for arrays that match exactly, which returns None for others.

    Native code checks its arguments completely.
    """
    return kernel._call.direct


def when_settled(kernel: Kernel, told: Callable[[Kernel], None]) -> None:
    """Call `told` with the kernel that calls of `kernel` run, as soon as it does not change."""
    follow = getattr(kernel, "_when_settled", None)
    told(kernel) if follow is None else follow(told)


def reason_of(kernel: Kernel) -> str:
    """Return why the kernel runs C or NumPy, if it has measured that; otherwise an empty text."""
    choice = getattr(kernel, "_choice", None)
    return "" if choice is None else str(choice.status)


def is_native(kernel: Kernel) -> bool:
    """Return whether the kernel has native code; without, it runs NumPy whatever its style is."""
    return kernel._code.is_native


def is_for_all_sizes(kernel: Kernel) -> bool:
    """Return whether the kernel is native code for all sizes, without loops that NumPy runs."""
    scalar = kernel._code.scalar
    native = kernel._code.is_native
    return native and bool(kernel.graph.sizes) and getattr(scalar, "for_all_sizes", True) is True


def _require_kernels(path: str | os.PathLike[str], others: Sequence[Any]) -> None:
    """Raise unless `others` are kernels, and for a picture unless there are none."""
    strange = [other for other in others if not isinstance(other, Kernel)]
    if strange:
        raise ArgumentError(
            f"Kernel.save: others are kernels, not {strange[0]!r:.60}",
            hint="compile graphs with pg.compile(graph)",
        )
    suffix = Path(path).suffix.lower()
    if others and (suffix in PICTURES or suffix in MODELS):
        kind = "picture" if suffix in PICTURES else "model"
        raise ArgumentError(f"{os.fspath(path)!r:.200} would be a {kind} of one kernel")


def _save_code(
    path: str | os.PathLike[str],
    kernels: list[Kernel],
    options: tuple[bool, bool, bool],
    target: str,
) -> None:
    """Write a C or Python file, according to its suffix."""
    force, scipy, blas = options
    told, graphs = f"{os.fspath(path)!r:.200}", [kernel.graph for kernel in kernels]
    if Path(path).suffix.lower() in _OF_C:
        if target != "numpy":
            raise ArgumentError(f"{told}: target {target!r} is for files of Python")
        if scipy:
            raise ArgumentError(
                f"{told}: a file of C imports nothing, and so no SciPy", hint="leave scipy out"
            )
        home = importlib.import_module("primgraph.codegen.targets.export.file")
        home.save_c(path, graphs, force=force, blas=blas)
        return
    if Path(path).suffix.lower() in MODELS:
        given = {"scipy": scipy, "blas": blas, "target": target != "numpy"}
        for option in (name for name, is_given in given.items() if is_given):
            raise ArgumentError(f"{told}: {option} is for files of code", hint="leave it out")
        provider(MODELS[Path(path).suffix.lower()]).save_model(path, graphs[0], force=force)
        return
    if Path(path).suffix.lower() != ".py":
        raise ArgumentError(
            f"{told} does not end in .py, .c, .onnx or .mlir, so the kind of file is unknown",
            hint="kernel.save('model.py') writes NumPy code, kernel.save('model.c') writes C, "
            "kernel.save('model.onnx') a model of ONNX, kernel.save('model.mlir') StableHLO; "
            f"pictures end in {', '.join(PICTURES)}",
        )
    if blas:
        raise ArgumentError(
            f"{told}: blas is for files of C", hint="leave it out: NumPy has a BLAS of its own"
        )
    home = importlib.import_module("primgraph.codegen.targets.readable.standalone")
    if target == "numpy":
        home.save_source(path, graphs, force=force, scipy=scipy)
        return
    dialect = provider("kernels of libraries").dialect_of(target)
    if scipy:
        raise ArgumentError(f"{told}: scipy is for files of NumPy", hint="leave it out")
    home.save_source(path, graphs, force=force, scipy=False, dialect=dialect)


def _become(kernel: Kernel, recipe: Recipe, code: Compiled) -> None:
    """Initialise `kernel` from a recipe and its code."""
    graph, form = recipe.graph, recipe.graph.form
    names = [v.hint or str(i) for i, v in enumerate(graph.inputs)]
    nested = form is not None and not form.is_plain
    # Code may return a single array itself, without a list.
    pack = None if form is None or recipe.is_alone else packer(form.results)
    runner = Runner(recipe, code)
    # Overwritten arguments are checked in every call.
    looked_at = nested or code.once or recipe.donated or recipe.handed
    direct = None if looked_at else _packed(code.scalar or runner.checked(), pack)
    fields = {
        "graph": graph,
        "style": recipe.style,
        "donated": dict(recipe.donated),
        "once": recipe.once,
        "handed": recipe.handed,
        "_recipe": recipe,
        "_runner": runner,
        "_code": code,
        "_flat": None,
        "_call": _Call(tuple(zip(graph.input_types, names, strict=True)), nested, direct, pack),
    }
    for name, value in fields.items():
        object.__setattr__(kernel, name, value)


def _packed(
    direct: Callable[..., Any] | None, pack: Callable[[list[Array]], Any] | None
) -> Callable[..., Any] | None:
    """Return a direct path, if any, with results packed as a kernel returns them."""
    if direct is None or pack is None:
        return direct

    def call_packed(*feeds: Any) -> Any:
        found = direct(*feeds)
        return None if found is None else pack(found)

    return call_packed
