"""NumPy's names where every array is an eager tensor: `import eager_numpy as np`.

Functions are those of `primgraph.numpy`; arrays among their arguments and results become tensors,
if primgraph has their dtype. Classes, constants and modules are NumPy's own. Suites that were
written for NumPy run with it unchanged. While `settings.on` is False, as when the module of a suite
is imported, arrays stay arrays.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import numpy

import primgraph as pg
import primgraph.numpy as pnp
from primgraph.eager.tensor import _OF_ELEMENTS
from primgraph.ir.types import NAME_OF_DTYPE
from primgraph.numpy.door import Ufunc

settings = types.SimpleNamespace(on=True)
# Functions that write to their first argument, which stays what it is.
_WRITERS = ("at", "copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")


def as_tensors(found: Any) -> Any:
    """Return `found` with its arrays, within tuples and lists too, as tensors."""
    if not settings.on:
        return found
    if isinstance(found, numpy.random.RandomState | numpy.random.Generator):
        return _Generator(found)
    if type(found) is numpy.ndarray:
        return pg.tensor(found) if found.dtype in NAME_OF_DTYPE else found
    if isinstance(found, pg.Tensor):
        # Errors of values are raised where NumPy raises them.
        found.tolist() if found.size < 2 else found.numpy()
    if type(found) in (list, tuple):
        return type(found)([as_tensors(f) for f in found])
    if isinstance(found, tuple) and hasattr(found, "_fields"):
        return type(found)(*[as_tensors(f) for f in found])
    return found


class _Function:
    """A function whose results are tensors; in a class it is no method, like NumPy's in C."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.__name__ not in _WRITERS:
            args = as_tensors(args)
            kwargs = {k: a if k == "out" else as_tensors(a) for k, a in kwargs.items()}
        return as_tensors(self._function(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._function, name)
        return _Function(found) if callable(found) else found


class _Generator:
    """A generator of random numbers, whose arrays are tensors."""

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._generator, name)
        return _Function(found) if callable(found) else found


class _Joined:
    """`r_`, `c_`, `mgrid` and `ogrid`: objects that are indexed."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def __getitem__(self, index: Any) -> Any:
        return as_tensors(self._original[index])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


_INDEXED = ("r_", "c_", "mgrid", "ogrid")
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType,
              type(numpy.concatenate))  # fmt: skip


def _counterpart(found: Any, name: str) -> Any:
    if any(getattr(numpy, name, None) is f for f in _OF_ELEMENTS):
        found = getattr(numpy, name)
    if isinstance(found, Ufunc):
        return _Function(found)
    if name in _INDEXED:
        return _Joined(found)
    is_function = isinstance(found, _FUNCTIONS) or name == "RandomState"
    return _Function(found) if is_function else found


def convert_module(module: types.ModuleType) -> None:
    """Turn arrays that a module made when it was imported into tensors, in objects too."""
    for name, value in [*vars(module).items()]:
        setattr(module, name, as_tensors(value))
        for item in value if isinstance(value, list) else ():
            if isinstance(item, type):
                continue
            for attribute, array in [*getattr(item, "__dict__", {}).items()]:
                setattr(item, attribute, as_tensors(array))


def _namespace(name: str, original: Any) -> types.ModuleType:
    """Return the module `name`, whose attributes are those of `original`, with tensors."""
    module = types.ModuleType(name)
    module.__path__ = []  # type: ignore[attr-defined]

    def look_up(attribute: str) -> Any:
        if attribute.startswith("__") and attribute != "__version__":
            raise AttributeError(attribute)
        found = _counterpart(getattr(original, attribute), attribute)
        module.__dict__[attribute] = found
        return found

    module.__getattr__ = look_up  # type: ignore[method-assign]
    sys.modules[name] = module
    return module


class _Core:
    """Public functions as `primgraph.numpy` has them, where NumPy's private modules name them."""

    def __init__(self, module: str) -> None:
        self._module = import_module(module)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return getattr(pnp, name) if getattr(numpy, name, None) is found else found


def __getattr__(name: str) -> Any:
    if name.startswith("__") and name != "__version__":
        raise AttributeError(name)
    found = _counterpart(getattr(pnp, name), name)
    return globals().setdefault(name, found)


def _with_arrays(check: Callable[..., Any]) -> Callable[..., Any]:
    """Return an assertion of `numpy.testing` that compares the elements of tensors."""

    @wraps(check)
    def call(*args: Any, **kwargs: Any) -> Any:
        return check(*map(as_arrays, args), **{k: as_arrays(a) for k, a in kwargs.items()})

    return call


def as_arrays(given: Any) -> Any:
    """Return `given` with its tensors, within tuples and lists too, as arrays."""
    if isinstance(given, pg.Tensor):
        return given.numpy()
    if type(given) in (list, tuple):
        return type(given)([as_arrays(g) for g in given])
    return given


class _Testing:
    """`numpy.testing`, whose assertions about values take tensors."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(numpy.testing, name)
        is_comparison = name.startswith("assert_") and "raises" not in name and "warns" not in name
        return _with_arrays(found) if is_comparison else found


__path__: list[str] = []
testing = _namespace(f"{__name__}.testing", _Testing())
linalg = _namespace(f"{__name__}.linalg", pnp.linalg)
fft = _namespace(f"{__name__}.fft", pnp.fft)
random = _namespace(f"{__name__}.random", pnp.random)
for _name in ("_core", "_core.shape_base", "_core.numeric", "_core.umath"):
    _namespace(f"{__name__}.{_name}", _Core(f"numpy.{_name}"))
