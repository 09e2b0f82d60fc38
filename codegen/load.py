"""Loading of generated modules, and the map from lines to steps."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType
from typing import Any, NamedTuple, final

import numpy as np

from primgraph.codegen.runtime import support
from primgraph.codegen.targets.text.module import Module, Within, too_nested
from primgraph.codegen.targets.text.names import comment
from primgraph.codegen.targets.text.render import render

_number = itertools.count()


class Text(NamedTuple):
    """A compiled module without the objects that it refers to: code and lines.

    `entry` is its main function, `opening` the code of its first lines, if there are any to run.
    `steps` has the step of each line, from line 0 on; -1 for none.
    """

    entry: str
    source: str
    opening: CodeType | None
    functions: tuple[CodeType, ...]
    steps: tuple[int, ...]


@final
class Loaded:
    """A loaded module: its functions by name, its text, and the step of each line.

    `table` has the objects that its lines refer to. `within` has the equations of lines in branches
    and loops.
    """

    __slots__ = (
        "__weakref__",
        "entry",
        "file",
        "namespace",
        "opening",
        "source",
        "steps",
        "within",
    )

    def __init__(self, entry: str, source: str, table: Mapping[str, Any]) -> None:
        self.entry, self.source = entry, source
        self.file = f"<primgraph kernel {comment(entry)} {next(_number)}>"
        self.opening: CodeType | None = None
        self.steps: list[int] = []
        self.within: dict[int, Within] = {}
        self.namespace: dict[str, Any] = {
            "__builtins__": support.BUILTINS,
            "__name__": "primgraph kernel",
            "np": np,
            **table,
        }
        # Tracebacks can print the lines of a kernel like those of a file.
        rows = source.splitlines(keepends=True)
        linecache.cache[self.file] = (len(source), None, rows, self.file)
        weakref.finalize(self, linecache.cache.pop, self.file, None)

    def text(self, names: Iterable[str]) -> Text:
        """Return the text with the code of the functions of these names, which is of no file."""
        functions = tuple([_moved(self.namespace[name].__code__, "") for name in names])
        opening = None if self.opening is None else _moved(self.opening, "")
        return Text(self.entry, self.source, opening, functions, tuple(self.steps))

    def run_opening(self, code: CodeType) -> None:
        """Run the first lines, which bind names."""
        self.opening = code
        exec(code, self.namespace)

    def define(self, code: CodeType) -> None:
        """Bind a function, and those of the runtime that it mentions."""
        for used, helper in support.used_by(code).items():
            self.namespace.setdefault(used, helper)
        self.namespace[code.co_name] = FunctionType(code, self.namespace)

    def function(self, name: str) -> Callable[..., Any]:
        found: Callable[..., Any] = self.namespace[name]
        return found

    def find_failing_line(self, error: BaseException) -> tuple[int, int]:
        """Return the line of this module that raised `error`, and its step; -1 if there is none.

        Helper functions in the module belong to no step.
        """
        line, step, trace = -1, -1, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.file:
                here = trace.tb_lineno
                if 0 <= here < len(self.steps) and self.steps[here] >= 0:
                    line, step = here, self.steps[here]
            trace = trace.tb_next
        return line, step


def recall_module(text: Text, table: Mapping[str, Any]) -> Loaded:
    """Return the module of a text that was compiled before, with its objects."""
    found = Loaded(text.entry, text.source, table)
    found.steps = list(text.steps)
    if text.opening is not None:
        found.run_opening(_moved(text.opening, found.file))
    for code in text.functions:
        found.define(_moved(code, found.file))
    return found


def _moved(code: CodeType, file: str) -> CodeType:
    """Return code of another file."""
    consts = [_moved(c, file) if isinstance(c, CodeType) else c for c in code.co_consts]
    return code.replace(co_filename=file, co_consts=tuple(consts))


def load_module(module: Module) -> Loaded:
    """Compile a module, and return it."""
    source = render(module)
    found = Loaded(module.entry, source, module.table)
    rows, starts = source.splitlines(keepends=True), module.starts
    found.steps = [-1] * (len(rows) + 1)
    # Most modules only import NumPy, which is in the namespace already.
    if len(module.opening) > 1 or module.helpers:
        opening = "".join(rows[: starts[0]])
        found.run_opening(compile(opening, found.file, "exec", dont_inherit=True))
    for function, start in zip(module.functions, starts, strict=True):
        first = start + len(function.header) + len(function.docstring)
        lines = function.rows
        steps = [line.step for line in lines]
        for k, line in enumerate(lines, first + 1):
            if line.within is not None:
                found.within[k] = line.within
        end = first + len(steps)
        found.steps[first + 1 : end + 1] = steps
        _define(found, function.name, "".join(rows[start:end]), start)
    return found


def _define(loaded: Loaded, name: str, text: str, start: int) -> None:
    """Compile one function, with its line numbers in the file.

    Functions are compiled one by one, in linear time. All at once, CPython's parser and garbage
    collector would hold the syntax tree of the whole file.
    """
    try:
        code = compile(text, loaded.file, "exec", dont_inherit=True)
    except SyntaxError as error:
        if "too many statically nested blocks" in str(error):
            raise too_nested() from None
        raise
    for used, helper in support.used_by(code).items():
        loaded.namespace.setdefault(used, helper)
    exec(code, loaded.namespace)
    found = loaded.namespace[name]
    found.__code__ = found.__code__.replace(co_firstlineno=start + 1)
