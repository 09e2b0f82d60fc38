"""Trace a function of pytrees into a graph, with the tensors that it captures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

from primgraph import tree
from primgraph.api.call_in_world import in_program
from primgraph.api.world import is_array
from primgraph.base.frames import shorten_tracebacks
from primgraph.base.grad_mode import enable_tracking
from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.eager.inplace.adoption import Adoption, Trainable, adopting
from primgraph.errors import ArgumentError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.containers import LEAF, Form
from primgraph.ir.frontend.origins import has_ended, outside
from primgraph.ir.graph import Graph, Value
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable, handle_of, use_variable_class
from primgraph.program.trace import free_name, with_flags

if TYPE_CHECKING:
    from primgraph.eager.derivatives import recording
    from primgraph.eager.inplace import in_place
    from primgraph.eager.node import Node
    from primgraph.eager.tensor import Tensor
else:
    recording = late("primgraph.eager.derivatives.recording")
    in_place = late("primgraph.eager.inplace.in_place")


@final
@dataclass(frozen=True, slots=True)
class Traced:
    """Trace of a function for arrays of given types.

    `graph` takes these arrays, followed by those of `tensors`, which the function captured, and
    returns the arrays in the containers of `structure`, followed by the new values of `changed`,
    which it changes in place. `modes` are the training modes of the layers that it called.
    """

    graph: Graph
    tensors: tuple[Tensor, ...]
    structure: tree.Structure
    modes: tuple[tuple[Trainable, bool], ...]
    changed: tuple[Tensor, ...] = ()

    @property
    def is_current(self) -> bool:
        """Return whether all layers are still in the same training modes."""
        return all(layer.training is training for layer, training in self.modes)

    def store_changes(self, found: list[Node]) -> list[Node]:
        """Store new values in the tensors that the function changes, and return the others."""
        if not self.changed:
            return found
        count = len(found) - len(self.changed)
        values = [t.family(node) for t, node in zip(self.changed, found[count:], strict=True)]
        with recording.no_grad():
            in_place.change_together(list(zip(self.changed, values, strict=True)))
        return found[:count]


def trace_function(
    name: str,
    function: Callable[[list[Variable]], Any],
    types: Sequence[TensorType],
    hints: Sequence[str] = (),
    title: str = "f",
    kind: type[Variable] = Variable,
    keeps_changes: bool = False,
) -> Traced:
    """Call `function` once, with a variable of the class `kind` for each type.

    With `keeps_changes` the function may change tensors in place.

    Raises `ArgumentError` if it returns anything but containers of arrays, and `BuildError` if it
    uses variables of another program.
    """
    builder = Builder(title if title.isidentifier() else "f")
    builder.owner = "function"
    builder.written = True
    shorten_tracebacks()
    inputs = _add_inputs(builder, types, hints)
    adoption: Adoption[Tensor] = Adoption(builder, keeps_changes)
    before = adopting.get()
    try:
        adopting.set(adoption)
        with builder, use_variable_class(kind), enable_tracking():
            result = function([handle_of(builder, v) for v in inputs])
            leaves, structure = tree.flatten(result)
            paths = tree.paths_of(structure, "result")
            pairs = zip(leaves, paths, strict=True)
            found = [result_variable(name, builder, v, p) for v, p in pairs]
            # Views of arrays that were written to are computed on access.
            changes = adoption.changed()
            values = [*(v.value for v in found), *(value for _, value in changes)]
    finally:
        builder.ended = True
        adopting.set(before)
    outer = adopting.get()
    if outer is not None:
        outer.modes |= adoption.modes
    graph = builder.part(builder.inputs, values)
    if builder.stopped:
        graph = with_flags(graph, builder)
    modes = tuple(adoption.modes.values())
    changed = tuple([tensor for tensor, _ in changes])
    return Traced(graph, tuple(adoption.tensors), structure, modes, changed)


def _add_inputs(builder: Builder, types: Sequence[TensorType], hints: Sequence[str]) -> list[Value]:
    """Return inputs of the types, the first of which `hints` name."""
    names = [*hints, *[""] * (len(types) - len(hints))]
    return [
        builder.input(t, free_name(builder, n) if n else "")
        for t, n in zip(types, names, strict=True)
    ]


def result_variable(name: str, builder: Builder, leaf: Any, path: str) -> Variable:
    """Return the leaf at `path` of a function's result as a variable of the graph being built."""
    is_foreign = isinstance(leaf, Variable) and leaf.recorder is not builder
    if is_foreign and (builder.outer is None or has_ended(leaf.recorder)):
        raise outside(leaf.recorder, leaf.value, builder)
    if not is_array(leaf):
        raise ArgumentError(
            f"{name}: the function returned {type(leaf).__name__} {leaf!r:.60} as {path}, not "
            "an array",
            hint="what is no array is returned without pg.jit only, as by pg.grad(f, has_aux=True)"
            if name == "jit"
            else "",
        )
    return in_program(builder, leaf)


def leaf_names(structure: tree.Structure, root: str) -> list[str]:
    """Return a name for each leaf: the keys on its path, joined by dots, after `root`."""
    if structure.kind is None:
        return [root]
    pairs = zip(structure.keys, structure.parts, strict=True)
    return [name for key, part in pairs for name in leaf_names(part, f"{root}.{key}")]


def form_of(arguments: Sequence[tuple[str, tree.Structure]], found: Traced) -> Form | None:
    """Return how a kernel takes arguments and returns results; None for keys of other kinds.

    None, too, for a function that changes tensors: their new values follow the results.
    """
    if found.changed:
        return None
    try:
        listed = [(name, tree.form(s)) for name, s in arguments]
        results = tree.form(found.structure)
    except ArgumentError:
        return None
    count = sum(tree.count(s) for _, s in arguments)
    taken = {name for name, _ in listed}
    for number, value in enumerate(found.graph.inputs[count:]):
        name = value.hint or f"tensor{number}"
        while name in taken:
            name += "_"
        taken.add(name)
        listed.append((name, LEAF))
    return Form(tuple(listed), results)
