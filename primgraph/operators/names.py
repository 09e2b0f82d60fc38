"""Registry of names: one row for each function that NumPy, SciPy, `math` or this package names.

A row holds where a function is, its name there, and the arguments that it takes of a caller. The
table groups rows by the worlds in which a function has its own name:

- `operators`: `pg.sum`, which is also a method of variables and tensors; `handles`: a method alone,
  as `pg.trace` and `pg.diff` are tools, which call the function where they are given arrays;
- `linalg`, `fft`, `special`, `random`: modules of this package;
- `numpy`, `numpy.linalg`, `numpy.fft`, `scipy.special`, `scipy.linalg`, `math`: the library's
  function calls this one for variables and tensors;
- `sizes`: NumPy's function makes an array of extents, which may be symbolic sizes here;
- `sized`: the function takes the size of its result, an argument that NumPy's lacks.

`max=numpy.amax` adds a name in another world. Parentheses state arguments by our parameters:
another name (`numpy.nanstd(ddof=correction)`) or a constant (`numpy.linalg.trace(axis1=-2)`).
Others are matched by name, then by position. Functions in `numpy_meanings` take NumPy's arguments,
as they mean something else than ours.

Rows of libraries whose functions are defined here, such as the array API, also hold parameters,
defaults and a docstring: see `define`. Rows for torch would be of that kind:

    sum(input, /, dim=None, keepdim=False): sum(axis=dim, keepdims=keepdim)
    var(input, /, dim=None, *, correction=1): var(axis=dim, ddof=correction)
    clamp(input, /, min=None, max=None): clip
    cat(tensors, /, dim=0): concatenate(axis=dim)
    flip(input, /, dims): flip(axis=dims)

with one rule of dtypes for a library, which its module applies to the arguments of each.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, final

from primgraph.base.providers import providers
from primgraph.base.records import dataclass
from primgraph.errors import unknown_name
from primgraph.ir.primitive import homes, later


@final
@dataclass(frozen=True, slots=True)
class Row:
    """A function by one of its names: its module, its name there, and arguments."""

    module: str
    function: str
    # Constants, and names of the caller's parameters, by our parameters.
    fixed: Mapping[str, Any] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    # The caller's parameters as in a definition, of libraries whose functions are defined here.
    parameters: str = ""

    def load(self) -> Any:
        """Return the function, importing its module; the module itself if it names none."""
        found = import_module(self.module)
        return getattr(found, self.function) if self.function else found

    @property
    def target(self) -> str:
        """The name by which `named_function` finds the function."""
        if homes.get(self.function) == self.module:
            return self.function
        return f"{self.module.removeprefix('primgraph.operators.')}.{self.function}"


_worlds: dict[str, dict[str, Row]] = {}
_PLAIN = frozenset((int, float, bool, complex, list, tuple, str))
_CALL = re.compile(r"([\w.]+)(\([^)]*\))?")


def declare(table: Mapping[str, Mapping[str, str]]) -> None:
    """Add rows: functions by module, and by the worlds that share them.

    "." is the module itself, by the last part of its name. Two groups hold no rows: `task` has the
    tasks of `provider`, with "_" for a space, and `ops` modules that declare ops.
    """
    for worlds, modules in table.items():
        for module, tokens in modules.items():
            if module.startswith("primgraph.operators."):
                providers[module.removeprefix("primgraph.")] = module
            if worlds == "task":
                providers.update(dict.fromkeys(tokens.replace("_", " ").split(","), module))
            elif worlds == "ops":
                later.append(module)
            else:
                for token in tokens.split():
                    _declare_token(worlds.split(), module, token)


def _declare_token(worlds: Sequence[str], module: str, token: str) -> None:
    name, _, others = token.partition("=")
    function = "" if name == "." else name
    name = name if function else module.rpartition(".")[2]
    row = Row(module, function)
    for world in worlds:
        _worlds.setdefault(world, {})[name] = row
    if worlds[0] in ("operators", "handles"):
        homes[name] = module
    for path, arguments in _CALL.findall(others):
        world, _, short = path.rpartition(".")
        other = Row(module, function, *_arguments(arguments)) if arguments else row
        _worlds.setdefault(world, {})[short] = other


def _arguments(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return constants and renamed parameters of a text "(ours=theirs, ours=constant)"."""
    call = ast.parse(f"f{text}", mode="eval").body
    assert isinstance(call, ast.Call)
    given = {str(k.arg): k.value for k in call.keywords}
    renamed = {ours: v.id for ours, v in given.items() if isinstance(v, ast.Name)}
    return {n: ast.literal_eval(v) for n, v in given.items() if n not in renamed}, renamed


