"""Around the steps of a planned kernel: what comes in, what goes out, and where it starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from primgraph.codegen.feeds import strides_of
from primgraph.codegen.literals import dtype_text
from primgraph.codegen.module import MANY, Function, tuple_text
from primgraph.codegen.workspace import Place
from primgraph.ir.types import TensorType

if TYPE_CHECKING:
    from primgraph.codegen.planned import Planner


def results_of(planner: Planner) -> list[str]:
    """The names of the results, in order, each an array of its own.

    Those are written last that go to inputs which the others may still be read from.
    """
    outputs, donated = planner.schedule.outputs, planner.donated
    held = _copies_held(planner)
    turns = sorted(enumerate(outputs), key=lambda pair: pair[0] in donated)
    named = {k: _result(planner, k, v, held) for k, v in turns}
    return [named[k] for k in range(len(outputs))]


def _copies_held(planner: Planner) -> dict[int, Place]:
    """Copies of what is read from one donated input to be left in another, by value.

    Both are written to, and none of the two orders would be right for all such outputs.
    """
    schedule, donated = planner.schedule, planner.donated
    last, held = len(schedule.steps) - 1, {}
    for k, j in donated.items():
        value = schedule.outputs[k]
        root, place = schedule.root[value], planner.places[value]
        if root != j and root in donated.values():
            name = planner.names.counted("held")
            planner.line(f"{name} = {planner.use(place.name)}.copy()", last)
            planner.parts.bind(name)
            planner.ledger.hold(schedule.types[value].nbytes)
            held[value] = Place(name, place.shape)
    return held


def _result(planner: Planner, k: int, value: int, held: dict[int, Place]) -> str:
    """The name of result `k`: an array of its own, copied unless it was computed there."""
    place, type = planner.places[value], planner.schedule.types[value]
    last = len(planner.schedule.steps) - 1
    if k in planner.donated:
        array, place = planner.places[planner.donated[k]].name, held.get(value, place)
        if place.name != array:
            planner.line(f"{planner.use(array)}[...] = {planner.use(place.name)}", last)
        return planner.use(array)
    name = f"r{k}"
    if place.name == name and place.plain:
        return planner.use(name)
    if place.shape == type.shape and name not in planner.given:
        planner.line(f"{name} = {planner.use(place.name)}.copy()", last)
        planner.parts.bind(name)
        planner.ledger.hold(type.nbytes)
        return name
    planner.fresh(name, type, last)
    planner.line(f"{name}[...] = {planner.use(place.name)}", last)
    return name


def entries(planner: Planner, arguments: list[str], results: list[str]) -> list[Function]:
    """The function `run`, and those that it calls if the steps are too many for one."""
    parts, workspace, given = planner.parts, planner.workspace, list(planner.given)
    parameters = "w, arrays, results" if given else "w, arrays"
    if len(parts.parts) == 1 and max(len(arguments), len(results)) <= MANY:
        function = parts.current
        function.name, function.parameters = "run", parameters
        lines = [f"{tuple_text(arguments)[1:-1]} = arrays"] if arguments else []
        if given:
            lines.append(f"{tuple_text(given)[1:-1]} = results")
        function.first([*lines, *workspace.unpack(list(planner.taken[0]))])
        alone = planner.options.alone
        function.line(f"return {results[0]}" if alone else f"return [{', '.join(results)}]")
        return [function]
    first = parts.finish([*arguments, *given], results)
    for number, part in enumerate(parts.parts):
        part.first(workspace.unpack(list(planner.taken[number])))
    entry = Function("run", parameters)
    count = first + len(results) - len(arguments) - len(given)
    more = ", *results" if given else ""
    entry.line(f"carried = [*arrays{more}, *[None] * {count}]")
    for part in parts.parts:
        entry.line(f"{part.name}(w, carried)")
    entry.line(f"return carried[{first}]" if planner.options.alone else f"return carried[{first}:]")
    return [*parts.parts, entry]


def check_of(types: Sequence[TensorType]) -> Function | None:
    """`fit(*arrays)`: whether all are writable arrays of exactly these types, in order in memory.

    Most feeds are, and this is the fastest way to know it.
    """
    if len(types) > MANY:
        return None
    names = [f"x{i}" for i in range(len(types))]
    function = Function("fit", ", ".join(names))
    for name, type in zip(names, types, strict=True):
        function.line(f"if {name}.__class__ is not np.ndarray or not {name}.flags.carray:")
        function.line("    return False")
        dtype = f"dtype_of_{dtype_text(type.dtype)[3:]}"
        function.line(f"if {name}.dtype is not {dtype} or {name}.shape != {type.shape!r}:")
        function.line("    return False")
        if 1 in type.shape and type.size:
            strides = strides_of(type.shape, type.dtype.itemsize)
            function.line(f"if {name}.strides != {strides!r}:")
            function.line("    return False")
    function.line("return True")
    return function
