"""The problems of CUTEst in sif2jax, with `primgraph.numpy` in the place of `jax.numpy`.

`load("primgraph", name)` returns a problem whose module, and all that it imports from sif2jax, were
run with stand-ins for JAX: `jnp` is `primgraph.numpy`, `jax.vmap` and `jax.lax.scan` are
primgraph's, and sparse matrices are SciPy's. `load("jax", name)` returns the problem as it is.
Nothing but the modules of that problem is imported, since those of all take minutes.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.util
import math
import sys
import types
from collections.abc import Callable, Mapping
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array

import primgraph as pg
import primgraph.numpy as names
from primgraph.operators.handle import Handle

# The package of the problems that import the stand-ins.
ALIAS = "cutest_of_primgraph"


def _has_handles(*values: Any) -> bool:
    return any(
        isinstance(v, Handle) or (isinstance(v, tuple | list) and _has_handles(*v)) for v in values
    )


class _Place:
    """`x.at[index]` of JAX: methods that return a changed copy."""

    def __init__(self, array: Any, index: Any) -> None:
        self.array, self.index = array, index

    def set(self, value: Any) -> Any:
        """Return a copy with other elements at the index."""
        if _has_handles(self.array, self.index, value):
            return pg.set_slice(self.array, self.index, value)
        found = self.array.copy()
        found[self.index] = value
        return found

    def add(self, value: Any) -> Any:
        """Return a copy with more at the index; positions that are repeated add up."""
        if _has_handles(self.index):
            return pg.set_slice(self.array, self.index, self.array[self.index] + value)
        if _has_handles(self.array, value):
            size, shape = math.prod(self.array.shape), self.array.shape
            places = np.arange(size).reshape(shape)[self.index]
            parts = names.broadcast_to(value, places.shape).reshape(-1)
            flat = pg.scatter_add(self.array.reshape(-1), places.reshape(-1), parts)
            return flat.reshape(shape)
        found = self.array.copy()
        np.add.at(found, self.index, value)
        return found


class _At:
    """`x.at` of JAX."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> _Place:
        return _Place(self.array, index)


class Array(np.ndarray):
    """An array that has `at`, and takes variables as indices, as those of JAX."""

    at = property(_At)

    def __getitem__(self, index: Any) -> Any:
        return (
            pg.asarray(np.asarray(self))[index]
            if _has_handles(index)
            else super().__getitem__(index)
        )


def _with_at(value: Any) -> Any:
    """Return arrays in a result as arrays that have `at`."""
    if type(value) is np.ndarray:
        return value.view(Array)
    if type(value) in (tuple, list):
        return type(value)(map(_with_at, value))
    return value


_SCALAR_TYPES = frozenset(t for t in np.sctypeDict.values() if t is not np.void)


class _ScalarType:
    """A dtype of JAX, which converts variables too when it is called."""

    def __init__(self, kind: type[np.generic]) -> None:
        self._kind, self.dtype = kind, np.dtype(kind)

    def __call__(self, value: Any) -> Any:
        return pg.astype(value, self.dtype) if _has_handles(value) else self._kind(value)


