"""Scopes of Paddle's static mode: where the values of parameters are, and views of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from primgraph.compat.paddle.framework import CPUPlace
from primgraph.program.program import Program
from primgraph.program.scope import Scope as _Scope

__all__ = ["Scope", "current_scope", "global_scope", "scope_guard"]


@final
class StoredTensor:
    """A value that a scope holds by name: `np.array` of it is a copy, and `set` replaces it."""

    def __init__(self, scope: _Scope, name: str, program: Program | None = None) -> None:
        self._scope, self._name, self._program = scope, name, program

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a copy of the elements."""
        if self._name in self._scope or self._program is None:
            return self._scope.get(self._name)
        return self._program.state_dict(self._scope)[self._name]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.numpy().astype(dtype) if dtype is not None else self.numpy()

    def shape(self) -> list[int]:
        """Return the sizes."""
        return list(self.numpy().shape)

    def set(self, array: Any, place: CPUPlace | None = None) -> None:
        """Store a copy of an array."""
        states = () if self._program is None else self._program.states.values()
        types = [s.type for s in states if s.name == self._name]
        self._scope.set(self._name, np.asarray(array), types[0] if types else None)


@final
class StoredVariable:
    """A name of a scope, whose value is the tensor of `get_tensor`."""

    def __init__(self, tensor: StoredTensor, name: str) -> None:
        self._tensor, self._name = tensor, name

    def name(self) -> str:
        """Return the name."""
        return self._name

    def get_tensor(self) -> StoredTensor:
        """Return the value."""
        return self._tensor


@final
class Scope:
    """Values of parameters by name, apart from those of other scopes.

    >>> scope = paddle.static.Scope()
    >>> scope.find_var("w") is None
    True
    """

    def __init__(self, storage: _Scope | None = None) -> None:
        self.storage = _Scope() if storage is None else storage

    def var(self, name: str) -> StoredVariable:
        """Return the variable of that name, which has no value until one is set."""
        return StoredVariable(StoredTensor(self.storage, name), name)

    def find_var(self, name: str) -> StoredVariable | None:
        """Return the variable of that name, or None."""
        return self.var(name) if name in self.storage else None

    def get(self, name: str) -> np.ndarray[Any, Any]:
        """Return a copy of the array of that name."""
        return self.storage.get(name)

    def local_var_names(self) -> list[str]:
        """Return the names of all variables."""
        return list(self.storage)


@final
class GlobalScope:
    """The scope of executors that are given none: each program has its own storage.

    It finds names in the programs that have run, the latest first.
    """

    storage = None

    def __init__(self) -> None:
        self._programs: list[Program] = []

    def note(self, program: Program) -> None:
        """Record that a program, or the programs of a startup program, run."""
        for found in (*program.starts, program):
            if not self._programs or self._programs[-1] is not found:
                self._programs = [*(p for p in self._programs if p is not found), found][-_KEPT:]

    def find_var(self, name: str) -> StoredVariable | None:
        """Return the variable of that name, or None."""
        for program in reversed(self._programs):
            if any(s.name == name for s in program.states.values()):
                return StoredVariable(StoredTensor(program.scope, name, program), name)
        return None

    def var(self, name: str) -> StoredVariable:
        """Return the variable of that name, which has no value until one is set."""
        return self.find_var(name) or _spare.var(name)

    def local_var_names(self) -> list[str]:
        """Return the names of all variables."""
        names = [s.name for p in self._programs for s in p.states.values()]
        return list(dict.fromkeys(names))


# As many programs as the global scope remembers.
_KEPT = 16
_spare = Scope()
_global = GlobalScope()
_current: list[Scope | GlobalScope] = [_global]


def current_scope() -> Scope | GlobalScope:
    """Return the scope that executors use which are given none."""
    return _current[0]


def global_scope() -> Scope | GlobalScope:
    """Return the scope that executors use: that of `scope_guard`, or one for all programs.

    >>> paddle.static.global_scope().find_var("nothing") is None
    True
    """
    return _current[0]


@contextmanager
def scope_guard(scope: Scope | GlobalScope) -> Iterator[None]:
    """Let executors use `scope` within this context.

    >>> with paddle.static.scope_guard(paddle.static.Scope()):
    ...     paddle.static.global_scope().find_var("w") is None
    True
    """
    before, _current[0] = _current[0], scope
    try:
        yield
    finally:
        _current[0] = before
