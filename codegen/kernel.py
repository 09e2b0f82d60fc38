"""Kernels: graphs made executable."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from primgraph.codegen.compiled import Compiled
from primgraph.codegen.emit.clocks import Clocks
from primgraph.codegen.emit.standalone import standalone_source
from primgraph.codegen.plan.limits import Limits
from primgraph.codegen.plan.program import Plan
from primgraph.codegen.recipe import Recipe, require_style
from primgraph.codegen.run.feeds import as_feed
from primgraph.codegen.runner import Runner
from primgraph.errors import ArgumentError
from primgraph.ir.drawn import PICTURES, Drawn
from primgraph.ir.form import packer
from primgraph.ir.graph import Graph
from primgraph.ir.overwriting import require_own
from primgraph.ir.signature import checked_methods
from primgraph.ir.slices import without_formal
from primgraph.ir.types import TensorType

Array = np.ndarray[Any, Any]


def compile_graph(
    graph: Graph,
    *,
    style: str = "planned",
    donated: Mapping[int, int] | None = None,
    limits: Limits | None = None,
    once: Sequence[int] = (),
    handed: Sequence[int] = (),
) -> Kernel:
    """A kernel that computes `graph`, which consists of primitives.

    `style` says which source runs: "planned" is fast, "readable" what a person would write.
    `donated` maps positions of outputs to those of inputs of the same type: the array given for
    the input is overwritten with the output, and is what the kernel returns for it. `limits`
    say which steps run in blocks, and of what size; by default those that pay on this machine.
    `once` are the places in the body of equations that depend on no input: the planned code
    computes them at its first call, and keeps the results. `handed` are outputs that `fill`
    writes into arrays which are handed to it.
    Raises `CompileError` for an op that is not a primitive and for a style that does not exist.
    """
    return Kernel(without_formal(graph), style, donated, limits, once, handed)


@final
@checked_methods("fill")
class Kernel(Drawn):
    """An executable made from a graph: call it with an array for each input.

    Arrays are given in order, or by the names of the inputs. It returns a list of arrays, one an
    output, of exactly the declared shapes and dtypes; the kernel of a traced function takes and
    returns what the function did. They are the caller's: writable, and sharing memory with
    nothing, not with each other either. Feeds are never written, but for donated ones. Many
    threads may call one kernel at the same time.
    """

    __slots__ = (
        "__weakref__",
        "_code",
        "_inputs",
        "_nested",
        "_pack",
        "_recipe",
        "_runner",
        "_scalar",
        "_shown",
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
    _scalar: Callable[..., Any] | None
    _inputs: tuple[tuple[TensorType, str], ...]
    _pack: Callable[[list[Array]], Any] | None
    _nested: bool
    _shown: dict[str, Compiled]

    def __init__(
        self,
        graph: Graph,
        style: str = "planned",
        donated: Mapping[int, int] | None = None,
        limits: Limits | None = None,
        once: Sequence[int] = (),
        handed: Sequence[int] = (),
    ) -> None:
        recipe = Recipe.of(graph, style, donated or {}, limits, once, handed)
        self._become(recipe, recipe.compiled(style))

    def _become(self, recipe: Recipe, code: Compiled) -> None:
        graph, form = recipe.graph, recipe.graph.form
        names = [v.hint or str(i) for i, v in enumerate(graph.inputs)]
        nested = form is not None and not form.is_plain
        # Code may return one array itself, which takes no time; all else is made of a list.
        pack = None if form is None or recipe.is_alone else packer(form.results)
        fields = {
            "graph": graph,
            "style": recipe.style,
            "donated": dict(recipe.donated),
            "once": recipe.once,
            "handed": recipe.handed,
            "_recipe": recipe,
            "_runner": Runner(recipe, code),
            "_code": code,
            "_scalar": None if nested or code.once else _packed_scalar(code, pack),
            "_inputs": tuple(zip(graph.input_types, names, strict=True)),
            "_pack": pack,
            "_nested": nested,
            "_shown": {recipe.style: code},
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

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
        scalar = self._scalar
        if scalar is not None and out is None and not named and not borrow:
            try:
                return scalar(*feeds)
            except Exception:
                # Feeds of other kinds, and special values, take the long way.
                pass
        if named or self._nested or len(feeds) != len(self._inputs):
            feeds = tuple(self.graph.in_order(feeds, named))
        if self._code.fit(*feeds):
            arrays: Sequence[Array] = feeds
        else:
            arrays = [as_feed(a, t, name) for a, (t, name) in zip(feeds, self._inputs, strict=True)]
        runner = self._runner
        if self.donated:
            runner.require_writable(feeds, arrays)
        if out is not None or borrow:
            given = runner.run_into(arrays, out, borrow)
            return given[0] if self._recipe.is_alone else self._packed(given)
        if self.handed:
            return self._packed(runner.run_handed(arrays, runner.made()))
        results, pack = runner.run(self._code, arrays), self._pack
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

    def _packed(self, results: list[Array]) -> Any:
        return results if self._pack is None else self._pack(results)

    def running_style(self, feeds: Sequence[Any]) -> str:
        """The code that a call with these feeds runs: "planned", "readable" or "scalar"."""
        code = self._code
        if code.scalar is None:
            return self.style
        try:
            code.scalar(*feeds, *(code.kept or ()))
        except Exception:
            return self.style
        return "scalar"

    def with_clocks(self) -> tuple[Kernel, Clocks, list[int]]:
        """The same kernel with a clock around each step, the clocks, and each step's equation.

        Equations are given by their place in the graph.
        """
        clocks: list[Clocks] = []
        code = self._recipe.compiled(self.style, clocks=clocks)
        other = object.__new__(Kernel)
        other._become(self._recipe, code)
        return other, clocks[0], code.positions()

    @property
    def flat(self) -> Kernel:
        """The same kernel, but one that takes its arrays in order, and returns a list of them."""
        if self.graph.form is None:
            return self
        _, *parts = self._parts()
        return Kernel(self.graph.in_form(None), *parts)

    @property
    def plan(self) -> Plan:
        """What the planned style does with memory, and in blocks; it prints as text.

        What is computed but once is not in it; see `plan_of_once`.
        """
        return self._recipe.plan

    @property
    def plan_of_once(self) -> tuple[Plan, int] | None:
        """What is done with memory by what is computed but once, and the bytes of its results.

        None where there is nothing of that kind.
        """
        return self._recipe.plan_of_once

    @property
    def source(self) -> str:
        """The readable NumPy source, which is what runs in that style."""
        return self._text("readable")

    @property
    def planned_source(self) -> str:
        """The NumPy source with buffers, which is what runs in the style "planned"."""
        return self._text("planned")

    def lines(self, style: str = "planned") -> list[tuple[str, int]]:
        """The source of that style line by line, each with the equation that it computes.

        Equations are positions in the body of `graph`; -1 stands beside lines that belong to none.
        Raises `CompileError` for a style that does not exist.
        """
        require_style(style)
        code = self._code_of(style)
        rows = zip(code.loaded.source.splitlines(), code.loaded.steps[1:], strict=True)
        # The last place is that of no step.
        place = [*code.positions(), -1]
        return [(text, place[i]) for text, i in rows]

    def _text(self, style: str) -> str:
        return self._code_of(style).loaded.source

    def _code_of(self, style: str) -> Compiled:
        if style not in self._shown:
            self._shown[style] = self._recipe.compiled(style)
        return self._shown[style]

    def save(
        self,
        path: str | os.PathLike[str],
        *others: Kernel,
        force: bool = False,
        scipy: bool = False,
    ) -> None:
        """Write a Python file that needs NumPy only, with a function for this and `others`.

        The functions have the names of the graphs. Each returns one array, or a tuple of them,
        for arguments that `np.asarray` can convert, and raises ValueError on a wrong shape. To a
        path that ends in .svg, .html, .dot, .mmd, .json, .png or .pdf a picture of this kernel is
        written instead, as for graphs and programs.

        With `scipy` the file may import SciPy, for functions that NumPy does not have: `erf` and
        `erfc` are then SciPy's, instead of some eighty lines in the file. Single float64 numbers
        take those of Python's `math` in any case.

        A file of Python that primgraph did not write is not overwritten, unless `force` is true: it
        may be your own.

        Raises `CompileError` if a graph has a primitive without a NumPy spelling, and for two
        graphs of one name; `ArgumentError` for what is no kernel, for `others` in a picture, and
        for a file that is there already and was not written by primgraph.
        """
        strange = [other for other in others if not isinstance(other, Kernel)]
        if strange:
            raise ArgumentError(
                f"Kernel.save: others are kernels, not {strange[0]!r:.60}",
                hint="compile graphs with pg.compile(graph)",
            )
        if Path(path).suffix.lower() in PICTURES:
            if others:
                raise ArgumentError(f"{os.fspath(path)!r:.200} would be a picture of one kernel")
            super().save(path)
            return
        source = standalone_source([self.graph, *(kernel.graph for kernel in others)], scipy=scipy)
        if not force:
            require_own(path, "save to another file, or say force=True")
        Path(path).write_text(source, encoding="ascii")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Kernel never changes: cannot set {name!r}; compile a new one")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel, self._parts()

    def _parts(self) -> tuple[Any, ...]:
        """What the constructor takes to make this kernel again."""
        made = self._recipe
        return self.graph, self.style, self.donated, made.limits, self.once, self.handed

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.graph.input_types))
        outputs = ", ".join(map(str, self.graph.output_types))
        return f"<{self.style} kernel {self.graph.name}: ({inputs}) -> ({outputs})>"


def _packed_scalar(
    code: Compiled, pack: Callable[[list[Array]], Any] | None
) -> Callable[..., Any] | None:
    """What computes single numbers, if there is code for it, and returns what a kernel does."""
    scalar = code.scalar
    if scalar is None or pack is None:
        return scalar
    return lambda *feeds: pack(scalar(*feeds))
