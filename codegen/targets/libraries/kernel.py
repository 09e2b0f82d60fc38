"""Kernels of other array libraries: readable source, run where the arrays are."""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, final

from primgraph.base.locks import cached_property
from primgraph.codegen.targets.readable.dialect import Dialect
from primgraph.codegen.targets.readable.page import entry_name
from primgraph.codegen.targets.readable.standalone import save_source, standalone_source
from primgraph.errors import CompileError
from primgraph.ir.graph import Graph

# The libraries by target: the module and the name of its dialect.
_LIBRARIES = {
    "cupy": ("primgraph.codegen.targets.libraries.cupy", "CUPY"),
    "jax": ("primgraph.codegen.targets.libraries.jax", "JAX"),
}


def dialect_of(target: str) -> Dialect:
    """Return the dialect of a target. Raises `CompileError` for an unknown one."""
    if target not in _LIBRARIES:
        listed = ", ".join(map(repr, _LIBRARIES))
        raise CompileError(f"there is no library {target!r}", hint=f"libraries: {listed}")
    module, name = _LIBRARIES[target]
    found: Dialect = getattr(import_module(module), name)
    return found


@final
class ArrayKernel:
    """A graph as a function of JAX or CuPy, on arrays of that library and where they are.

    `source` is its code, which needs that library only, and `function` the function in it, for
    `jax.jit`, `jax.vmap` or `jax.grad`. Calls take and return containers as the traced function
    did; in JAX they are compiled by `jax.jit`. `graph` is what it computes.

    Raises `CompileError` for a graph with primitives that the library lacks.

    >>> print(pg.compile(pg.trace(lambda x: x * pg.sin(x), pg.spec(3)), target="jax").source)
    """

    def __init__(self, graph: Graph, target: str) -> None:
        self.graph, self.target = graph, target
        self._dialect = dialect_of(target)
        self.source = standalone_source([graph], dialect=self._dialect)

    def __reduce__(self) -> tuple[Any, ...]:
        return ArrayKernel, (self.graph, self.target)

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Return the function of the source. Raises `ImportError` without the library."""
        name, space = f"<primgraph {self.target} kernel {id(self)}>", dict[str, Any]()
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        exec(compile(self.source, name, "exec"), space)
        found: Callable[..., Any] = space[entry_name(self.graph.name)]
        return found

    @cached_property
    def _call(self) -> Callable[..., Any]:
        compiler = self._dialect.compiler
        return self.function if compiler is None else compiler(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(*args, **kwargs)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the source to a file. Raises `ArgumentError` without `force` for a file that
        primgraph did not write."""
        save_source(path, [self.graph], force=force, scipy=False, dialect=self._dialect)

    def __repr__(self) -> str:
        return f"<{self.target} kernel of {self.graph!r}>"
