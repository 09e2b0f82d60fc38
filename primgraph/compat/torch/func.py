"""Functions made of functions, by the names that they have in `torch.func`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from primgraph.api import public
from primgraph.api.derivatives import of_functions
from primgraph.api.vmap import vmap as vectorized
from primgraph.compat.absent import absent
from primgraph.compat.torch.conjugates import turned

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]

Function: TypeAlias = Callable[..., Any]
Positions: TypeAlias = int | Sequence[int]


def grad(func: Function, argnums: Positions = 0, has_aux: bool = False) -> Function:
    """The function that gives the gradient of `func`, of one element."""
    given = public.grad(func, argnums, has_aux)

    def called(*args: Any, **kwargs: Any) -> Any:
        found = given(*args, **kwargs)
        return (turned(found[0]), *found[1:]) if has_aux else turned(found)

    return called


def grad_and_value(func: Function, argnums: Positions = 0, has_aux: bool = False) -> Function:
    """The function that gives the gradient of `func`, and what `func` gives."""
    both = of_functions.value_and_grad(func, argnums, has_aux)

    def called(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradient = both(*args, **kwargs)
        return turned(gradient), value

    return called


def jacrev(func: Function, argnums: Positions = 0, *, has_aux: bool = False) -> Function:
    """The function that gives all derivatives of `func`, by reverse mode."""
    return of_functions.jacrev(func, argnums, has_aux)


def jacfwd(func: Function, argnums: Positions = 0, has_aux: bool = False) -> Function:
    """The function that gives all derivatives of `func`, by forward mode."""
    return of_functions.jacfwd(func, argnums, has_aux)


def hessian(func: Function, argnums: Positions = 0) -> Function:
    """The function that gives the second derivatives of `func`, of one element."""
    return of_functions.hessian_of(func, argnums, False)


def jvp(func: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """`func(*primals)`, and the product of its Jacobian with `tangents`."""
    value, product = public.jvp(func, primals, tangents)
    return value, product


def vjp(func: Function, *primals: Any) -> tuple[Any, Function]:
    """`func(*primals)`, and the function that gives a cotangent's products with its Jacobian."""

    def back(cotangent: Any) -> tuple[Any, ...]:
        return tuple(turned(public.vjp(func, primals, turned(cotangent))[1]))

    return func(*primals), back


def vmap(func: Function, in_dims: Any = 0, out_dims: Any = 0) -> Function:
    """The function of many samples that does for each what `func` does for one.

    `func` is traced, on variables of a program: it takes functions of this package, and methods
    that all arrays of primgraph have.
    """
    return vectorized(func, in_dims, out_dims)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
