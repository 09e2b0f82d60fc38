"""Kernels: graphs made executable."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np

from primgraph.codegen.compiled import Compiled, compiled_planned, compiled_readable, plan_for
from primgraph.codegen.emit.clocks import Clocks
from primgraph.codegen.emit.standalone import standalone_source
from primgraph.codegen.once import parted
from primgraph.codegen.plan.limits import Limits, default_limits
from primgraph.codegen.plan.program import Options, Plan
from primgraph.codegen.run.feeds import as_feed, checked_out
from primgraph.errors import WRITTEN, ArgumentError, CompileError, FeedError, RunError
from primgraph.ir.drawn import PICTURES, Drawn
from primgraph.ir.form import LEAF, leaves_for, packer
from primgraph.ir.graph import Equation, Graph
from primgraph.ir.overwriting import require_own
from primgraph.ir.signature import checked_methods
from primgraph.ir.text import typed_equation
from primgraph.ir.types import TensorType

Array = np.ndarray[Any, Any]

STYLES = ("planned", "readable")


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
    return Kernel(graph, style, donated, limits, once, handed)


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
        "_alone",
        "_borrowed",
        "_code",
        "_inputs",
        "_limits",
        "_nested",
        "_other",
        "_pack",
        "_scalar",
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
    _inputs: tuple[tuple[TensorType, str], ...]
    _limits: Limits | None
    _code: Compiled
    _pack: Callable[[list[Array]], Any] | None
    _nested: bool
    _alone: bool
    _scalar: Callable[..., Any] | None
    _borrowed: threading.local
    _other: dict[str, Any]

    def __init__(
        self,
        graph: Graph,
        style: str = "planned",
        donated: Mapping[int, int] | None = None,
        limits: Limits | None = None,
        once: Sequence[int] = (),
        handed: Sequence[int] = (),
    ) -> None:
        _check_style(style)
        gifts = _checked_gifts(graph, donated or {})
        names = [v.hint or str(i) for i, v in enumerate(graph.inputs)]
        form = graph.form
        nested = form is not None and not form.is_plain
        alone = form is not None and form.results == LEAF
        set_once = object.__setattr__
        set_once(self, "graph", graph)
        set_once(self, "style", style)
        set_once(self, "donated", gifts)
        set_once(self, "once", tuple(once))
        set_once(self, "handed", tuple(handed))
        set_once(self, "_inputs", tuple(zip(graph.input_types, names, strict=True)))
        set_once(self, "_limits", limits)
        # Code may return one array itself, which takes no time; all else is made of a list.
        set_once(self, "_alone", alone)
        set_once(self, "_nested", nested)
        set_once(self, "_pack", None if form is None or alone else packer(form.results))
        set_once(self, "_code", self._compiled(style))
        set_once(self, "_scalar", None if nested or self._code.once else self._scalar_code())
        set_once(self, "_borrowed", threading.local())
        set_once(self, "_other", {})

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
        if self.donated:
            self._check_given(feeds, arrays)
        if out is not None or borrow:
            given = self._call_into(arrays, self._given(out), borrow)
            return given[0] if self._alone else self._packed(given)
        if self.handed:
            return self._packed(self._call_handed(arrays, self._made(self.handed)))
        results, pack = self._call(self._code, arrays), self._pack
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
            return self._call_into(arrays, self._given(out), borrow, handed)
        return self._call_handed(arrays, handed)

    def _packed(self, results: list[Array]) -> Any:
        return results if self._pack is None else self._pack(results)

    def _scalar_code(self) -> Callable[..., Any] | None:
        """What computes single numbers, and returns what the kernel does."""
        scalar, pack = self._code.scalar, self._pack
        if scalar is None or pack is None:
            return scalar
        return lambda *feeds: pack(scalar(*feeds))

    def _made(self, places: Sequence[int]) -> list[Array]:
        """New arrays for the outputs at `places`."""
        outputs = self.graph.outputs
        types = [outputs[k].type for k in places]
        return [np.empty(t.shape, t.dtype) for t in types]

    def _call_handed(self, arrays: Sequence[Array], handed: Sequence[Array]) -> list[Array]:
        if self.style == "readable":
            results: list[Array] = self._call(self._code, arrays)
            for k, target in zip(self.handed, handed, strict=True):
                target[...] = results[k]
                results[k] = target
            return results
        given = (arrays, handed) if self.handed else (arrays,)
        results = self._call(self._code, *given)
        return results

    def _kept(self, once: Compiled) -> list[Array]:
        """The results of what is computed but once."""
        results: list[Array] = self._call(once, ())
        for array in results:
            array.setflags(write=False)
        # A workspace for it is not needed again.
        once.pool.clear()
        return results

    def _call(self, code: Compiled, *arrays: Sequence[Array]) -> Any:
        if code.once is not None:
            if code.kept is None:
                code.kept = self._kept(code.once)
            arrays = ([*arrays[0], *code.kept], *arrays[1:])
        if code.scalar is not None:
            try:
                return code.scalar(*arrays[0])
            except Exception:
                # Python raises an exception where NumPy has a special value.
                pass
        try:
            try:
                context, workspace = code.pool.pop()
            except IndexError:
                context, workspace = code.new_workspace()
            results = context.run(code.run, workspace, *arrays)
        except Exception as error:
            raise _failure(code, self.graph, error) from error
        # A run that failed or was interrupted does not come here: its workspace is dropped.
        code.pool.append((context, workspace))
        return results

    def _check_given(self, feeds: Sequence[Any], arrays: Sequence[Array]) -> None:
        for j in self.donated.values():
            if arrays[j] is not feeds[j] or not arrays[j].flags.writeable:
                raise FeedError(
                    f"{self._inputs[j][1]!r} is overwritten by the kernel, so it must be a "
                    f"writable array of exactly {self._inputs[j][0]}, in row-major order"
                )

    def _given(self, out: Any) -> list[Any]:
        """`out` as a list with an array or None for each output."""
        form = self.graph.form
        if out is None:
            return [None] * len(self.graph.outputs)
        if form is not None:
            return leaves_for(form.results, out)
        if not isinstance(out, Sequence):
            raise ArgumentError(f"out is a list of arrays, one for each result, not {out!r:.60}")
        return list(out)

    def _call_into(
        self,
        arrays: Sequence[Array],
        given: list[Any],
        borrow: bool,
        handed: Sequence[Array] = (),
    ) -> list[Array]:
        """The results in arrays that are given or kept for that; made new where there is none."""
        types = self.graph.output_types
        checked_out(given, types, arrays, self.donated)
        kept = self._borrowed.__dict__.setdefault("arrays", {}) if borrow else {}
        for k, array in zip(self.handed if handed else (), handed, strict=True):
            given[k] = array
        # What an earlier call has lent may come back, to be read or written in this one.
        others = [*arrays, *(a for a in given if a is not None)]
        for k, type in enumerate(types):
            if k in self.donated:
                given[k] = arrays[self.donated[k]]
            elif given[k] is None:
                lent = kept.get(k)
                if lent is None or any(np.may_share_memory(lent, a) for a in others):
                    kept[k] = lent = np.empty(type.shape, type.dtype)
                given[k] = lent
        if self.style == "readable" or self._code.scalar is not None:
            results = self._call(self._code, arrays)
            for target, result in zip(given, [results] if self._alone else results, strict=True):
                target[...] = result
            return given
        if not types:
            return given
        if "into" not in self._other:
            self._other["into"] = self._compiled("planned", range(len(types)))
        self._call(self._other["into"], arrays, given)
        return given

    def _compiled(
        self,
        style: str,
        given: Sequence[int] | None = None,
        clocks: list[Clocks] | None = None,
    ) -> Compiled:
        if style == "readable":
            return compiled_readable(self.graph, self._options(), clocks)
        limits = self._limits or default_limits()
        return compiled_planned(self.graph, self.once, self._options(given), limits, clocks)

    def _options(self, given: Sequence[int] | None = None) -> Options:
        alone = self._alone and given is None
        places = self.handed if given is None else given
        return Options(tuple(sorted(self.donated.items())), tuple(places), alone)

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
        code = self._compiled(self.style, clocks=clocks)
        other = Kernel(self.graph, self.style, self.donated, self._limits, self.once, self.handed)
        object.__setattr__(other, "_code", code)
        object.__setattr__(other, "_scalar", None if code.once else code.scalar)
        return other, clocks[0], code.positions()

    @property
    def flat(self) -> Kernel:
        """The same kernel, but one that takes its arrays in order, and returns a list of them."""
        if self.graph.form is None:
            return self
        return Kernel(
            self.graph.in_form(None),
            self.style,
            self.donated,
            self._limits,
            self.once,
            self.handed,
        )

    @property
    def plan(self) -> Plan:
        """What the planned style does with memory, and in blocks; it prints as text.

        What is computed but once is not in it; see `plan_of_once`.
        """
        graph, options = self.graph, self._options()
        if self.once:
            first, graph = parted(graph, self.once)
            options = replace(options, kept=len(first.outputs))
        return plan_for(graph, options, self._limits or default_limits())

    @property
    def plan_of_once(self) -> tuple[Plan, int] | None:
        """What is done with memory by what is computed but once, and the bytes of its results.

        None where there is nothing of that kind.
        """
        if not self.once:
            return None
        first, _ = parted(self.graph, self.once)
        plan = plan_for(first, Options(), self._limits or default_limits())
        return plan, sum(t.nbytes for t in first.output_types)

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
        _check_style(style)
        code = self._code_of(style)
        rows = zip(code.loaded.source.splitlines(), code.loaded.steps[1:], strict=True)
        # The last place is that of no step.
        place = [*code.positions(), -1]
        return [(text, place[i]) for text, i in rows]

    def _text(self, style: str) -> str:
        return self._code_of(style).loaded.source

    def _code_of(self, style: str) -> Compiled:
        if style == self.style:
            return self._code
        if style not in self._other:
            self._other[style] = self._compiled(style)
        found: Compiled = self._other[style]
        return found

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
        parts = (self.graph, self.style, self.donated, self._limits, self.once, self.handed)
        return Kernel, parts

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.graph.input_types))
        outputs = ", ".join(map(str, self.graph.output_types))
        return f"<{self.style} kernel {self.graph.name}: ({inputs}) -> ({outputs})>"


def _check_style(style: str) -> None:
    if style not in STYLES:
        raise CompileError(f"there is no style {style!r}", hint=f"styles: {', '.join(STYLES)}")


def _checked_gifts(graph: Graph, donated: Mapping[int, int]) -> dict[int, int]:
    """`donated`, if each output has the type of its input and each input is donated once."""
    for k, j in donated.items():
        if graph.outputs[k].type != graph.inputs[j].type:
            raise CompileError(
                f"output {k}, {graph.outputs[k].type}, does not fit input {j}, "
                f"{graph.inputs[j].type}"
            )
    if len(set(donated.values())) != len(donated):
        raise CompileError("an input is donated to two outputs")
    return dict(donated)


def _failure(code: Compiled, graph: Graph, error: Exception) -> RunError:
    """What failed: the equation, the line of the kernel, and the line of the user."""
    line, i = code.failing(error)
    cause = f"{error.__class__.__name__}: {error}"
    if i < 0:
        return RunError(f"kernel {graph.name} failed: {cause}")
    eqn = graph.body[i]
    text = code.loaded.source.splitlines()[line - 1].strip()
    origin = [
        f"equation:      {typed_equation(eqn, graph)}",
        f"kernel line:   {code.loaded.file}:{line}   {text}",
    ]
    if eqn.source is not None:
        origin.append(f"{WRITTEN}  {eqn.source}   {eqn.source.text}".rstrip())
    part = f", a part of {eqn.source.operator}," if eqn.source and eqn.source.operator else ""
    given = _integer_inputs(eqn, graph) if isinstance(error, IndexError) else ""
    return RunError(
        f"{eqn.op.name}{part} failed in kernel {graph.name}: {cause}{given}", origin=origin
    )


def _integer_inputs(eqn: Equation, graph: Graph) -> str:
    """Which inputs of the graph the integers are that `eqn` takes, as a part of a sentence."""
    made = {v: e for e in graph.body for v in e.outputs}
    waiting = [v for v in eqn.inputs if v.dtype.kind in "iu"]
    seen = set(waiting)
    for value in waiting:
        found = [v for v in (made[value].inputs if value in made else ()) if v not in seen]
        waiting += [v for v in found if v.dtype.kind in "iu"]
        seen.update(found)
    names = [repr(v.hint) for v in graph.inputs if v in seen and v.hint]
    return f", of input {' or '.join(names)}" if names else ""