def define(
    world: str,
    own: dict[str, Any],
    text: str,
    decorate: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None,
    unused: Sequence[str] = (),
    also: Mapping[str, str] = MappingProxyType({}),
    store: Callable[[Any, Any], Any] | None = None,
    refuse: Callable[[str, Any], Any] | None = None,
) -> list[str]:
    """Define the functions of rows with parameters and docstrings in `own`; return their names.

    A row begins `name(parameters): ours`, with the path of our function, unless it has that name,
    and the arguments that differ: expressions of the parameters. `name|alias(...)` defines both.
    Lines of the docstring follow, and an empty one ends the row. Functions of `own` count as ours.

    Our functions take parameters without default by position, unless they are keyword-only, and
    all others by name; positional arguments of a row take the place of all of these. Rows
    `name(parameters) = expression` are computed from globals of `own`. Parameters that are named in
    `unused` are not passed on. `decorate` wraps each function.
    `also` has further names of optional parameters by their names: `{"axis": "dim"}`. With `store`,
    each function takes `out`, and returns `store(out, result)` for it. Functions of one parameter,
    `input`, call `refuse(name, input)` for Python's numbers and lists.
    """
    made: dict[str, _Definition] = {}
    for block in text.strip().split("\n\n"):
        head, _, doc = block.partition("\n")
        call, _, expression = head.partition(") = ")
        call, _, target = call.partition("): ")
        if not (expression or target):
            call = call.removesuffix(")")
        aliases, _, parameters = call.partition("(")
        for name in aliases.split("|"):
            computed, load = expression, None
            row = Row(own["__name__"], name, parameters=parameters)
            if not expression:
                row, load, arguments = _target(own, made, target or name, parameters)
                computed = f"load()({_passed(parameters, arguments, unused)})"
            _worlds.setdefault(world, {})[name] = row
            made[name] = _Definition(parameters, computed, load, doc)
    for name, function in _functions(made, own, also, store, refuse):
        function.__qualname__ = name
        function.__doc__ = made[name].doc.replace("\n>>>", "\n\n>>>", 1)
        own[name] = function if decorate is None else decorate(function)
    return [*made]


@final
@dataclass(frozen=True, slots=True)
class _Definition:
    """Function of a row: its parameters, what it computes of them and `load`, and its docstring."""

    parameters: str
    expression: str
    load: Any
    doc: str


