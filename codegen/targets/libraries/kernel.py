"""Kernels of other array libraries: readable source, run where the arrays are."""

from __future__ import annotations

import itertools
import linecache
import os
import weakref
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, final

from primgraph.base.locks import cached_property
from primgraph.base.providers import MODELS, provider
from primgraph.codegen.targets.readable.dialect import Dialect
from primgraph.codegen.targets.readable.page import entry_name
from primgraph.codegen.targets.readable.standalone import save_source, standalone_source
from primgraph.errors import ArgumentError, CompileError, FeedError
from primgraph.ir.graph import Graph

_number = itertools.count()
# The modules of dialects, by target.
HOMES = {
    "cupy": "primgraph.codegen.targets.libraries.cupy",
    "jax": "primgraph.codegen.targets.libraries.jax",
    "torch": "primgraph.codegen.targets.libraries.torch",
}


def dialect_of(target: str) -> Dialect:
    """Return the dialect of a target. Raises `CompileError` for an unknown one."""
    if target not in HOMES:
        listed = ", ".join(map(repr, HOMES))
        raise CompileError(f"there is no library {target!r}", hint=f"libraries: {listed}")
    found: Dialect = getattr(import_module(HOMES[target]), target.upper())
    return found


@final
class ArrayKernel:
    """A graph as a function of JAX, torch or CuPy, on arrays of that library and where they are.

    `source` is its code, which needs that library only, and `function` the function in it, for
    `jax.jit`, `jax.vmap`, `jax.grad` or `torch.compile`. Calls take and return containers as the
    traced function did; in JAX they are compiled by `jax.jit`. `graph` is what it computes.

    Raises `CompileError` for a graph with primitives that the library lacks.

    >>> kernel = pg.compile(pg.trace(lambda x: x * pg.sin(x), pg.spec(3)), target="jax")
    >>> kernel.source.splitlines()[-1]
    '    return x * np.sin(x)'
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
        name, space = f"<primgraph {self.target} kernel {next(_number)}>", dict[str, Any]()
        # Tracebacks can print the lines of a kernel like those of a file.
        linecache.cache[name] = (len(self.source), None, self.source.splitlines(True), name)
        weakref.finalize(self, linecache.cache.pop, name, None)
        exec(compile(self.source, name, "exec"), space)
        found: Callable[..., Any] = space[entry_name(self.graph.name, self._dialect)]
        return found

    @cached_property
    def _call(self) -> Callable[..., Any]:
        compiler = self._dialect.compiler
        return self.function if compiler is None else compiler(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        for x, v in zip(self.graph.in_order(args, kwargs), self.graph.inputs, strict=True):
            dtype = str(getattr(x, "dtype", x.__class__.__name__))
            if "complex" in dtype and not v.type.is_complex:
                raise FeedError(
                    f"input {v.hint!r} is {v.type}: {dtype} is given, and a complex number is no "
                    "real one: feed array.real"
                )
        return self._call(*args, **kwargs)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the source to a file of Python, or a model, `.onnx` or `.mlir`, like `Kernel.save`.

        Raises `ArgumentError` for other endings, and without `force` for a file that primgraph did
        not write.
        """
        suffix = Path(path).suffix.lower()
        if suffix in MODELS:
            provider(MODELS[suffix]).save_model(path, self.graph, force=force)
            return
        if suffix != ".py":
            raise ArgumentError(
                f"{os.fspath(path)!r:.200} does not end in .py, .onnx or .mlir",
                hint="pg.compile(kernel.graph) is a kernel that writes C and pictures",
            )
        save_source(path, [self.graph], force=force, scipy=False, dialect=self._dialect)

    def __repr__(self) -> str:
        return f"<{self.target} kernel of {self.graph!r}>"
