"""Derivatives of any order by the names that they have in `paddle.incubate.autograd`."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from primgraph.api import public
from primgraph.api.derivatives import products
from primgraph.compat.absent import absent
from primgraph.compat.paddle.core.program import building_program
from primgraph.compat.paddle.framework import as_paddle_raises, paddles, reject_options
from primgraph.derivatives.matrices.jacobian import Hessian as _Hessian
from primgraph.derivatives.matrices.jacobian import Jacobian as _Jacobian
from primgraph.derivatives.request import Seeds, Variables
from primgraph.errors import ArgumentError, BuildError
from primgraph.ir.graph import Graph
from primgraph.operators.handle import Handle
from primgraph.program.program import Program
from primgraph.transforms.lower import lower
from primgraph.transforms.raise_operators import raise_

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

_enabled = [False]


class PrimDisabledError(BuildError, RuntimeError):
    """Forward mode was asked for before `enable_prim`."""


def enable_prim() -> None:
    """Allow `forward_grad`. Everything else works the same with and without.

    >>> paddle.incubate.autograd.enable_prim()
    >>> paddle.incubate.autograd.prim_enabled()
    True
    """
    _enabled[0] = True


def disable_prim() -> None:
    """Make `forward_grad` an error, as it is before `enable_prim`.

    >>> paddle.incubate.autograd.disable_prim()
    >>> paddle.incubate.autograd.prim_enabled()
    False
    """
    _enabled[0] = False


def prim_enabled() -> bool:
    """Return whether `enable_prim` was called last; False at first.

    >>> paddle.incubate.autograd.disable_prim()
    >>> paddle.incubate.autograd.prim_enabled()
    False
    """
    return _enabled[0]


@as_paddle_raises
@paddles
def forward_grad(outputs: Variables, inputs: Variables, grad_inputs: Seeds = None) -> Any:
    """Return the tangents of `pg.forward_grad`, after a call of `enable_prim`.

    >>> paddle.incubate.autograd.enable_prim()
    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [2])
    ...     dy = paddle.incubate.autograd.forward_grad(x * x, x)
    >>> paddle.static.Executor().run(program, {"x": [1.0, 2.0]}, [dy])
    [array([2., 4.], dtype=float32)]
    """
    if not prim_enabled():
        raise PrimDisabledError("forward_grad is not there before enable_prim() is called")
    return public.forward_grad(outputs, inputs, grad_inputs)


@as_paddle_raises
@paddles
def grad(outputs: Variables, inputs: Variables, grad_outputs: Seeds = None) -> Any:
    """Return `pg.grad`: one result for one input, a list for a sequence, None for an unused input.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [2])
    ...     dx = paddle.incubate.autograd.grad(paddle.sum(x * x), x)
    >>> paddle.static.Executor().run(program, {"x": [1.0, 2.0]}, [dx])
    [array([2., 4.], dtype=float32)]
    """
    return public.grad(outputs, inputs, grad_outputs)


class NoTensorError(ArgumentError, AttributeError):
    """An input is no tensor or variable."""


def _require_tensors(name: str, xs: Any) -> None:
    """Raise `NoTensorError` for inputs that are no tensors or variables."""
    for x in xs if isinstance(xs, list | tuple) else [xs]:
        if not isinstance(x, Handle):
            raise NoTensorError(f"{name}: an input is a tensor, not {type(x).__name__}")


@as_paddle_raises
@paddles
def vjp(func: Callable[..., Any], xs: Variables, v: Seeds = None) -> Any:
    """Return the result of `func` and the product of `v` with its Jacobian, as `pg.vjp` does.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [2])
    ...     y, product = paddle.incubate.autograd.vjp(lambda x: x * x, x)
    >>> paddle.static.Executor().run(program, {"x": [1.0, 2.0]}, [product])
    [array([2., 4.], dtype=float32)]
    """
    return products.vjp(func, xs, v)


@as_paddle_raises
@paddles
def jvp(func: Callable[..., Any], xs: Variables, v: Seeds = None) -> Any:
    """Return the result of `func` and the product of its Jacobian with `v`, as `pg.jvp` does.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [2])
    ...     y, product = paddle.incubate.autograd.jvp(lambda x: x * x, x)
    >>> paddle.static.Executor().run(program, {"x": [1.0, 2.0]}, [product])
    [array([2., 4.], dtype=float32)]
    """
    return products.jvp(func, xs, v)


@as_paddle_raises
@paddles
def Jacobian(func: Callable[..., Any], xs: Variables, is_batched: bool = False) -> _Jacobian:
    """Return the Jacobian of `func` as a `pg.Jacobian`, which is evaluated when it is indexed.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [2])
    ...     rows = paddle.incubate.autograd.Jacobian(lambda x: x * x, x)[:]
    >>> paddle.static.Executor().run(program, {"x": [1.0, 2.0]}, [rows])
    [array([[2., 0.],
           [0., 4.]], dtype=float32)]
    """
    _require_tensors("Jacobian", xs)
    return _Jacobian(func, xs, is_batched)


@as_paddle_raises
@paddles
def Hessian(func: Callable[..., Any], xs: Variables, is_batched: bool = False) -> _Hessian:
    """Return the Hessian of `func` as a `pg.Hessian`, which is evaluated when it is indexed.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [2])
    ...     rows = paddle.incubate.autograd.Hessian(lambda x: paddle.sum(x**3), x)[:]
    >>> paddle.static.Executor().run(program, {"x": [1.0, 2.0]}, [rows])
    [array([[ 6.,  0.],
           [ 0., 12.]], dtype=float32)]
    """
    _require_tensors("Hessian", xs)
    return _Hessian(func, xs, is_batched)


@paddles
def orig2prim(block: Program | None = None) -> Graph:
    """Return the program, by default the one being built, as a graph of primitives.

    The program itself stays as it is: derivatives lower what they need on their own.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     y = paddle.nn.functional.silu(paddle.static.data("x", [2]))
    >>> [e.op.name for e in paddle.incubate.autograd.orig2prim(program).body]
    ['sigmoid', 'mul']
    """
    return lower(_graph(block))


@paddles
def prim2orig(block: Program | None = None, blacklist: AbstractSet[str] | None = None) -> Graph:
    """Return the program, by default the one being built, with operators in place of primitives.

    Operators named in `blacklist` stay primitives. The program itself stays as it is: primitives
    run as well as operators.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     x = paddle.static.data("x", [2])
    ...     y = x * paddle.nn.functional.sigmoid(x)
    >>> [e.op.name for e in paddle.incubate.autograd.prim2orig(program).body]
    ['silu']
    """
    return raise_(_graph(block), deny=_names("blacklist", blacklist))


@paddles
def to_prim(
    blocks: Program,
    blacklist: AbstractSet[str] = frozenset(),
    whitelist: AbstractSet[str] = frozenset(),
    start_idx: int = -1,
    backward_length: int = -1,
) -> Graph:
    """Return the program as a graph in which operators are primitives.

    Those named in `blacklist` stay; with a `whitelist` only those in it are rewritten. The
    program itself stays as it is. Raises `ArgumentError`, a TypeError, for other than sets, and
    `OptionError`, a ValueError, for parts of a program.

    >>> program = paddle.static.Program()
    >>> with paddle.static.program_guard(program):
    ...     y = paddle.nn.functional.silu(paddle.static.data("x", [2]))
    >>> graph = paddle.incubate.autograd.to_prim(program, blacklist={"silu"})
    >>> [e.op.name for e in graph.body]
    ['silu']
    """
    part = {"start_idx": start_idx, "backward_length": backward_length}
    reject_options("to_prim", **{n: None if v == -1 else v for n, v in part.items()})
    allow, deny = _names("whitelist", whitelist), _names("blacklist", blacklist)
    return lower(_graph(blocks), allow=allow or None, deny=deny)


def _graph(program: Program | None) -> Graph:
    chosen = building_program() if program is None else program
    if not isinstance(chosen, Program):
        raise ArgumentError(f"only programs can be rewritten, not {type(chosen).__name__}")
    return chosen.graph()


def _names(role: str, names: Any) -> AbstractSet[str]:
    if not isinstance(names, AbstractSet | None):
        raise ArgumentError(f"{role} is a set of operator names, not {names!r:.60}")
    return names or frozenset()


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
