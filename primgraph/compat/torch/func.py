"""Functions made of functions, by the names that they have in `torch.func`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from primgraph.api import public
from primgraph.api.derivatives import of_functions, products
from primgraph.api.vmap import vmap as vectorized
from primgraph.compat.absent import absent
from primgraph.compat.torch.conjugates import conjugate_values

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]

Function: TypeAlias = Callable[..., Any]
Positions: TypeAlias = int | Sequence[int]


def grad(func: Function, argnums: Positions = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the gradient of `func`, whose result has one element.

    >>> torch.func.grad(lambda x: torch.sum(x * x))(torch.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    given = public.grad(func, argnums, has_aux)

    def call_conjugated(*args: Any, **kwargs: Any) -> Any:
        found = given(*args, **kwargs)
        return (conjugate_values(found[0]), *found[1:]) if has_aux else conjugate_values(found)

    return call_conjugated


def grad_and_value(func: Function, argnums: Positions = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the gradient and the value of `func`.

    >>> torch.func.grad_and_value(lambda x: torch.sum(x * x))(torch.tensor([1.0, 2.0]))
    (tensor([2., 4.]), tensor(5.))
    """
    both = of_functions.value_and_grad(func, argnums, has_aux)

    def call_conjugated(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        value, gradient = both(*args, **kwargs)
        return conjugate_values(gradient), value

    return call_conjugated


def jacrev(func: Function, argnums: Positions = 0, *, has_aux: bool = False) -> Function:
    """Return the function that computes the Jacobian of `func`, by reverse mode.

    >>> torch.func.jacrev(lambda x: x * x)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return of_functions.jacrev(func, argnums, has_aux)


def jacfwd(func: Function, argnums: Positions = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the Jacobian of `func`, by forward mode.

    >>> torch.func.jacfwd(lambda x: x * x)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    return of_functions.jacfwd(func, argnums, has_aux)


def hessian(func: Function, argnums: Positions = 0) -> Function:
    """Return the function that computes the Hessian of `func`, whose result has one element.

    >>> torch.func.hessian(lambda x: torch.sum(x**3))(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return of_functions.hessian_of(func, argnums, False)


def jvp(func: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return `func(*primals)` and the product of its Jacobian with `tangents`.

    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.func.jvp(lambda x: x * x, (x,), (torch.ones(2),))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    value, product = products.jvp(func, primals, tangents)
    return value, product


def vjp(func: Function, *primals: Any) -> tuple[Any, Function]:
    """Return `func(*primals)` and the function that multiplies a cotangent with its Jacobian.

    >>> y, pullback = torch.func.vjp(lambda x: x * x, torch.tensor([1.0, 2.0]))
    >>> pullback(torch.ones(2))
    (tensor([2., 4.]),)
    """

    def back(cotangent: Any) -> tuple[Any, ...]:
        return tuple(conjugate_values(products.vjp(func, primals, conjugate_values(cotangent))[1]))

    return func(*primals), back


def vmap(func: Function, in_dims: Any = 0, out_dims: Any = 0) -> Function:
    """Return the function that applies `func` to each sample of a batch.

    `func` is traced, on variables of a program: it takes functions of this package, and methods
    that all arrays of primgraph have.

    >>> torch.func.vmap(torch.dot)(torch.ones(3, 2), torch.ones(3, 2))
    tensor([2., 2., 2.])
    """
    return vectorized(func, in_dims, out_dims)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