class _Names:
    """`jax.numpy`: the names of `primgraph.numpy`, returning arrays that have `at`."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, types.ModuleType):
            found = _Names(found)
        elif isinstance(found, type) and found in _SCALAR_TYPES:
            found = _ScalarType(found)
        elif callable(found) and not isinstance(found, type):
            original = found

            @functools.wraps(original)
            def call(*args: Any, **kwargs: Any) -> Any:
                return _with_at(original(*args, **kwargs))

            found = call
        setattr(self, name, found)
        return found


def _segment_sum(data: Any, ids: Any, num_segments: int, **_: Any) -> Any:
    return pg.scatter_add(names.zeros((num_segments, *data.shape[1:])), ids, data)


def _dynamic_slice(x: Any, starts: Any, sizes: Any) -> Any:
    return x[tuple([slice(i, i + n) for i, n in zip(starts, sizes, strict=True)])]


def _sparse_matrix(given: Any, *, shape: tuple[int, int]) -> Any:
    data, places = map(np.asarray, given)
    return coo_array((data, (places[:, 0], places[:, 1])), shape=shape)


_NUMPY = _Names(names)
_SPECIAL = types.SimpleNamespace(erf=pg.special.erf, erfc=pg.special.erfc)
_JAX = types.SimpleNamespace(
    Array=Array,
    config=types.SimpleNamespace(update=lambda *_: None),
    experimental=types.SimpleNamespace(sparse=types.SimpleNamespace(BCOO=_sparse_matrix)),
    jit=lambda function, **_: function,
    lax=types.SimpleNamespace(scan=pg.scan, dynamic_slice=_dynamic_slice),
    numpy=_NUMPY,
    ops=types.SimpleNamespace(segment_sum=_segment_sum),
    scipy=types.SimpleNamespace(special=_SPECIAL),
    vmap=pg.vmap,
)
# Helpers of the base classes that only count variables.
_JAX.flatten_util = _JAX.tree_util = types.SimpleNamespace()


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0):
    """`__import__` of the modules that see the stand-ins."""
    first, *rest = name.split(".")
    if level == 0 and first == "jax":
        return functools.reduce(getattr, rest, _JAX) if fromlist else _JAX
    if level == 0 and first == "sif2jax":
        name = ".".join([ALIAS, *rest])
    return builtins.__import__(name, globals, locals, fromlist, level)


class _Finder(MetaPathFinder, Loader):
    """Imports of sif2jax under two names, without those of the packages that list problems."""

    def __init__(self, is_whole: bool) -> None:
        found = importlib.util.find_spec("sif2jax")
        assert found is not None
        self.root = Path(str(found.origin)).parent
        self.is_whole = is_whole

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        first, *rest = name.split(".")
        if first not in ("sif2jax", ALIAS):
            return None
        place = self.root.joinpath(*rest)
        is_package = place.is_dir()
        file = place / "__init__.py" if is_package else place.with_suffix(".py")
        return importlib.util.spec_from_loader(name, self, origin=str(file), is_package=is_package)

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: Any) -> None:
        spec = module.__spec__
        first, *rest = spec.name.split(".")
        file = Path(spec.origin)
        module.__file__ = str(file)
        if spec.submodule_search_locations is not None:
            module.__path__ = [str(file.parent)]
        if first == ALIAS:
            module.__builtins__ = {**vars(builtins), "__import__": _import}
        if not rest:
            base = importlib.import_module(f"{first}._problem")
            vars(module).update({k: v for k, v in vars(base).items() if k.startswith("Abstract")})
        if self.is_whole or spec.submodule_search_locations is None or rest[-1:] == ["data"]:
            exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), vars(module))


@functools.cache
def _install(is_whole: bool = False) -> None:
    """Make the modules importable, and give variables and tensors `at`."""
    importlib.import_module("jax").config.update("jax_enable_x64", True)
    sys.meta_path.insert(0, _Finder(is_whole))
    Handle.at = property(_At)


def load(world: str, name: str, sizes: Mapping[str, int] | None = None) -> Any:
    """Return a problem by its module and class, as `_unconstrained_minimisation.rosenbr.ROSENBR`.

    `world` is "jax" or "primgraph"; `sizes` are numbers of unknowns other than the problem's.
    """
    _install()
    package = "sif2jax" if world == "jax" else ALIAS
    module, _, kind = name.rpartition(".")
    return getattr(importlib.import_module(f"{package}.cutest.{module}"), kind)(**sizes or {})


def functions(problem: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any] | None]:
    """Return the objective, and the constraints as a list of arrays (None without any)."""

    def objective(y: Any) -> Any:
        return problem.objective(y, problem.args)

    def constraints(y: Any) -> list[Any]:
        return [c for c in problem.constraint(y) if c is not None]

    return objective, constraints if hasattr(problem, "constraint") else None


def names_of_all() -> list[str]:
    """Return the names of all problems, which imports all, and takes some time."""
    _install(is_whole=True)
    found = importlib.import_module(ALIAS).problems
    kinds = [type(problem) for problem in found]
    return [f"{k.__module__.split('.cutest.')[1]}.{k.__name__}" for k in kinds]


if __name__ == "__main__":
    print(*names_of_all(), sep="\n")
