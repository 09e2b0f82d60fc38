"""Traced functions by the names that they have in `megengine.jit`.

Steps that repeat are compiled without `trace`, so a traced function computes as the function does:
with `symbolic` or not, with derivatives and optimizers. `dump` writes it as a program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any

from primgraph import tree
from primgraph.compat.absent import absent
from primgraph.compat.megengine.tensor import Tensor, Variable
from primgraph.errors import ArgumentError, BuildError, OptionError
from primgraph.operators.variable import Variable as _Variable
from primgraph.program.declarations import data
from primgraph.program.program import Program
from primgraph.program.save import save

__all__ = [
    "DTRConfig",
    "GraphOptimizationConfig",
    "SublinearMemoryConfig",
    "TraceError",
    "exclude_from_trace",
    "is_tracing",
    "partial_trace",
    "trace",
]

_tracing: ContextVar[bool] = ContextVar("megengine_tracing", default=False)


class TraceError(BuildError):
    """Error in a traced function: nothing raises it, as calls need not repeat one sequence."""


@dataclass
class DTRConfig:
    """Options of MegEngine for memory, which have no effect here: see `pg.checkpoint`.

    >>> megengine.jit.DTRConfig(eviction_threshold=0).recomp_memory_factor
    1.0
    """

    eviction_threshold: Any = 0
    evictee_minimum_size: Any = 1024**2
    recomp_memory_factor: float = 1.0
    recomp_time_factor: float = 1.0


@dataclass
class GraphOptimizationConfig:
    """Options of MegEngine's compiler, which have no effect here.

    >>> megengine.jit.GraphOptimizationConfig().jit_fuse_reduce
    False
    """

    jit_fuse_dimshuffle: bool | None = False
    jit_fuse_reduce: bool | None = False
    jit_config: Any = None


@dataclass
class SublinearMemoryConfig:
    """Options of MegEngine for memory, which have no effect here: see `pg.checkpoint`.

    >>> megengine.jit.SublinearMemoryConfig().genetic_nr_iter
    0
    """

    thresh_nr_try: int = 10
    genetic_nr_iter: int = 0
    genetic_pool_size: int = 20
    lb_memory_mb: int = 0
    num_worker: int = 0


class trace:
    """Decorator of functions that compute with tensors; its options have no effect on results.

    >>> @megengine.jit.trace(symbolic=True, capture_as_const=True)
    ... def double(x):
    ...     return 2 * x
    >>> double(megengine.Tensor([1.0, 2.0]))
    Tensor([2. 4.], device=xpux:0)
    >>> double.dump("double.mge", arg_names=["x"], output_names=["y"])
    >>> pg.Executor().run(pg.load("double.mge"), {"x": [3.0, 4.0]}, ["y"])
    [array([6., 8.], dtype=float32)]
    """

    def __new__(cls, *args: Any, **options: Any) -> Any:
        return super().__new__(cls) if args else partial(cls, **options)

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        symbolic: bool = False,
        capture_as_const: bool = False,
        record_only: bool = False,
        sublinear_memory_config: SublinearMemoryConfig | None = None,
        dtr_config: DTRConfig | None = None,
        profiling: bool = False,
        opt_level: int = 2,
        graph_opt_config: GraphOptimizationConfig | None = None,
        symbolic_shape: bool = True,
        without_host: bool = False,
        imperative: bool = False,
    ) -> None:
        if profiling:
            raise OptionError("trace: profiling is not supported: pg.profile measures a program")
        update_wrapper(self, function)
        self.__wrapped__ = function
        self.symbolic = symbolic
        self._captures = capture_as_const or record_only
        self._last: tuple[tuple[Any, ...], dict[str, Any]] | None = None

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        """Return the traced function as a method of `owner`."""
        return self if owner is None else partial(self, owner)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the function."""
        self._last = args, kwargs
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        before = _tracing.set(True)
        try:
            return self.__wrapped__(*args, **kwargs)
        finally:
            _tracing.reset(before)

    def dump(
        self,
        file: str | os.PathLike[str],
        *,
        arg_names: Sequence[str] | None = None,
        output_names: Any = None,
        **options: Any,
    ) -> None:
        """Write the function of the last call as a program, which `pg.load` reads.

        Inputs are the tensors among its arguments, `arg_0`, ... by default. Parameters of modules
        are states of the program; other tensors and arguments are constants. Options of
        MegEngine's files have no effect. Raises `ArgumentError`, a `ValueError`, without
        `capture_as_const`, and before the first call.
        """
        if not self._captures:
            raise ArgumentError("you must specify capture_as_const=True at __init__ to use dump")
        if self._last is None:
            raise ArgumentError("should run Trace object at least once before calling dump")
        leaves, structure = tree.flatten(self._last)
        tensors = [x for x in leaves if isinstance(x, Tensor)]
        names = [f"arg_{i}" for i in range(len(tensors))] if arg_names is None else arg_names
        if len(names) != len(tensors):
            raise ArgumentError(f"dump: {len(names)} arg_names for {len(tensors)} tensors")
        with Program(getattr(self, "__name__", "traced")) as program:
            inputs = iter([data(n, x.shape, x.dtype) for n, x in zip(names, tensors, strict=True)])
            given = [_stand_in(next(inputs)) if isinstance(x, Tensor) else x for x in leaves]
            args, kwargs = tree.unflatten(structure, given)
            results = tree.flatten(self._call(args, kwargs))[0]
            _name_results(results, output_names)
        save(program, file)


def _stand_in(variable: Any) -> Variable:
    """The variable with MegEngine's methods."""
    return Variable(variable.recorder, variable.value)


def _name_results(results: Sequence[Any], names: Any) -> None:
    given = [names] if isinstance(names, str) else names
    if given is None:
        given = [f"output_{i}" for i in range(len(results))]
    if len(given) != len(results):
        raise ArgumentError(f"dump: {len(given)} output_names for {len(results)} results")
    for result, name in zip(results, given, strict=True):
        if not isinstance(result, _Variable):
            raise ArgumentError(f"dump: {name} does not depend on inputs: {result!r:.60}")
        result.name = name


def partial_trace(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Return the function, which needs no `partial_trace` to be compiled.

    >>> megengine.jit.partial_trace(abs) is abs
    True
    """
    return partial(partial_trace, **options) if function is None else function


def is_tracing() -> bool:
    """Return whether a traced function is being called.

    >>> megengine.jit.is_tracing()
    False
    """
    return _tracing.get()


@contextmanager
def exclude_from_trace() -> Iterator[None]:
    """Leave statements out of a trace: here all statements run at each call.

    >>> with megengine.jit.exclude_from_trace():
    ...     megengine.jit.is_tracing()
    False
    """
    before = _tracing.set(False)
    try:
        yield
    finally:
        _tracing.reset(before)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
