"""Execution of compiled code: arrays, workspaces, and errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.frames import is_interruption
from primgraph.codegen.compiled import Compiled
from primgraph.codegen.recipe import Recipe
from primgraph.codegen.runtime.feeds import checked_out
from primgraph.errors import WRITTEN, ArgumentError, FeedError, RunError, run_error
from primgraph.ir.facts.passes import MESSAGE
from primgraph.ir.frontend.containers import leaves_for
from primgraph.ir.graph import Equation, Graph
from primgraph.ir.sizes import output_types_for
from primgraph.ir.text import typed_equation
from primgraph.ir.types import TensorType

Array: TypeAlias = "np.ndarray[Any, Any]"


# Key of NumPy code that writes into given arrays, which runs while its C is being compiled.
_INTO = "planned into arrays"


def _always() -> bool:
    """Return True: C that writes into given arrays may be compiled at once."""
    return True


@final
class Runner:
    """Runs the `code` of a recipe on arrays of exactly the declared types, unchecked.

    Results are lists with an array per output, or the array itself of a recipe with a single
    result. Many threads may run it at the same time.
    """

    def __init__(self, recipe: Recipe, code: Compiled) -> None:
        self.recipe = recipe
        self.code = code
        self.graph = recipe.graph
        self.handed = recipe.handed
        self.donated = dict(recipe.donated)
        self._borrowed = threading.local()
        self._codes = {recipe.style: code}
        self._into: Compiled | None = None
        types = self.graph.output_types
        # The types of results, if they are the same for all arrays.
        self._types = None if any(type.names for type in types) else types
        self.is_into_ready: Callable[[], bool] = _always

    def run(self, code: Compiled, *arrays: Sequence[Array]) -> Any:
        """Return the results of `code`, by its scalar path if that applies.

        Raises `RunError` if the computation fails.
        """
        if code.scalar is not None and (found := self.scalar(code, *arrays)) is not None:
            return found
        return self.compute(code, *arrays)

    def compute(self, code: Compiled, *arrays: Sequence[Array]) -> Any:
        """Return the results of `code`, computed on arrays."""
        if code.once is not None:
            arrays = ([*arrays[0], *_constant_results(self, code, code.once)], *arrays[1:])
        try:
            try:
                context, workspace = code.pool.pop()
            except IndexError:
                context, workspace = code.new_workspace()
            results = context.run(code.run, workspace, *arrays)
        except Exception as error:
            if is_interruption(error):
                raise
            raise _failure(code, self.graph, error) from error
        # A run that failed or was interrupted does not get here: its workspace is dropped.
        code.pool.append((context, workspace))
        return results

    def checked(self) -> Callable[..., Any] | None:
        """Return a function that computes arrays which fit, and returns None for others.

        There is none for native code, nor for code without check.
        """
        code, graph = self.code, self.graph
        if code.is_native or not code.is_checked:
            return None
        fit, run, pool, new_workspace = code.fit, code.run, code.pool, code.new_workspace

        def call(*arrays: Array) -> Any:
            if not fit(*arrays):
                return None
            try:
                place = pool.pop()
            except IndexError:
                place = new_workspace()
            try:
                results = place[0].run(run, place[1], arrays)
            except Exception as error:
                if is_interruption(error):
                    raise
                raise _failure(code, graph, error) from error
            pool.append(place)
            return results

        return call

    def scalar(self, code: Compiled, arrays: Sequence[Any], handed: Sequence[Any] = ()) -> Any:
        """Return the results of the scalar path; None if there is none, or it does not apply.

        Native code writes into the arrays `handed`.
        """
        if code.scalar is None:
            return None
        kept = () if code.once is None else _constant_results(self, code, code.once)
        return code.scalar(*arrays, *kept, *handed)

    def running_style(self, arrays: Sequence[Any]) -> str:
        """Return the style of the code that computes these arrays; "scalar" for plain numbers."""
        if self.scalar(self.code, arrays) is not None:
            return "native" if self.code.is_native else "scalar"
        if self.recipe.style == "native":
            return "readable" if self.recipe.is_generic else "planned"
        return self.recipe.style

    def code_of(self, style: str) -> Compiled:
        """Return the code of that style, which may differ from the one that runs."""
        if style not in self._codes:
            self._codes[style] = self.recipe.compile_style(style)
        return self._codes[style]

    def allocate_outputs(self) -> list[Array]:
        """Return new arrays for the outputs that are handed."""
        types = [self.graph.outputs[k].type for k in self.handed]
        return [np.empty(t.shape, t.dtype) for t in types]

    def run_handed(self, arrays: Sequence[Array], handed: Sequence[Array]) -> list[Array]:
        """Return the results; write the handed ones into the arrays `handed`."""
        if self.recipe.is_generic:
            if self.handed and (found := self.scalar(self.code, arrays, handed)) is not None:
                return [found] if self.recipe.is_alone else list(found)
            results: list[Array] = self.run(self.code, arrays)
            for k, target in zip(self.handed, handed, strict=True):
                target[...] = results[k]
                results[k] = target
            return results
        given = (arrays, handed) if self.handed else (arrays,)
        results = self.run(self.code, *given)
        return results

    def run_into(
        self,
        arrays: Sequence[Array],
        out: Any,
        borrow: bool,
        handed: Sequence[Array] = (),
    ) -> list[Array]:
        """Return the results in arrays that are given or kept for this, else in new ones.

        Raises `ArgumentError` for an `out` that does not match.
        """
        known, given = self._types, _flatten_out(self.graph, out)
        types = output_types_for(self.graph, arrays) if known is None else known
        checked_out(given, types, arrays, self.donated)
        for k, array in zip(self.handed if handed else (), handed, strict=True):
            given[k] = array
        if any(array is None for array in given):
            kept = self._borrowed.__dict__.setdefault("arrays", {}) if borrow else {}
            _add_missing(given, types, arrays, self.donated, kept)
        native = self.code.is_native
        by_number = self.code.scalar is not None and not native
        if native and types:
            # Results in donated arrays must not be written before these have been read.
            apart = [array for k, array in enumerate(given) if k not in self.donated]
            if self.scalar(self._code_into(), arrays, apart) is not None:
                return given
        if self.recipe.is_generic or by_number:
            found = self.run(self.code, arrays)
            results = [found] if self.recipe.is_alone else found
            for target, result in zip(given, results, strict=True):
                target[...] = result
        elif types:
            self.run(self._code_into(), arrays, given)
        return given

    def _code_into(self) -> Compiled:
        """Return code that writes all outputs into given arrays."""
        if self._into is None:
            is_native, outputs = self.recipe.style == "native", range(len(self.graph.outputs))
            if is_native and not self.is_into_ready():
                if _INTO not in self._codes:
                    self._codes[_INTO] = self.recipe.compile_style("planned", outputs)
                return self._codes[_INTO]
            self._into = self.recipe.compile_style("native" if is_native else "planned", outputs)
            self._codes.pop(_INTO, None)
        return self._into

    def require_writable(self, feeds: Sequence[Any], arrays: Sequence[Array]) -> None:
        """Raise `FeedError` if a donated array is not writable, or shares memory with an input."""
        for j in self.donated.values():
            if arrays[j] is not feeds[j] or not arrays[j].flags.writeable:
                value = self.graph.inputs[j]
                raise FeedError(
                    f"{value.hint or str(j)!r} is overwritten by the kernel, so it must be a "
                    f"writable array of exactly {value.type}, in row-major order"
                )
        shared = _shared_position(arrays, set(self.donated.values()))
        if shared is not None:
            name = self.graph.inputs[shared].hint or str(shared)
            raise FeedError(
                f"{name!r} is overwritten by the kernel, so it must share no memory with "
                "another input",
                hint="feed a copy of one of them",
            )


def _flatten_out(graph: Graph, out: Any) -> list[Any]:
    """Return `out` as a list with an array or None for each output."""
    form = graph.form
    if out is None:
        return [None] * len(graph.outputs)
    if form is not None:
        return leaves_for(form.results, out)
    if not isinstance(out, Sequence):
        raise ArgumentError(f"out is a list of arrays, one for each result, not {out!r:.60}")
    return list(out)


def _add_missing(
    given: list[Any],
    types: Sequence[TensorType],
    arrays: Sequence[Array],
    donated: Mapping[int, int],
    kept: dict[int, Array],
) -> None:
    """Put donated, lent or new arrays into `given` for results that have none."""
    # Arrays lent by an earlier call may come back, to be read or written in this one.
    others = [*arrays, *(a for a in given if a is not None)]
    for k, type in enumerate(types):
        if k in donated:
            given[k] = arrays[donated[k]]
        elif given[k] is None:
            lent = kept.get(k)
            other = lent is None or lent.shape != type.shape
            if other or any(np.may_share_memory(lent, a) for a in others):
                kept[k] = lent = np.empty(type.shape, type.dtype)
            given[k] = lent


def _constant_results(runner: Runner, code: Compiled, once: Compiled) -> list[Array]:
    """Return the results of the part that is computed once."""
    if code.kept is None:
        results: list[Array] = runner.run(once, ())
        for array in results:
            array.setflags(write=False)
        # Its workspace is not needed again.
        once.pool.clear()
        code.kept = results
    return code.kept


def _shared_position(arrays: Sequence[Array], donated: Set[int]) -> int | None:
    """Return the position of a `donated` array that shares memory with another one, or None.

    All arrays are in row-major order.
    """
    ends, overwritten, last = 0, 0, -1
    for start, size, j in sorted([(a.ctypes.data, a.nbytes, j) for j, a in enumerate(arrays)]):
        if size and start < (ends if j in donated else overwritten):
            return j if j in donated else last
        ends = max(ends, start + size)
        if j in donated and start + size > overwritten:
            overwritten, last = start + size, j
    return None


def _failure(code: Compiled, graph: Graph, error: Exception) -> RunError:
    """Return the error with the equation, the kernel's line, and the user's source line."""
    for body in code.bodies:
        if body.find_failing_line(error)[1] >= 0:
            return _failure(body, body.graph, error)
    line, i = code.find_failing_line(error)
    cause = f"{error.__class__.__name__}: {error}"
    if i < 0:
        return run_error(error)(f"kernel {graph.name} failed: {cause}")
    graph, eqn = code.loaded.within.get(line, (graph, graph.body[i]))
    text = code.loaded.source.splitlines()[line - 1].strip()
    origin = [
        f"equation:      {typed_equation(eqn, graph)}",
        f"kernel line:   {code.loaded.file}:{line}   {text}",
    ]
    if eqn.source is not None:
        origin.append(f"{WRITTEN}  {eqn.source}   {eqn.source.text}".rstrip())
    part = f", a part of {eqn.source.operator}," if eqn.source and eqn.source.operator else ""
    if eqn.held(MESSAGE) is not None:
        return run_error(error)(str(error), origin=origin[-1:])
    given = _integer_inputs(eqn, graph) if isinstance(error, IndexError) else ""
    return run_error(error)(
        f"{eqn.op.name}{part} failed in kernel {graph.name}: {cause}{given}", origin=origin
    )


def _integer_inputs(eqn: Equation, graph: Graph) -> str:
    """Return a phrase naming the integer inputs of the graph that `eqn` depends on."""
    made = {v: e for e in graph.body for v in e.outputs}
    waiting = [v for v in eqn.inputs if v.dtype.kind in "iu"]
    seen = set(waiting)
    for value in waiting:
        found = [v for v in (made[value].inputs if value in made else ()) if v not in seen]
        waiting += [v for v in found if v.dtype.kind in "iu"]
        seen.update(found)
    names = [repr(v.hint) for v in graph.inputs if v in seen and v.hint]
    return f", of input {' or '.join(names)}" if names else ""
