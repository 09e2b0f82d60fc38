"""Targets of the command line: a function, program or graph in a file, found by name."""

from __future__ import annotations

import importlib.util
import inspect
import io
import re
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from primgraph.base.files import open_regular
from primgraph.codegen import Kernel
from primgraph.defaults import get_default_dtype
from primgraph.errors import ArgumentError, FeedError, LoadError, PrimgraphError, near_matches
from primgraph.ir.dims import bounds, parse_extent
from primgraph.ir.graph import Graph, Value
from primgraph.ir.text import parse
from primgraph.ir.types import DTYPE_OF_NAME, Shape, TensorType
from primgraph.operators.variable import Variable
from primgraph.program.program import Program, program_of
from primgraph.program.save import load
from primgraph.program.trace import trace

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Graph as built, and its program, if any."""

    graph: Graph
    program: Program | None = None

    def inputs(self, names: Sequence[str]) -> list[Value]:
        """Return the inputs of these names, or by default those to differentiate by.

        These are the trainable parameters of a program that has some, else all float inputs.
        """
        known = {v.hint: v for v in self.graph.inputs}
        for name in names:
            if name not in known:
                listed = ", ".join(known) or "none"
                raise ArgumentError(
                    f"{self.graph.name} has no input {name!r}; its inputs: {listed}",
                    hint=near_matches(name, known),
                )
        if names:
            return [known[name] for name in names]
        trained = [] if self.program is None else [p.value for p in self.program.parameters()]
        chosen = [v for v in self.graph.inputs if v in trained]
        return chosen or [v for v in self.graph.inputs if v.type.is_float]

    def arrays(self, seed: int, file: str | None) -> dict[str, Array]:
        """Return an array for each input: from `file`, from the state of the program, or random.

        Floats are drawn from the standard normal distribution, booleans evenly; integers are 0,
        which is valid as index, label or count everywhere.
        """
        given = {} if file is None else _arrays_in(file)
        unknown = [n for n in given if n not in {v.hint for v in self.graph.inputs}]
        if unknown:
            raise FeedError(f"{file} has arrays that are no inputs: {', '.join(unknown)}")
        held = {} if self.program is None else self.program.state_dict()
        rng = np.random.default_rng(seed)
        drawn = {}
        for v in self.graph.inputs:
            if not v.type.names:
                drawn[v.hint] = _draw_array(v.type, rng)
            elif v.hint not in given:
                raise ArgumentError(
                    f"input {v.hint!r} is {v.type}: arrays are drawn where all extents are known",
                    hint="write numbers in the place of sizes, or give an array in a file: --feed",
                )
        known = {v.hint for v in self.graph.inputs}
        return {**drawn, **{n: a for n, a in held.items() if n in known}, **given}


def find(
    text: str, types: Sequence[str], fetches: Sequence[str] = (), constants: str | None = None
) -> Target:
    """Return the target named by `text`: `FILE.py:NAME`, a saved program, or a file with the text
    of a graph.

    A saved program may be followed by the name of one of its variables.

    `types` are those of the arguments of a function, such as `f64[3,4]`, or `3,4` for the default
    dtype. `fetches` are the outputs of a program; by default its last values. `constants` is an
    .npz file with the long constants of a text, as in `graph.constants`.

    Raises `LoadError` for a missing file or name, `ArgumentError` for another object.
    """
    path, _, name = text.partition(":")
    if len(path) == 1 and sys.platform == "win32":
        path, _, name = text[2:].partition(":")
        path = text[:2] + path
    file = Path(path)
    try:
        open_regular(file).close()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        hint = "give FILE.py:NAME, or a saved program"
        raise LoadError(f"there is no file {path!r}", hint=hint) from None
    except (OSError, ValueError) as error:
        raise LoadError(f"cannot read {path!r}: {error}") from None
    if file.suffix == ".py":
        found = _member(_module(file), name, file)
    elif zipfile.is_zipfile(file):
        found, fetches = load(file), [*fetches, *filter(None, [name])]
    else:
        found = parse(_text(file), {} if constants is None else _arrays_in(constants))
    return _target(found, text, types, fetches)


def _target(found: Any, text: str, types: Sequence[str], fetches: Sequence[str]) -> Target:
    if not isinstance(found, Program):
        _refuse("--fetch", fetches, f"{text} is not a program")
    found = found.graph if isinstance(found, Kernel) else found
    if isinstance(found, Program | Variable | Graph):
        _refuse("types", types, f"the types of the inputs of {text} are known")
    if isinstance(found, Program):
        return _target_of_program(found, _variables_by_name(found, fetches))
    if isinstance(found, Variable):
        return _target_of_program(program_of(found), [found])
    if isinstance(found, Graph):
        return Target(found)
    if not callable(found) or isinstance(found, type):
        kind = "class" if isinstance(found, type) else f"value of type {type(found).__name__}"
        raise ArgumentError(
            f"{text} is a {kind}, not a function, Program, Variable, Graph or Kernel"
        )
    return Target(trace(found, *_types(found, text, types)))


def _refuse(what: str, given: Sequence[str], reason: str) -> None:
    if given:
        raise ArgumentError(f"{what}: {' '.join(given)} given, but {reason}")


def _variables_by_name(program: Program, names: Sequence[str]) -> list[Variable]:
    found: list[Variable] = []
    for name in names:
        variable = program.variable(name)
        if variable is None:
            raise FeedError(
                f"program {program.name!r} has no variable named {name!r}",
                hint=near_matches(name, program.builder.names),
            )
        found.append(variable)
    return found


def _target_of_program(program: Program, outputs: Sequence[Variable]) -> Target:
    graph = program.graph(outputs or None)
    used = {v for eqn in graph.body for v in eqn.inputs}.union(graph.outputs)
    inputs = [v for v in graph.inputs if v in used]
    return Target(Graph(inputs, graph.body, graph.outputs, graph.name), program)


def _types(function: Callable[..., Any], text: str, types: Sequence[str]) -> list[TensorType]:
    """Return the types of the arguments of `function`, as many as it needs."""
    needed, most = _arity(function)
    if not needed <= len(types) <= most:
        up_to = "" if most == needed else " or more" if most == np.inf else f" to {most:.0f}"
        raise ArgumentError(
            f"{text}{inspect.signature(function)} takes {needed}{up_to} arguments; "
            f"{len(types)} types are given",
            hint="give one for each, as in: f64[3,4], or 3,4 for the default dtype, f32[] or f64",
        )
    return [as_type(t) for t in types]


def _arity(function: Callable[..., Any]) -> tuple[int, float]:
    """Return the minimum and maximum number of positional arguments of a function."""
    needed, most = 0, 0.0
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            most = np.inf
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            most += 1
            needed += parameter.default is parameter.empty
    return needed, most


def as_type(text: str) -> TensorType:
    """Parse a type: `f64[3,4]`, `f32[]`, `f32`, or `3,4` for the default dtype.

    Sizes may be symbolic, as in `f64[N,2*N+1]` or `N,3`. Raises `ArgumentError` for other text.
    """
    head, bracket, rest = text.partition("[")
    name, extents = (head, rest.removesuffix("]")) if bracket else ("", head)
    if head in DTYPE_OF_NAME and not bracket:
        name, extents = head, ""
    dtype = DTYPE_OF_NAME.get(name) if name else get_default_dtype()
    closed = bool(bracket) == text.endswith("]")
    # A single lower-case word is more likely a misspelt dtype than a size.
    alone = not bracket and extents.islower() and "," not in extents
    shape = None if dtype is None or not closed or alone else _extents(extents)
    if dtype is None or shape is None:
        raise ArgumentError(
            f"{text!r} is not a type",
            hint="types are written as f64[3,4], f64[N,3], f32[] or 3,4; dtypes: "
            f"{', '.join(DTYPE_OF_NAME)}",
        )
    return TensorType(shape, dtype)


# A comma outside of parentheses.
_COMMA = re.compile(r",(?![^()]*\))")


def _extents(text: str) -> Shape | None:
    """Parse a list of sizes; None for other text."""
    try:
        found = [parse_extent(word) for word in _COMMA.split(text) if word.strip()]
    except PrimgraphError:
        return None
    return tuple(found) if all(bounds(n)[1] >= 0 for n in found) else None


def _module(file: Path) -> ModuleType:
    """Import `file`, with its folder on the path, as for a script."""
    name = file.stem if file.stem.isidentifier() else "target"
    spec = importlib.util.spec_from_file_location(f"_{name}_target", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module
    sys.path.insert(0, str(file.resolve().parent))
    spec.loader.exec_module(module)
    return module


def _member(module: ModuleType, name: str, file: Path) -> Any:
    """Return the object of that name, which may be dotted, in `module`."""
    usable = [n for n, v in vars(module).items() if _is_usable(v, module) and n[0] != "_"]
    if not name:
        listed = ", ".join(usable) or "none"
        raise LoadError(
            f"{file} has several things in it: say which, as in {file}:NAME",
            hint=f"it has: {listed}",
        )
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            listed = near_matches(name, usable) or f"in it: {', '.join(usable)}"
            raise LoadError(f"{file} has no {name!r}", hint=listed)
        found = getattr(found, part)
    return found


def _is_usable(value: Any, module: ModuleType) -> bool:
    if isinstance(value, Program | Graph | Kernel | Variable):
        return True
    return inspect.isfunction(value) and value.__module__ == module.__name__


def _text(file: Path) -> str:
    try:
        with io.TextIOWrapper(open_regular(file), encoding="utf-8") as opened:
            return opened.read()
    except UnicodeDecodeError:
        raise LoadError(
            f"{str(file)!r} is neither Python, nor a saved program, nor the text of a graph"
        ) from None


def _arrays_in(file: str) -> dict[str, Array]:
    """Return the arrays of an .npz file, by name, without executing anything in it."""
    try:
        with open_regular(file) as opened, np.load(opened, allow_pickle=False) as data:
            return {name: data[name] for name in data.files}
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise LoadError(
            f"{file!r} is no .npz file of arrays: {error}",
            hint="write one with np.savez(file, name=array, …)",
        ) from None


def _draw_array(type: TensorType, rng: np.random.Generator) -> Array:
    if type.is_float:
        return rng.standard_normal(type.shape).astype(type.dtype)
    if type.dtype.kind == "b":
        return np.asarray(rng.random(type.shape) < 0.5)
    return np.zeros(type.shape, type.dtype)