@final
@dataclass(frozen=True, slots=True)
class _Parameters:
    """Names of parameters, and whether there are some that are given by name only."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    keywords: tuple[str, ...]
    is_closed: bool


@cache
def _parse_parameters(text: str) -> _Parameters:
    (definition,) = ast.parse(f"def f({text}): pass").body
    assert isinstance(definition, ast.FunctionDef)
    given = definition.args
    positional = [a.arg for a in (*given.posonlyargs, *given.args)]
    count = len(positional) - len(given.defaults)
    keywords = tuple([a.arg for a in given.kwonlyargs])
    closed = bool(keywords or given.vararg)
    return _Parameters(tuple(positional[:count]), tuple(positional[count:]), keywords, closed)


def _target(
    own: dict[str, Any], earlier: Container[str], target: str, given: str
) -> tuple[Row, Any, ast.Call]:
    """Return the row of a function of `own` or of the registry, how to load it, and arguments.

    Functions of `earlier` rows are of `own`, too.
    """
    path, _, arguments = target.partition("(")
    call = ast.parse(f"f({arguments or ')'}", mode="eval").body
    assert isinstance(call, ast.Call)
    room, _, short = path.rpartition(".")
    if not room and (short in own or short in earlier):
        return Row(own["__name__"], short, parameters=given), lambda: own[short], call
    ours = rows(room or "operators")[short]
    renamed = {str(k.arg): k.value.id for k in call.keywords if isinstance(k.value, ast.Name)}
    row = Row(ours.module, ours.function, renamed=renamed, parameters=given)
    return row, cache(row.load), call


def _passed(parameters: str, arguments: ast.Call, unused: Sequence[str]) -> str:
    """Return the arguments that a function with these parameters passes to ours, as text."""
    given = _parse_parameters(parameters)
    used = {n.id for n in ast.walk(arguments) if isinstance(n, ast.Name)} | {*unused}
    first = [name for name in given.required if name not in used]
    named = [name for name in (*given.optional, *given.keywords) if name not in used]
    if arguments.args:
        first, named = list(map(ast.unparse, arguments.args)), []
    return ", ".join([
        *first,
        *(f"{name}={name}" for name in named),
        *(f"{k.arg}={ast.unparse(k.value)}" for k in arguments.keywords),
    ])  # fmt: skip


def _functions(
    made: Mapping[str, _Definition],
    own: dict[str, Any],
    also: Mapping[str, str],
    store: Callable[[Any, Any], Any] | None,
    refuse: Callable[[str, Any], Any] | None,
) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions of definitions by name; they are compiled together, which is faster."""
    head = "def make{}(load, store, refuse, plain):\n"
    parts = [
        f"{head.format(i)}{_function_text(name, row, also, store is not None, refuse is not None)}"
        for i, (name, row) in enumerate(made.items())
    ]
    found: dict[str, Callable[..., Any]] = {}
    exec(compile("\n".join(parts), f"<rows of {own['__name__']}>", "exec"), own, found)
    for i, (name, row) in enumerate(made.items()):
        yield name, found[f"make{i}"](row.load, store, refuse, _PLAIN)


def _function_text(
    name: str, row: _Definition, also: Mapping[str, str], stores: bool, refuses: bool
) -> str:
    """Return the text that defines and returns the function of a row."""
    given = _parse_parameters(row.parameters)
    others = {other: known for other, known in also.items() if known in given.optional}
    lines = [f"{known} = {known} if {o} is None else {o}" for o, known in others.items()]
    if refuses and (*given.required, *given.optional) == ("input",):
        lines.append(f"if input.__class__ in plain: refuse({name!r}, input)")
    if stores:
        lines.append(f"if out is not None: return store(out, {row.expression})")
    options = [*others, "out"] if stores else [*others]
    parameters = [row.parameters] if row.parameters else []
    if options and not given.is_closed:
        parameters.append("*")
    parameters += [f"{option}=None" for option in options]
    body = "\n  ".join([*lines, f"return {row.expression}"])
    return f" def {name}({', '.join(parameters)}):\n  {body}\n return {name}"


def rows(world: str) -> Mapping[str, Row]:
    """Return the rows of a world by name."""
    return _worlds[world]


def names_of(module: str) -> list[str]:
    """Return the names of a module's functions in `primgraph`."""
    return [name for name, row in rows("operators").items() if row.module == module]


def library(name: str) -> dict[str, Row]:
    """Return the rows of a library and its modules, by dotted names after its own."""
    return {
        f"{world}.{short}".removeprefix(f"{name}."): row
        for world, found in _worlds.items()
        if world == name or world.startswith(f"{name}.")
        for short, row in found.items()
    }


def namespace(
    module: str, own: dict[str, Any], instead: Mapping[str, str] = MappingProxyType({})
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a module whose names are rows.

    `own` has the globals of the module, which keep each object after its first use, and `instead`
    has hints for names that it lacks.
    """
    names = [*rows(module.removeprefix("primgraph."))]

    def find(name: str) -> Any:
        row = rows(module.removeprefix("primgraph.")).get(name)
        if row is None:
            raise unknown_name(module, name, names, instead.get(name, ""))
        return own.setdefault(name, row.load())

    return names, find, lambda: sorted(names)
