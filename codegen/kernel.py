"""Kernels: graphs made executable."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import Context
from pathlib import Path
from typing import Any, final

import numpy as np

from primgraph.codegen.feeds import as_feed
from primgraph.codegen.load import Loaded, render
from primgraph.codegen.module import Module
from primgraph.codegen.planned import Options, planned
from primgraph.codegen.readable import readable
from primgraph.codegen.regions import arranged, default_limits
from primgraph.codegen.schedule import Schedule, Step, schedule
from primgraph.errors import CompileError, FeedError, RunError
from primgraph.ir.graph import Graph
from primgraph.ir.text import value_text
from primgraph.ir.types import TensorType

Array = np.ndarray[Any, Any]

STYLES = ("planned", "readable")


def compile_graph(
    graph: Graph, *, style: str = "planned", donated: Mapping[int, int] | None = None
) -> Kernel:
    """A kernel that computes `graph`, which consists of primitives.

    `style` says which source runs: "planned" is fast, "readable" what a person would write.
    `donated` maps positions of outputs to those of inputs of the same type: the array given for
    the input is overwritten with the output, and is what the kernel returns for it.
    Raises `CompileError` for an op that is not a primitive and for a style that does not exist.
    """
    return Kernel(graph, style, donated)


@final
class Kernel:
    """An executable made from a graph: call it with an array for each input.

    It returns a list of arrays, one an output, of exactly the declared shapes and dtypes. They
    are the caller's: writable, and sharing memory with nothing, not with each other either.
    Feeds are never written, but for donated ones. Many threads may call one kernel at the same time.
    """

    __slots__ = (
        "__weakref__",
        "_inputs",
        "_loaded",
        "_other",
        "_plan",
        "_pool",
        "_run",
        "_start",
        "donated",
        "graph",
        "style",
    )

    graph: Graph
    style: str
    donated: dict[int, int]
    _inputs: tuple[tuple[TensorType, str], ...]
    _plan: Schedule
    _loaded: Loaded
    _run: Callable[..., list[Array]]
    _start: Callable[[], Any]
    _pool: list[tuple[Context, Any]]
    _other: dict[str, str]

    def __init__(
        self, graph: Graph, style: str = "planned", donated: Mapping[int, int] | None = None
    ) -> None:
        if style not in STYLES:
            raise CompileError(f"there is no style {style!r}", hint=f"styles: {', '.join(STYLES)}")
        gifts = _checked_gifts(graph, donated or {})
        plan = schedule(graph)
        if style == "planned":
            plan, regions = arranged(plan, default_limits())
            module = planned(plan, regions, Options(gifts))[0]
        else:
            module = readable(plan)
        loaded = Loaded(module, render(module))
        if style == "planned":
            run, start = loaded.function("run"), loaded.function("workspace")
        else:
            run, start = _arrays_of(loaded, module.entry, plan, gifts), _nothing
        names = [v.hint or str(i) for i, v in enumerate(graph.inputs)]
        set_once = object.__setattr__
        set_once(self, "graph", graph)
        set_once(self, "style", style)
        set_once(self, "donated", gifts)
        set_once(self, "_inputs", tuple(zip(graph.input_types, names, strict=True)))
        set_once(self, "_plan", plan)
        set_once(self, "_loaded", loaded)
        set_once(self, "_run", run)
        set_once(self, "_start", start)
        set_once(self, "_pool", [])
        set_once(self, "_other", {})

    def __call__(self, *feeds: Any) -> list[Array]:
        """The outputs for `feeds`, which are given in the order of the graph's inputs.

        Raises `FeedError` for feeds that do not fit, and `RunError`, with the equation and the
        user's line, where the computation fails.
        """
        if len(feeds) != len(self._inputs):
            raise FeedError(
                f"{self.graph.name} takes {len(self._inputs)} arrays, {len(feeds)} given"
            )
        arrays = [as_feed(a, t, name) for a, (t, name) in zip(feeds, self._inputs, strict=True)]
        for j in self.donated.values():
            if arrays[j] is not feeds[j] or not arrays[j].flags.writeable:
                raise FeedError(
                    f"{self._inputs[j][1]!r} is overwritten by the kernel, so it must be a "
                    f"writable array of exactly {self._inputs[j][0]}, in row-major order"
                )
        try:
            try:
                context, workspace = self._pool.pop()
            except IndexError:
                context, workspace = _quiet_context(), self._start()
            results = context.run(self._run, workspace, arrays)
        except Exception as error:
            raise _failure(self._loaded, self._plan, error) from error
        # A run that failed or was interrupted does not come here: its workspace is dropped.
        self._pool.append((context, workspace))
        return results

    @property
    def source(self) -> str:
        """The readable NumPy source, which is what runs in that style."""
        return self._text("readable")

    @property
    def planned_source(self) -> str:
        """The NumPy source with buffers, which is what runs in the style "planned"."""
        return self._text("planned")

    def _text(self, style: str) -> str:
        if style == self.style:
            return self._loaded.source
        if style not in self._other:
            self._other[style] = render(_emit(schedule(self.graph), style, self.donated))
        return self._other[style]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a Python file that needs NumPy only; it has one function, named as the graph.

        The function returns one array, or a tuple of them, for arguments that `np.asarray` can
        convert, and raises ValueError on a wrong shape. Raises `CompileError` if the graph has
        a primitive without a NumPy spelling.
        """
        module = readable(schedule(self.graph), standalone=True)
        if module.users:
            raise CompileError(
                f"primitive {module.users[0]} is called through its own Python function, "
                "which a file that needs NumPy only cannot do"
            )
        entry = module.functions[-1]
        entry.decorators = ['@np.errstate(all="ignore")']
        entry.docstring = _docstring(self.graph, entry.parameters)
        module.docstring = ['"""NumPy source of one function, generated by primgraph."""', ""]
        Path(path).write_text(render(module), encoding="ascii")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Kernel never changes: cannot set {name!r}; compile a new one")

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __copy__(self) -> Kernel:
        return self

    def __deepcopy__(self, memo: Any) -> Kernel:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel, (self.graph, self.style, self.donated)

    def __repr__(self) -> str:
        inputs = ", ".join(map(str, self.graph.input_types))
        outputs = ", ".join(map(str, self.graph.output_types))
        return f"<{self.style} kernel {self.graph.name}: ({inputs}) -> ({outputs})>"


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


