"""Around the steps of a planned kernel: what comes in, what goes out, and where it starts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from primgraph.codegen.cards.spelling.literals import dtype_text
from primgraph.codegen.emit.module import MANY, Function, Line, Parts
from primgraph.codegen.plan.program import Options, Plan
from primgraph.codegen.plan.storage.views import tuple_text
from primgraph.codegen.planned.workspace import Workspace
from primgraph.codegen.run.feeds import strides_of
from primgraph.ir.types import TensorType


def entries(
    parts: Parts,
    workspace: Workspace,
    taken: Sequence[Iterable[str]],
    arguments: list[str],
    given: list[str],
    results: list[str],
    options: Options,
) -> list[Function]:
    """The function `run`, and those that it calls if the steps are too many for one.

    Each part has `taken` some names of the workspace.
    """
    parameters = "w, arrays, results" if given else "w, arrays"
    if len(parts.parts) == 1 and max(len(arguments), len(results)) <= MANY:
        function = parts.current
        function.name, function.parameters = "run", parameters
        lines = [f"{tuple_text(arguments)[1:-1]} = arrays"] if arguments else []
        if given:
            lines.append(f"{tuple_text(given)[1:-1]} = results")
        function.first([*lines, *workspace.unpack(list(taken[0]))])
        function.returns([results[0] if options.alone else f"[{', '.join(results)}]"])
        return [function]
    first = parts.finish([*arguments, *given], results)
    for part, names in zip(parts.parts, taken, strict=True):
        part.first(workspace.unpack(list(names)))
    entry = Function("run", parameters)
    count = first + len(results) - len(arguments) - len(given)
    more = ", *results" if given else ""
    entry.line(f"carried = [*arrays{more}, *[None] * {count}]")
    for part in parts.parts:
        entry.line(f"{part.name}(w, carried)")
    entry.returns([f"carried[{first}]" if options.alone else f"carried[{first}:]"])
    return [*parts.parts, entry]


def trips(
    function: Function,
    unpacked: Sequence[str],
    early: Sequence[Line],
    looks: Mapping[str, str],
    arguments: list[str],
    given: list[str],
    plan: Plan,
) -> Function:
    """The function `trips(w, fixed, rows)`, in which what `function` does is done for all rows.

    A row has the number of the trip, which counts nothing, then carries and where the next ones
    are to be, then what is scanned, and where rows of results are to be. `looks` are names for
    rows of views of stacks.
    """
    assert plan.options.trip is not None
    consts, carries = plan.options.trip
    begin = consts + carries
    both = [*arguments[consts:begin], *given[:carries]]
    names = ["_", tuple_text(both), *arguments[begin:], *given[carries:], *looks]
    lines = [f"{tuple_text(arguments[:consts])[1:-1]} = fixed"] if consts else []
    body = [line._replace(depth=line.depth + 1) for line in function.body]
    head = Line(f"for {', '.join(names)} in zip({', '.join(['*rows', *looks.values()])}):")
    function.name, function.parameters = "trips", "w, fixed, rows"
    function.body = [*map(Line, [*lines, *unpacked]), *early, head, *body]
    if not body:
        function.line("pass", depth=1)
    return function


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
        function.line("return False", depth=1)
        dtype = f"dtype_of_{dtype_text(type.dtype)[3:]}"
        function.line(f"if {name}.dtype is not {dtype} or {name}.shape != {type.shape!r}:")
        function.line("return False", depth=1)
        if 1 in type.shape and type.size:
            strides = strides_of(type.shape, type.dtype.itemsize)
            function.line(f"if {name}.strides != {strides!r}:")
            function.line("return False", depth=1)
    function.returns(["True"])
    return function
