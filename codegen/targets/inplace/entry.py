"""Entry points of a planned kernel, and checks of its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from primgraph.codegen.ir.limits import Options
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.views import tuple_text
from primgraph.codegen.ops.spelling.literals import dtype_text
from primgraph.codegen.runtime.feeds import strides_of
from primgraph.codegen.targets.inplace.workspace import Workspace
from primgraph.codegen.targets.text.module import MANY, Function, Line, Parts
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
    """Return the function `run`, and its parts if there are too many steps for one function.

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
    """Return the function `trips(w, fixed, rows)`, which runs all iterations of a loop body.

    A row has the iteration number, the carries and the places of the next ones, the scanned rows,
    and the places of result rows. `looks` maps names to views of stacks whose rows they are.
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


def add_check(plan: Plan, functions: list[Function]) -> list[str]:
    """Add the check of the arguments of a plan, if there is one; return lines that bind its names.

    `fit(*arrays)` returns whether all are writable contiguous arrays of exactly the declared types.
    Most arguments are, and this is the fastest check.
    """
    types = [x.type for x in plan.arguments[: len(plan.arguments) - plan.options.kept]]
    if len(types) > MANY:
        return []
    functions.append(_check(types))
    dtypes = dict.fromkeys(dtype_text(t.dtype) for t in types)
    return ["ndarray = np.ndarray", *(f"dtype_of_{d[3:]} = np.dtype({d})" for d in dtypes)]


def _check(types: Sequence[TensorType]) -> Function:
    names = [f"x{i}" for i in range(len(types))]
    function = Function("fit", ", ".join(names))
    for name, type in zip(names, types, strict=True):
        dtype = f"dtype_of_{dtype_text(type.dtype)[3:]}"
        function.line(f"if {name}.__class__ is not ndarray or {name}.dtype is not {dtype}:")
        function.line("return False", depth=1)
        function.line(f"if {name}.shape != {type.shape!r} or not {name}.flags.carray:")
        function.line("return False", depth=1)
        if 1 in type.shape and type.size:
            strides = strides_of(type.shape, type.dtype.itemsize)
            function.line(f"if {name}.strides != {strides!r}:")
            function.line("return False", depth=1)
    function.returns(["True"])
    return function
