"""Loading of generated modules, and the map from lines to steps."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable
from typing import Any, final

import numpy as np

from primgraph.codegen.runtime import support
from primgraph.codegen.targets.text.module import Module, Within, too_nested
from primgraph.codegen.targets.text.names import comment

_number = itertools.count()


@final
class Loaded:
    """A compiled module: its functions by name, its text, and the step of each line.

    `within` has the equations of lines in branches and loops.
    """

    def __init__(self, module: Module, source: str) -> None:
        self.source = source
        self.file = f"<primgraph kernel {comment(module.entry)} {next(_number)}>"
        rows = source.splitlines(keepends=True)
        starts = module.starts
        self.steps = [-1] * (len(rows) + 1)
        self.within: dict[int, Within] = {}
        self.namespace: dict[str, Any] = {
            "__builtins__": support.BUILTINS,
            "__name__": "primgraph kernel",
            "np": np,
            **module.table,
        }
        # Tracebacks can print the lines of a kernel like those of a file.
        linecache.cache[self.file] = (len(source), None, rows, self.file)
        weakref.finalize(self, linecache.cache.pop, self.file, None)
        # Most modules only import NumPy, which is in the namespace already.
        if len(module.opening) > 1 or module.helpers:
            opening = "".join(rows[: starts[0]])
            exec(compile(opening, self.file, "exec", dont_inherit=True), self.namespace)
        for function, start in zip(module.functions, starts, strict=True):
            first = start + len(function.header) + len(function.docstring)
            lines = function.rows
            steps = [line.step for line in lines]
            for k, line in enumerate(lines, first + 1):
                if line.within is not None:
                    self.within[k] = line.within
            end = first + len(steps)
            self.steps[first + 1 : end + 1] = steps
            self._define(function.name, "".join(rows[start:end]), start)

    def _define(self, name: str, text: str, start: int) -> None:
        """Compile one function, with its line numbers in the file.

        Functions are compiled one by one, in linear time. All at once, CPython's parser and garbage
        collector would hold the syntax tree of the whole file.
        """
        try:
            code = compile(text, self.file, "exec", dont_inherit=True)
        except SyntaxError as error:
            if "too many statically nested blocks" in str(error):
                raise too_nested() from None
            raise
        for used, helper in support.used_by(code).items():
            self.namespace.setdefault(used, helper)
        exec(code, self.namespace)
        found = self.namespace[name]
        found.__code__ = found.__code__.replace(co_firstlineno=start + 1)

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
