"""Layout of C files: a header with declarations, and a source file."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, final

from primgraph.base.files import require_own
from primgraph.base.providers import provider
from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import HostCall
from primgraph.codegen.lower.nests.nests import nests
from primgraph.codegen.targets.c.parts import functions_in, required_parts
from primgraph.codegen.targets.export.function import write_function
from primgraph.codegen.targets.export.identifiers import (
    Names,
    fill_lines,
    function_name,
    is_name,
    require_name,
)
from primgraph.codegen.targets.export.page import Page, Part, pointers
from primgraph.codegen.targets.export.places import Place, Tables, extents_product, kind_of
from primgraph.codegen.targets.export.remarks import Needs, comment_lines
from primgraph.codegen.targets.export.sizes import (
    REFUSED,
    Sizes,
    helpers,
    in_order,
    macro,
    sizes_of,
)
from primgraph.codegen.targets.export.user_c import called_functions
from primgraph.codegen.targets.text.identifiers import name_values
from primgraph.codegen.targets.text.ordering import order_by_source
from primgraph.codegen.targets.text.render import render_template
from primgraph.errors import ArgumentError, CompileError
from primgraph.ir.dims import size
from primgraph.ir.frontend.containers import keyed_names, result_names
from primgraph.ir.graph import Equation, Graph
from primgraph.ir.sizes import specialize_graph
from primgraph.ir.slices import drop_formal
from primgraph.ir.types import INT64, TensorType

# No blocks of rows: exported files use no threads, and know little about caches.
SERIAL = Limits(cache=1 << 60)

# Functions of `string.h` in the C of the user and of the package.
_MOVES = re.compile(r"\bmem(cpy|set|move)\(")
_STEM = re.compile(r"[A-Za-z0-9_.+ -]+", re.ASCII)
_OWN = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar
wchar wctype cblas
"""
_HEADERS = frozenset(_OWN.split())


@final
class Parameter(NamedTuple):
    """A parameter of a C function: its name, type, and whether it is an output.

    A size is a scalar integer of C type `long`.
    """

    name: str
    type: TensorType
    is_result: bool
    is_size: bool = False

    def place(self, page: Page) -> Place:
        """Return the place of the parameter in a function."""
        alone, name = self.type.size == 1, self.name
        if alone:
            name = f"{name}[0]" if self.type.shape else f"*{name}" if self.is_result else name
        return Place(name, alone, use=partial(page.use, self.name))

    @property
    def kind(self) -> str:
        return "long" if self.is_size else kind_of(self.type.dtype)

    def declaration(self, restrict: str = "") -> str:
        kind = self.kind
        if not self.type.shape:
            return f"{kind} *{restrict}{self.name}" if self.is_result else f"{kind} {self.name}"
        const = "" if self.is_result else "const "
        if self.type.names or is_zero(self.type.size):
            return f"{const}{kind} *{restrict}{self.name}"
        return f"{const}{kind} {self.name}[{restrict}{extents_product(self.type.shape)}]"


@final
class Function(NamedTuple):
    """The parts of a function in the header and the source file, as unindented lines."""

    name: str
    parameters: list[Parameter]
    remark: list[str]
    members: list[tuple[str, str, int]]
    nbytes: int
    sizes: Sizes | None
    declaration: list[str]
    parts: list[list[str]]
    codes: list[str]

    @property
    def upper(self) -> str:
        return self.name.upper()

    @property
    def macro(self) -> str:
        """Return the macro of the workspace size in terms of symbolic sizes."""
        assert self.sizes is not None
        names = self.sizes.names
        return f"{self.upper}_WORKSPACE_BYTES({', '.join(names)}) {macro(self.nbytes)}"


def c_source(graphs: Sequence[Graph], stem: str, *, blas: bool = False) -> tuple[str, str]:
    """Return the texts of a header `stem.h` and of a C file with a function per graph.

    With `blas` it calls BLAS for large matrix products, by the names of CBLAS. Symbolic sizes are
    the first parameters of a function. Raises `CompileError` for a graph with a primitive that is
    not supported in C, for a name that is reserved in C, and for two functions of one name.
    """
    names = [function_name(g.name) for g in graphs]
    known = {n.lower() for n in names} | {f"{n.lower()}_workspace" for n in names}
    if len(known) < 2 * len(names):
        # Constants of the header have these names in capitals.
        raise CompileError(
            f"a file has one function of a name, not {', '.join(names)}",
            hint="a graph has the name of the program, or of the function that was traced",
        )
    tables = Tables()
    functions, shared = [], {*names, *(f"{n}_workspace" for n in names)}
    others: set[str] = set()
    for graph, name in zip(graphs, names, strict=True):
        handed = Names(shared, others)
        functions.append(_function(graph, name, handed, tables, blas))
        shared |= set(tables.known.values())
        others |= handed.used
    used = tables.used
    own = called_functions([code for f in functions for code in f.codes], used)
    parts = required_parts({*used, *functions_in(own)})
    values = {
        "count": "one function" if len(graphs) == 1 else f"{len(graphs)} functions",
        "stem": stem,
        "guard": _guard(stem),
        "functions": functions,
        "tables": [row for n, lines in tables.lines.items() if n in used for row in lines],
        "helpers": "\n\n".join(filter(None, [*helpers(used), parts])),
        "own": own,
        "blas": "cblas" in used,
        # Arrays without elements are null pointers.
        "null_pointers": "NULL" in used,
        "moves": not used.isdisjoint({"memcpy", "memset"}) or _MOVES.search(parts + own),
    }
    return render_template("export.h.j2", values), render_template("export.c.j2", values)


