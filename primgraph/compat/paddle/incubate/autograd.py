"""Derivatives of any order by the names that they have in `paddle.incubate.autograd`."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import wraps
from typing import Any, TypeVar, cast

from primgraph.derivatives import forward_grad as _forward_grad
from primgraph.derivatives import grad
from primgraph.errors import ArgumentError, BuildError
from primgraph.functional import jvp, vjp
from primgraph.ir.graph import Graph
from primgraph.jacobian import Hessian, Jacobian
from primgraph.program import Program, current_program
from primgraph.transforms.lower import lower
from primgraph.transforms.raise_ import raise_

__all__ = [
    "Hessian",
    "Jacobian",
    "PrimDisabledError",
    "disable_prim",
    "enable_prim",
    "forward_grad",
    "grad",
    "jvp",
    "orig2prim",
    "prim2orig",
    "prim_enabled",
    "to_prim",
    "vjp",
]

F = TypeVar("F", bound=Callable[..., Any])

_enabled = [False]


class PrimDisabledError(BuildError, RuntimeError):
    """Forward mode was asked for before `enable_prim`."""


def enable_prim() -> None:
    """Allow `forward_grad`. Everything else works the same with and without."""
    _enabled[0] = True


def disable_prim() -> None:
    """Make `forward_grad` an error, as it is before `enable_prim`."""
    _enabled[0] = False


def prim_enabled() -> bool:
    """Whether `enable_prim` was called last; False at first."""
    return _enabled[0]


def _needs_prim(function: F) -> F:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not prim_enabled():
            raise PrimDisabledError(
                f"{function.__name__} is not there before enable_prim() is called"
            )
        return function(*args, **kwargs)

    return cast(F, call)


forward_grad = _needs_prim(_forward_grad)


def orig2prim(block: Program | None = None) -> Graph:
    """The program, by default the one being built, as a graph of primitives.

    The program itself stays as it is: derivatives lower what they need on their own.
    """
    return lower(_graph(block))


def prim2orig(block: Program | None = None, blacklist: AbstractSet[str] | None = None) -> Graph:
    """The program, by default the one being built, with operators in place of primitives.

    Operators named in `blacklist` stay primitives. The program itself stays as it is: primitives
    run as well as operators.
    """
    return raise_(_graph(block), deny=_names("blacklist", blacklist))


def to_prim(
    blocks: Program,
    blacklist: AbstractSet[str] = frozenset(),
    whitelist: AbstractSet[str] = frozenset(),
) -> Graph:
    """The program as a graph in which operators are primitives.

    Those named in `blacklist` stay; with a `whitelist` only those in it are rewritten. The
    program itself stays as it is. Raises `ArgumentError`, a TypeError, for other than sets.
    """
    allow, deny = _names("whitelist", whitelist), _names("blacklist", blacklist)
    return lower(_graph(blocks), allow=allow or None, deny=deny)


def _graph(program: Program | None) -> Graph:
    chosen = current_program() if program is None else program
    if not isinstance(chosen, Program):
        raise ArgumentError(f"only programs can be rewritten, not {type(chosen).__name__}")
    return chosen.graph()


def _names(role: str, names: Any) -> AbstractSet[str]:
    if not isinstance(names, AbstractSet | None):
        raise ArgumentError(f"{role} is a set of operator names, not {names!r:.60}")
    return names or frozenset()
