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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, final

from primgraph.base.providers import providers
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
    # The caller's parameters as in a definition, of libraries whose functions are defined here,
    # and those that are passed by position.
    parameters: str = ""
    positional: Sequence[str] = ()

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
    (name, _), *others = _CALL.findall(token)
    function = "" if name == "." else name
    name = name if function else module.rpartition(".")[2]
    for world in worlds:
        _worlds.setdefault(world, {})[name] = Row(module, function)
    if worlds[0] in ("operators", "handles"):
        homes[name] = module
    for path, arguments in others:
        world, _, short = path.rpartition(".")
        _worlds.setdefault(world, {})[short] = Row(module, function, *_arguments(arguments))


def _arguments(text: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return constants and renamed parameters of a text "(ours=theirs, ours=constant)"."""
    _, call = _target(f"f{text}")
    return _constants(call), _renamed(call)


def _constants(call: ast.Call) -> dict[str, Any]:
    given = {str(k.arg): k.value for k in call.keywords}
    return {n: ast.literal_eval(v) for n, v in given.items() if not isinstance(v, ast.Name)}


def _renamed(call: ast.Call) -> dict[str, str]:
    return {str(k.arg): k.value.id for k in call.keywords if isinstance(k.value, ast.Name)}


def define(
    world: str,
    own: dict[str, Any],
    text: str,
    *,
    also: Mapping[str, str] = MappingProxyType({}),
    store: Callable[[Any, Any], Any] | None = None,
) -> list[str]:
    """Define the functions of rows with parameters and docstrings in `own`; return their names.

    A row begins `name(parameters): ours`, with the path of our function, unless it has that name,
    and the arguments that differ. Lines of the docstring follow, and an empty one ends the row.
    Several names, `first, second(parameters)`, are one function. Our functions take positional-only
    parameters and those that the row gives by position so, and all others by name: `sum(input,
    dim=None, keepdim=False): sum(input, axis=dim, keepdims=keepdim)`.

    `also` has further names of parameters with a default by these names, and `store(out, result)`
    is called for a caller's argument `out`, which all rows take with it.
    """
    names = []
    for block in text.strip().split("\n\n"):
        head, _, doc = block.partition("\n")
        call, _, target = head.partition("): ")
        listed, _, parameters = (call if target else call.removesuffix(")")).partition("(")
        first, *others = listed.split(", ")
        path, arguments = _target(target or first)
        room, _, short = path.rpartition(".")
        ours = rows(room or "operators")[short]
        fixed, renamed = _constants(arguments), _renamed(arguments)
        positional = [ast.unparse(a) for a in arguments.args]
        row = Row(ours.module, ours.function, fixed, renamed, parameters, positional)
        function = _function(first, row, own["__name__"], also, store)
        function.__doc__ = doc.replace("\n>>>", "\n\n>>>", 1)
        for name in (first, *others):
            _worlds.setdefault(world, {})[name] = row
            own[name] = function
            names.append(name)
    return names


def _target(text: str) -> tuple[str, ast.Call]:
    """Return the path of our function and the arguments of a text "path(arguments)"."""
    call = ast.parse(text if text.endswith(")") else f"{text}()", mode="eval").body
    assert isinstance(call, ast.Call)
    return ast.unparse(call.func), call


def _function(
    name: str,
    row: Row,
    module: str,
    also: Mapping[str, str],
    store: Callable[[Any, Any], Any] | None,
) -> Callable[..., Any]:
    """Return a function with the parameters of a row, which calls ours."""
    (definition,) = ast.parse(f"def {name}({row.parameters}): pass").body
    assert isinstance(definition, ast.FunctionDef)
    given = definition.args
    lines = [_alias_line(given, other, known) for other, known in also.items()]
    passed = {a.arg: a.arg for a in (*given.args, *given.kwonlyargs) if a.arg not in also}
    passed |= {theirs: ours for ours, theirs in row.renamed.items()}
    arguments = [*row.positional]
    arguments += [a.arg for a in given.posonlyargs if a.arg not in (*passed, *arguments)]
    named = {theirs: ours for theirs, ours in passed.items() if theirs not in row.positional}
    arguments += [f"{ours}={theirs}" for theirs, ours in named.items()]
    arguments += [f"{ours}={value!r}" for ours, value in row.fixed.items()]
    result = f"load()({', '.join(arguments)})"
    if store is not None:
        _add_option(given, "out")
        lines.append(f"if out is not None: return store(out, {result})")
    body = "\n    ".join([*filter(None, lines), f"return {result}"])
    text = f"def {name}({ast.unparse(given)}):\n    {body}"
    found: dict[str, Any] = {"__name__": module, "load": cache(row.load), "store": store}
    exec(compile(text, f"<row {name}>", "exec"), found)
    function: Callable[..., Any] = found[name]
    return function


def _alias_line(given: ast.arguments, other: str, known: str) -> str:
    """Add the parameter `other` where `known` has a default; return the line that reads it."""
    optional = given.args[len(given.args) - len(given.defaults) :] if given.defaults else []
    if all(a.arg != known for a in optional):
        return ""
    _add_option(given, other)
    return f"{known} = {known} if {other} is None else {other}"


def _add_option(given: ast.arguments, name: str) -> None:
    """Add a keyword parameter with the default None."""
    given.kwonlyargs.append(ast.arg(name))
    given.kw_defaults.append(ast.Constant(None))


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
