"""Kernels: graphs made executable."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.base.immutable import Fixed
from primgraph.codegen.compiled import Compiled
from primgraph.codegen.emit.clocks import Clocks
from primgraph.codegen.plan.program import Plan
from primgraph.codegen.plan.storage.limits import Limits
from primgraph.codegen.readable.standalone import save_source
from primgraph.codegen.recipe import Recipe, require_style
from primgraph.codegen.run.feeds import as_feed
from primgraph.codegen.runner import Runner
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.containers import Form, packer
from primgraph.ir.frontend.drawable import PICTURES, Drawn
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import require_known
from primgraph.ir.slices import without_formal
from primgraph.ir.types import TensorType

Array = np.ndarray[Any, Any]

# How names of files of C, of its headers, and of those of C++ end.
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
    """A kernel that computes `graph`, which consists of primitives.

    `style` says which source runs: "planned" is fast, "readable" what a person would write.
    `donated` maps positions of outputs to those of inputs of the same type: the array given for
    the input is overwritten with the output, and is what the kernel returns for it. `limits`
    say which steps run in blocks, and of what size; by default those that pay on this machine.
    `once` are the places in the body of equations that depend on no input: the planned code
    computes them at its first call, and keeps the results. `handed` are outputs that `fill`
    writes into arrays which are handed to it. `loose` native code has functions within four units
    in the last place, and rounds as it likes.
    Raises `CompileError` for an op that is not a primitive and for a style that does not exist.
    """
    # Native code is for all sizes, too.
    if style not in ("readable", "native"):
        require_known("a kernel", graph)
    return _made(without_formal(graph), style, donated, limits, once, handed, loose)


class _Call(NamedTuple):
    """What a call goes by: types and names of inputs, whether these have containers, and more.

    `scalar` computes single numbers, where there is code for that, and returns what a kernel
    does; `pack` makes that of a list of results.
    """

    inputs: tuple[tuple[TensorType, str], ...]
    nested: bool
    scalar: Callable[..., Any] | None
    pack: Callable[[list[Array]], Any] | None


@final
@checked_methods("fill")
class Kernel(Fixed, Drawn):
    """An executable made from a graph: call it with an array for each input.

    Arrays are given in order, or by the names of the inputs. It returns a list of arrays, one an
    output, of exactly the declared shapes and dtypes; the kernel of a traced function takes and
    returns what the function did. They are the caller's: writable, and sharing memory with
    nothing, not with each other either. Feeds are never written, but for donated ones. Many
    threads may call one kernel at the same time.
    """

    __slots__ = (
        "__weakref__",
        "_call",
        "_code",
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
        recipe = Recipe.of(graph, style, donated or {}, limits, once, handed, loose)
        _become(self, recipe, recipe.compiled(style))

    def __call__(self, /, *feeds: Any, out: Any = None, borrow: bool = False, **named: Any) -> Any:
        """The outputs for `feeds`, which are given in the order of the graph's inputs.

        Those that are `named` are given by the names of the inputs, for a traced function those
        of its parameters; inputs named `out` or `borrow` go by position.

        With `out`, results are written into the arrays that it has, where it has not None: of
        exactly the declared types, in row-major order, and sharing memory with nothing else. It
        is a list with one for each result; for a traced function also what the function returns,
        with arrays in it. With `borrow` results are arrays that the next such call in the same
        thread overwrites, unless it is given them, which saves making large ones again and again.

        Raises `FeedError` for feeds that do not fit, `ArgumentError` for an `out` that does not,
        and `RunError`, with the equation and the user's line, where the computation fails.
        """
        inputs, nested, scalar, pack = self._call
        plain = not named and len(feeds) == len(inputs)
        alone = plain and out is None and not borrow
        if scalar is not None and alone and (found := scalar(*feeds)) is not None:
            return found
        if nested or not plain:
            feeds = tuple(self.graph.in_order(feeds, named))
        arrays = taken(self, feeds)
        runner = self._runner
        if self.donated:
            runner.require_writable(feeds, arrays)
        if out is not None or borrow:
            given = runner.run_into(arrays, out, borrow)
            results: Any = given[0] if self._recipe.is_alone else given
        elif self.handed:
            results = runner.run_handed(arrays, runner.made())
        elif alone and scalar is not None and arrays is feeds:
            # Single numbers have been tried.
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
        """All outputs for `arrays`, those of `self.handed` written into the arrays `handed`.

        All are of exactly the declared types, in row-major order, which is not checked, and what
        is handed is nobody else's; while the kernel runs, and if it fails, it holds anything.
        `out` and `borrow` are as in a call, with None in `out` for outputs that are handed.
        """
        if out is not None or borrow:
            return self._runner.run_into(arrays, out, borrow, handed)
        return self._runner.run_handed(arrays, handed)

    def running_style(self, feeds: Sequence[Any]) -> str:
        """The code that these feeds run: "planned", "readable", "scalar" or "native"."""
        if self._runner.scalar(self._code, feeds) is not None:
            return "native" if self._code.is_native else "scalar"
        if self.style == "native":
            return "readable" if self._recipe.is_generic else "planned"
        return self.style

    def with_clocks(self) -> tuple[Kernel, Clocks, list[int]]:
        """This kernel with a clock around each step, these, and the steps' places in the graph."""
        clocks: list[Clocks] = []
        code = self._recipe.compiled(self.style, clocks=clocks)
        other = object.__new__(Kernel)
        _become(other, self._recipe, code)
        return other, clocks[0], code.positions()

    @property
    def flat(self) -> Kernel:
        """The same kernel, but one that takes its arrays in order, and returns a list of them."""
        return in_form(self, None)

    @property
    def plan(self) -> Plan:
        """What the planned style does with memory, and in blocks; it prints as text.

        Of a native kernel it tells first what C does, and which steps NumPy is left with.
        """
        return self._recipe.plan(is_native=self._code.is_native)

    @property
    def plan_of_once(self) -> tuple[Plan, int] | None:
        """The plan of what is computed but once, and the bytes of its results, if there is any."""
        return self._recipe.plan_of_once

    @property
    def source(self) -> str:
        """The readable NumPy source, which is what runs in that style."""
        return self._runner.code_of("readable").loaded.source

    @property
    def planned_source(self) -> str:
        """The NumPy source with buffers, which is what runs in the style "planned"."""
        return self._runner.code_of("planned").loaded.source

    def lines(self, style: str = "planned") -> list[tuple[str, int]]:
        """The source of that style line by line, each with the equation that it computes.

        Equations are positions in the body of `graph`; -1 stands beside lines that belong to none.
        Raises `CompileError` for a style that does not exist.
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
    ) -> None:
        """Write a Python file that needs NumPy only, with a function for this and `others`.

        To a path that ends in .c it writes C11 that needs nothing but the C library, and beside it
        a header that says how its functions are called; sizes come first among arguments. With
        `blas` large products of matrices are calls of BLAS, by the names that `cblas.h` has.

        The functions have the names of the graphs. Each returns one array, or a tuple of them,
        for arguments that `np.asarray` can convert, and raises ValueError on a wrong shape. To a
        path that ends in .svg, .html, .dot, .mmd, .json, .png or .pdf a picture of this kernel is
        written instead, as for graphs and programs.

        With `scipy` the file may import SciPy, for functions that NumPy does not have: `erf` and
        `erfc` are then SciPy's, instead of some eighty lines in the file. Single float64 numbers
        take those of Python's `math` in any case.

        Raises `CompileError` if a graph has a primitive without a spelling, for two graphs of one
        name, and in C for numbers that are complex or have 16 bits, and for names that mean
        something in C; `ArgumentError` for what is no kernel, for `others`
        in a picture, for other endings than these, and, unless `force` is true, for a
        file that is there and was not written by primgraph.
        """
        _require_kernels(path, others)
        if Path(path).suffix.lower() in PICTURES:
            super().save(path)
        else:
            _save_code(path, [self, *others], force=force, scipy=scipy, blas=blas)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, self._recipe.parts

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.graph.input_types))
        outputs = ", ".join(map(str, self.graph.output_types))
        return f"<{self.style} kernel {self.graph.name}: ({inputs}) -> ({outputs})>"


def _made(graph: Graph, style: str, *parts: Any) -> Kernel:
    """A kernel, whose calls go to native code at once where it has that."""
    kind = _native("direct_type")(Kernel) if style == "native" else None
    if kind is None:
        return Kernel(graph, style, *parts)
    kernel: Kernel = kind(graph, style, *parts)
    code, call = kernel._code, kernel._call
    if code.is_native and not call.nested and not kernel.donated:
        late = code if code.once is not None else None
        _native("direct")(kernel, code.scalar, call.pack, late, len(call.inputs))
    return kernel


def in_form(kernel: Kernel, form: Form | None) -> Kernel:
    """The same kernel, which takes and returns its arrays in the containers of `form`."""
    if kernel.graph.form is form:
        return kernel
    return _made(*kernel._recipe.in_form(form).parts)


def _native(name: str) -> Any:
    """What native calls are made of, which is imported where there are any."""
    return getattr(importlib.import_module("primgraph.codegen.native.native"), name)


def taken(kernel: Kernel, feeds: Sequence[Any]) -> Sequence[Array]:
    """`feeds`, one for each input, as `kernel.fill` takes them; themselves if they are so already.

    Raises `FeedError` for one that does not fit.
    """
    if kernel._code.fit(*feeds):
        return feeds
    return [as_feed(a, t, name) for a, (t, name) in zip(feeds, kernel._call.inputs, strict=True)]


def direct(kernel: Kernel) -> Callable[..., Any] | None:
    """What gives the results for arrays that come as they should, and None for others.

    Native code looks at all that it has to know of them.
    """
    return kernel._call.scalar


def is_for_all_sizes(kernel: Kernel) -> bool:
    """Whether it is native code for all sizes, with no loop in it that NumPy does."""
    scalar = kernel._code.scalar
    native = kernel._code.is_native
    return native and bool(kernel.graph.sizes) and getattr(scalar, "for_all_sizes", True) is True


def _require_kernels(path: str | os.PathLike[str], others: Sequence[Any]) -> None:
    """Require kernels, and none where one alone is drawn."""
    strange = [other for other in others if not isinstance(other, Kernel)]
    if strange:
        raise ArgumentError(
            f"Kernel.save: others are kernels, not {strange[0]!r:.60}",
            hint="compile graphs with pg.compile(graph)",
        )
    if others and Path(path).suffix.lower() in PICTURES:
        raise ArgumentError(f"{os.fspath(path)!r:.200} would be a picture of one kernel")


def _save_code(
    path: str | os.PathLike[str], kernels: list[Kernel], *, force: bool, scipy: bool, blas: bool
) -> None:
    """Write a file of C or of Python, as its name ends."""
    told, graphs = f"{os.fspath(path)!r:.200}", [kernel.graph for kernel in kernels]
    if Path(path).suffix.lower() in _OF_C:
        if scipy:
            raise ArgumentError(
                f"{told}: a file of C imports nothing, and so no SciPy", hint="leave scipy out"
            )
        home = importlib.import_module("primgraph.codegen.export.file")
        home.save_c(path, graphs, force=force, blas=blas)
        return
    if Path(path).suffix.lower() != ".py":
        raise ArgumentError(
            f"{told} does not end in .py or .c, so the kind of file is unknown",
            hint="kernel.save('model.py') writes NumPy code, kernel.save('model.c') writes C; "
            f"pictures end in {', '.join(PICTURES)}",
        )
    if blas:
        raise ArgumentError(
            f"{told}: blas is for files of C", hint="leave it out: NumPy has a BLAS of its own"
        )
    save_source(path, graphs, force=force, scipy=scipy)


def _become(kernel: Kernel, recipe: Recipe, code: Compiled) -> None:
    """Make `kernel`, which is new, the one that computes as `recipe` says, by this code."""
    graph, form = recipe.graph, recipe.graph.form
    names = [v.hint or str(i) for i, v in enumerate(graph.inputs)]
    nested = form is not None and not form.is_plain
    # Code may return one array itself, which takes no time; all else is made of a list.
    pack = None if form is None or recipe.is_alone else packer(form.results)
    # What is overwritten is looked at in every call.
    looked_at = nested or code.once or recipe.donated
    scalar = None if looked_at else _packed_scalar(code, pack)
    fields = {
        "graph": graph,
        "style": recipe.style,
        "donated": dict(recipe.donated),
        "once": recipe.once,
        "handed": recipe.handed,
        "_recipe": recipe,
        "_runner": Runner(recipe, code),
        "_code": code,
        "_call": _Call(tuple(zip(graph.input_types, names, strict=True)), nested, scalar, pack),
    }
    for name, value in fields.items():
        object.__setattr__(kernel, name, value)


def _packed_scalar(
    code: Compiled, pack: Callable[[list[Array]], Any] | None
) -> Callable[..., Any] | None:
    """What computes single numbers, if there is code for it, and returns what a kernel does."""
    scalar = code.scalar
    if scalar is None or pack is None:
        return scalar

    def packed(*feeds: Any) -> Any:
        found = scalar(*feeds)
        return None if found is None else pack(found)

    return packed