def _emit(plan: Schedule, style: str, donated: Mapping[int, int]) -> Module:
    if style == "planned":
        plan, regions = arranged(plan, default_limits())
        return planned(plan, regions, Options(donated))[0]
    return readable(plan)


def _nothing() -> None:
    """The workspace of the readable style."""


def _quiet_context() -> Context:
    """A context in which NumPy keeps silent about floating point, whatever the caller's does.

    Entering it costs a small part of what `np.errstate` does, and changes nothing outside.
    """
    context = Context()
    context.run(np.seterr, all="ignore")
    return context


def _arrays_of(
    loaded: Loaded, entry: str, plan: Schedule, donated: Mapping[int, int]
) -> Callable[..., Any]:
    """Call a readable function, and make of its results arrays that nothing else refers to."""
    function = loaded.function(entry)
    types = [plan.types[v] for v in plan.outputs]
    constants = {id(v) for v in loaded.namespace.values()}

    def run(workspace: None, arrays: list[Array]) -> list[Array]:
        found = function(*arrays)
        taken = constants.union(map(id, arrays))
        made = []
        for result, type in zip(found if len(types) != 1 else (found,), types, strict=True):
            array = np.asarray(result, type.dtype, order="C")
            shared = id(array) in taken or array.base is not None or not array.flags.writeable
            taken.add(id(array))
            made.append(array.copy() if shared else array)
        for k, j in donated.items():
            arrays[j][...] = made[k]
            made[k] = arrays[j]
        return made

    return run


def _failure(loaded: Loaded, plan: Schedule, error: Exception) -> RunError:
    """What failed: the equation, the line of the kernel, and the line of the user."""
    line, i = loaded.failing(error)
    cause = f"{error.__class__.__name__}: {error}"
    if i < 0:
        return RunError(f"kernel {plan.name} failed: {cause}")
    step = plan.steps[i]
    text = loaded.source.splitlines()[line - 1].strip()
    origin = [f"equation:      {_equation(step)}", f"kernel line:   {loaded.file}:{line}   {text}"]
    if step.source is not None:
        origin.append(f"written here:  {step.source}   {step.source.text}".rstrip())
    return RunError(f"{step.op.name} failed in kernel {plan.name}: {cause}", origin=origin)


def _equation(step: Step) -> str:
    """The equation with the types of its operands."""
    outputs = ", ".join(f"%{v}: {t}" for v, t in zip(step.outputs, step.results, strict=True))
    shown = [f"%{v}: {t}" for v, t in zip(step.inputs, step.operands, strict=True)]
    shown += [f"{key}={value_text(value)}" for key, value in step.eqn.params]
    text = f"{outputs} = {step.op.name}({', '.join(shown)})"
    return text if len(text) <= 400 else text[:397] + "..."


def _docstring(graph: Graph, parameters: str) -> list[str]:
    """What the function of a saved file takes and returns."""
    names = [n for n in parameters.split(", ") if n and not n.startswith("*")]
    names += [f"argument {i}" for i in range(len(names), len(graph.inputs))]
    inputs = [f"{n}: {_listed(v.type)}" for n, v in zip(names, graph.inputs, strict=True)]
    outputs = [f"result {i}: {_listed(v.type)}" for i, v in enumerate(graph.outputs)]
    made = "1 array" if len(outputs) == 1 else f"{len(outputs)} arrays"
    title = f"Compute {made} from {len(inputs)}, as NumPy does."
    return [f'"""{title}', "", *inputs, *outputs, '"""']


def _listed(type: TensorType) -> str:
    return f"{type.dtype.name}, shape {type.shape}"