def save_c(
    path: str | os.PathLike[str], graphs: Sequence[Graph], *, force: bool, blas: bool = False
) -> None:
    """Write a C file and its header; overwrite files of other origin only with `force`.

    Raises `ArgumentError` for such files without `force`, and for a path that does not end in `.c`.
    Raises the errors of `c_source`.
    """
    file = Path(path)
    if file.suffix != ".c":
        raise ArgumentError(
            f"{os.fspath(path)!r:.200}: C is saved to a path that ends in .c",
            hint="the header is written beside it, and is for C++, too",
        )
    if not _STEM.fullmatch(file.stem) or file.stem.lower() in _HEADERS:
        raise ArgumentError(
            f"{os.fspath(path)!r:.200}: its header could not be included under that name",
            hint="name it by letters, digits and underscores, and not as a header of C's own",
        )
    header = file.with_suffix(".h")
    top, source = c_source(graphs, file.stem, blas=blas)
    if not force:
        for one in (file, header):
            require_own(one, "save to another file, or say force=True")
    header.write_text(top, encoding="ascii")
    file.write_text(source, encoding="ascii")


def _guard(stem: str) -> str:
    """Return the name of the header's include guard."""
    name = re.sub(r"[^A-Z0-9]", "_", stem.upper())
    return f"{name}_H" if name[:1].isalpha() else f"FILE_{name}_H"


def function_of(graph: Graph, *, blas: bool = False) -> Function:
    """Return the parts of the function of one graph."""
    name = function_name(graph.name)
    names = Names([name, f"{name}_workspace"])
    return _function(graph, name, names, Tables(), blas)


def _function(graph: Graph, name: str, names: Names, tables: Tables, blas: bool) -> Function:
    plain = provider("compositions").compose(drop_formal(graph), _is_in_c)
    graph = _with_names(plain, names, name)
    steps = order_by_source(schedule(graph))
    for v, type in zip(graph.inputs, graph.input_types, strict=True):
        _require_type(type, f"{name}: input {v.hint or '?'}")
    for k, type in enumerate(graph.output_types):
        _require_type(type, f"{name}: result {k}")
    lengths = [Parameter(n, TensorType((), INT64), False, True) for n in in_order(graph)]
    inputs = [Parameter(_input_name(v.hint, names, name), v.type, False) for v in graph.inputs]
    outputs, renamed = _results(graph, steps, names)
    plan = nests(steps, SERIAL, complete=True, alone=True)
    page = Page(plan, names, tables, name, blas, bool(graph.sizes))
    places = {k: p.place(page) for k, p in enumerate(inputs)}
    places.update({v: p.place(page) for v, p in zip(plan.outputs, outputs, strict=True)})
    write_function(page, places)
    parameters = [*lengths, *inputs, *outputs]
    workspace = page.workspace
    sizes = sizes_of(graph, plan) if graph.sizes else None
    kind = "void" if sizes else f"{name}_workspace"
    pointer = f"{kind} *{page.work}" if workspace.members else ""
    stack = max(part.stack for part in page.parts)
    entry = _prototype(name, parameters, pointer, "", page.can_fail or bool(sizes))
    parts = _parts(name, page, parameters, pointer, sizes)
    told = Needs(name, workspace.nbytes, stack, page.can_fail, sizes)
    return Function(
        name,
        parameters,
        comment_lines(
            [(p.name, p.type) for p in inputs],
            [(p.name, p.type) for p in outputs],
            graph.titles,
            told,
            renamed,
        ),
        workspace.members,
        workspace.nbytes,
        sizes,
        entry,
        parts,
        list(page.codes),
    )


def _is_in_c(eqn: Equation) -> bool:
    """Return whether C has the primitive of an equation."""
    if eqn.op.has_bodies:
        return True
    if any(v.type.is_complex for v in (*eqn.inputs, *eqn.outputs)):
        return False
    plan = nests(schedule(Graph(eqn.inputs, [eqn], eqn.outputs)), SERIAL, complete=True, alone=True)
    return not any(isinstance(item, HostCall) for item in plan.items)


def _with_names(graph: Graph, names: Names, function: str) -> Graph:
    """Return the graph with symbolic sizes renamed to valid parameter names."""
    renamed = {
        n: names.fresh(require_name(n, f"a size of {function}"), lasting=True)
        for n in in_order(graph)
    }
    changed = {old: size(new) for old, new in renamed.items() if new != old}
    return specialize_graph(graph, changed) if changed else graph


