"""The readable style: expressions as a person would write them, under the user's source lines.

The modules beside this one decide the details: `titles` (names), `shapes` (axes of size 1), `page`
(inlining), `expressions` and `views` (right-hand sides), `interface` (arguments and results).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from primgraph.codegen.ir.extents import Text
from primgraph.codegen.ir.schedule import Schedule
from primgraph.codegen.ops.spelling.library import writing_for
from primgraph.codegen.runtime import support
from primgraph.codegen.targets.readable.expressions import write_step
from primgraph.codegen.targets.readable.interface import Interface
from primgraph.codegen.targets.readable.page import LONGEST, Page, Piece, Shared
from primgraph.codegen.targets.readable.sizes import Sizes
from primgraph.codegen.targets.text.layout import result, signature
from primgraph.codegen.targets.text.module import MANY, Function, Module
from primgraph.ir.frontend.containers import Form, result_names
from primgraph.ir.frontend.result_names import Title


def readable(
    schedule: Schedule,
    file: Shared | None = None,
    form: Form | None = None,
    titles: Sequence[Title] = (),
    sizes: Sizes | None = None,
) -> Module:
    """Print the schedule as a module whose entry takes arrays and returns one array or a tuple.

    With a `form` it takes and returns containers. `titles` describe the results. The schedule has
    variables for `sizes`, if any, which the first lines compute. In a standalone `file`, constants
    of any size are in the text. Its entry converts its arguments, checks their shapes, and returns
    arrays of the declared types.
    """
    page = Page(schedule, file, titles, result_names(form, len(schedule.outputs)), sizes)
    interface = Interface(page, form, titles)
    with writing_for(page.file.dialect.library) as called:
        _write_steps(page, interface.arguments)
        many = max(len(interface.arguments), len(schedule.outputs)) > MANY
        whole = len(page.parts.parts) == 1 and not many
        functions = [_single(page, interface)] if whole else _several(page, interface)
    if not page.standalone:
        for name, kind in page.file.classes.table.items():
            page.table[name] = kind
            page.opening.append(f"# {name} is a class, in the table beside this code.")
    imports = len(page.file.dialect.imports)
    if len(page.opening) > imports:
        page.opening.insert(imports, "")
    functions[-1].docstring = interface.docstring()
    _decorate(page, functions[-1], called)
    spelled = page.file.dialect.library.respell
    helpers = [spelled(_strip_annotations(support.text_of(name))) for name in page.helpers]
    return Module(page.opening, helpers, functions, functions[-1].name, page.table, page.users)


def _decorate(page: Page, entry: Function, called: Collection[str]) -> None:
    """Decorate the entry, if the library asks for it where functions make arrays."""
    placing = page.file.dialect.placing
    if placing is not None and not placing.makers.isdisjoint(called):
        page.include(placing.helper)
        page.file.imports[placing.requires] = None
        entry.decorators.append(f"@{placing.helper}")


def _write_steps(page: Page, arguments: list[str]) -> None:
    """Write all steps to the page, in parts if there are too many for one function."""
    for i, name in enumerate(arguments):
        page.pieces[i] = Piece(Text(name), page.schedule.types[i].shape, (name,))
        page.parts.argument(name)
    for name in () if page.sizes is None else page.sizes.names:
        page.parts.argument(name)
    for steps in page.schedule.chunks():
        if page.parts.parts:
            for value in list(page.waiting):
                if value in page.waiting:
                    page.write(value)
        page.parts.begin()
        page.said, page.commented = None, None
        for i in steps:
            with page.noting_sizes():
                write_step(page, i, page.schedule.steps[i])


def _single(page: Page, interface: Interface) -> Function:
    """Return the only function."""
    outputs, function = page.schedule.outputs, page.parts.current
    function.name, function.parameters = interface.name, ", ".join(interface.parameters)
    function.wraps = True
    only = len(outputs) == 1
    results = [interface.result(v, inline=only) for v in outputs]
    text, last = ", ".join(results) or "()", len(page.schedule.steps) - 1
    if interface.form is not None:
        function.returns(interface.return_lines(results), last)
    elif only or len(text) <= LONGEST:
        function.returns(result(text), last)
    else:
        function.returns(["(", *(f"    {r}," for r in results), ")"], last)
    function.first(interface.bind_arguments(interface.arguments, page.sizes_read))
    return function


def _several(page: Page, interface: Interface) -> list[Function]:
    """Return the parts, and an entry that calls them in order."""
    arguments, sizes = interface.arguments, [] if page.sizes is None else page.sizes.names
    results = [interface.result(v, inline=False) for v in page.schedule.outputs]
    first = page.parts.finish([*arguments, *sizes], results)
    carried = [f"carried[{i}]" for i in range(first + len(results))]
    if interface.form is None:
        entry = Function(interface.name, "*arguments")
        entry.line(f"carried = [*arguments, *[None] * {len(carried) - len(arguments)}]")
    else:
        entry = Function(interface.name, ", ".join(interface.parameters))
        entry.line(f"carried = [None] * {len(carried)}")
    for line in interface.bind_arguments(carried[: len(arguments)], set(sizes)):
        entry.line(line)
    for slot, name in zip(carried[len(arguments) :], sizes, strict=False):
        entry.line(f"{slot} = {name}")
    for part in page.parts.parts:
        entry.line(f"{part.name}(carried)")
    if interface.form is not None:
        entry.returns(interface.return_lines(carried[first:]))
    elif len(results) == 1:
        entry.returns([carried[first]])
    else:
        entry.returns([f"tuple(carried[{first}:])"])
    return [*page.parts.parts, entry]


def _strip_annotations(function: str) -> str:
    """Return the text of a helper without annotations, whose names are not imported."""
    if not function.startswith("def "):
        return function
    head, colon, body = function.partition(":\n")
    name, _, parameters = head.removeprefix("def ").removesuffix(" -> Any").partition("(")
    listed = [p.strip() for p in parameters.removesuffix(")").split(",") if p.strip()]
    for annotation, text in (
        (": Any = ", "="),
        (": float = ", "="),
        (": Any", ""),
        (": float", ""),
        (": int = ", "="),
        (": int", ""),
        (": bool = ", "="),
        (": bool", ""),
        (": str", ""),
    ):
        listed = [p.replace(annotation, text) for p in listed]
    inner = "".join(map(_strip_any, body.splitlines(keepends=True)))
    return "\n".join(signature(name, listed))[:-1] + colon + inner


def _strip_any(line: str) -> str:
    is_head = line.lstrip().startswith("def ")
    return line.replace(": Any", "").replace(" -> Any", "") if is_head else line