def _require_type(type: TensorType, what: str) -> None:
    if not kind_of(type.dtype):
        raise CompileError(
            f"{what} is {type}, and C has no such numbers here",
            hint="files of C have floats of 32 and 64 bits, integers and booleans; carry real and "
            "imaginary parts in arrays of their own",
        )


def _input_name(hint: str, names: Names, function: str) -> str:
    if not hint:
        return names.fresh("", "x")
    text = hint.replace(".", "_")
    return names.fresh(require_name(text, f"an input of {function}"), "x")


def _results(graph: Graph, steps: object, names: Names) -> tuple[list[Parameter], list[str]]:
    """Parameters for results: by their keys, or what the user calls them; and a line for each key
    that C has no such name for."""
    plan = schedule(graph)
    count = len(graph.outputs)
    keys = result_names(graph.form, count)
    paths = [""] * count if graph.form is None else keyed_names(graph.form)
    known = name_values(plan, graph.titles, keys)
    inputs = set(names.taken)
    found, told = [], []
    for k, (v, key, path) in enumerate(zip(plan.outputs, keys, paths, strict=True)):
        # Keys may be paths in containers.
        hint = re.sub(r"\W+", "_", key, flags=re.ASCII).strip("_") or known.get(v, "")
        if not hint and path:
            hint = "result_" + re.sub(r"\W+", "_", path, flags=re.ASCII).strip("_")
        if (v < plan.inputs and not key) or hint in inputs:
            hint = f"{hint}_out"
        if not is_name(hint.replace(".", "_")):
            hint = f"{hint}_" if is_name(f"{hint}_") else ""
        name = names.fresh(hint or ("result" if count == 1 else ""), "result")
        found.append(Parameter(name, graph.output_types[k], True))
        if path and name not in (path.replace(".", "_"), f"{path.replace('.', '_')}_out"):
            told.append(f"{name} is the result at {path!r}.")
    return found, told


def _prototype(
    name: str, parameters: Sequence[Parameter], pointer: str, restrict: str, can_fail: bool
) -> list[str]:
    """Return the declaration of a function, in lines."""
    name = f"{'int' if can_fail else 'void'} {name}"
    listed = [p.declaration(restrict) for p in parameters] + ([pointer] if pointer else [])
    line = f"{name}({', '.join(listed) or 'void'})"
    if len(line) <= 98:
        return [line]
    return [f"{name}(", *fill_lines("    ", listed, "    ", ")")]


def _parts(
    name: str,
    page: Page,
    parameters: Sequence[Parameter],
    pointer: str,
    sizes: Sizes | None,
) -> list[list[str]]:
    """Return the functions; with several parts the last one calls the others."""
    made, begin = [], list[str]()
    alone, can_fail = len(page.parts) == 1, page.can_fail
    if sizes:
        nbytes = page.workspace.nbytes
        made.append(sizes.test(name, nbytes, page.tables.used))
        if pointer:
            made.append(sizes.workspace(name, nbytes, page.tables.used))
        test = f"    if (!pg_fits_{name}({', '.join(sizes.names)})) {{"
        begin = [test, f"        return {REFUSED};", "    }"]
    begin += ["    int failed = 0;"] * (can_fail and not alone)
    passed = [p for p in parameters if p.is_size]
    for part in page.parts:
        crossing = [f"    {line}" for line in part.pointers.values()]
        lines = [*pointers(page, part), *crossing, *part.lines]
        if part.is_watched:
            lines.insert(0, "    int bad = 0;")
        if part.can_fail or (alone and sizes):
            lines.append(f"    return {'bad' if part.is_watched else '0'};")
        given = [p for p in parameters if p.name in part.used]
        passed += given
        if alone:
            begin += lines
            continue
        work = pointer if page.work in part.used else ""
        head = _prototype(part.name, given, work, "restrict ", part.can_fail)
        made.append(_define([f"static {head[0]}", *head[1:]], lines))
        begin += _call(part, [*(p.name for p in given), *([page.work] if work else [])])
    if not alone:
        begin += ["    return failed;"] if can_fail else ["    return 0;"] if sizes else []
    unused = [f"    (void){p.name};" for p in parameters if p not in passed]
    head = _prototype(name, parameters, pointer, "restrict ", can_fail or bool(sizes))
    return [*made, _define(head, [*unused, *begin])]


def _call(part: Part, words: Sequence[str]) -> list[str]:
    """Return lines that call a part, and return if it fails."""
    head = f"    {'failed = ' if part.can_fail else ''}{part.name}("
    rows = fill_lines(head, words, "        ", ");")
    if part.can_fail:
        rows += ["    if (failed) {", "        return failed;", "    }"]
    return rows


def _define(head: Sequence[str], lines: Sequence[str]) -> list[str]:
    *first, last = head
    return [*first, f"{last} {{", *lines, "}"]
