"""Gradients, Jacobians and products with them, as functions of what the function takes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import primgraph.numpy as np
from primgraph.compat.autograd import core
from primgraph.compat.autograd.evaluation import Evaluated
from primgraph.compat.autograd.spaces import vspace
from primgraph.compat.autograd.wrap_util import unary_to_nary
from primgraph.control.checkpoints import checkpoint
from primgraph.errors import NotScalarError

__all__ = [
    "checkpoint",
    "deriv",
    "elementwise_grad",
    "grad",
    "grad_and_aux",
    "grad_named",
    "hessian",
    "hessian_tensor_product",
    "hessian_vector_product",
    "holomorphic_grad",
    "jacobian",
    "make_ggnvp",
    "make_hvp",
    "make_jvp",
    "make_jvp_reversemode",
    "make_vjp",
    "multigrad_dict",
    "tensor_jacobian_product",
    "value_and_grad",
    "vector_jacobian_product",
]

make_vjp = unary_to_nary(core.make_vjp)
make_jvp = unary_to_nary(core.make_jvp)


def _of_one_number(name: str, evaluated: Evaluated) -> None:
    """Raise `NotScalarError`, a TypeError, unless a function gave one real number."""
    if vspace(evaluated.value()).size != 1:
        raise NotScalarOutput(
            f"{name} is of functions of one real number",
            hint="jacobian, elementwise_grad and holomorphic_grad are of others",
        )


class NotScalarOutput(NotScalarError, TypeError):
    """A function that has to give one real number gives something else."""


@unary_to_nary
def grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """
    Returns a function which gives the gradient of `fun`, of one real number, by its argument at
    position `argnum`, or a tuple of gradients for a tuple of positions. It takes what `fun` takes,
    and each gradient is something like the argument.
    """
    evaluated = Evaluated(fun, x)
    evaluated.tell_of_independence()
    _of_one_number("grad", evaluated)
    return evaluated.vjp(None)


@unary_to_nary
def value_and_grad(fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """A function that gives what `fun` gives, and its gradient, as SciPy's optimizers take them."""
    evaluated = Evaluated(fun, x)
    evaluated.tell_of_independence()
    _of_one_number("value_and_grad", evaluated)
    return evaluated.value(), evaluated.vjp(None)


@unary_to_nary
def grad_and_aux(fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """A function that gives the gradient of the first of two results, and the second."""
    evaluated = Evaluated(fun, x, has_aux=True)
    return evaluated.vjp(None), evaluated.value()[1]


@unary_to_nary
def elementwise_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """A function that gives the sums of the columns of the Jacobian: its diagonal, where all else
    is zero."""
    evaluated = Evaluated(fun, x)
    evaluated.tell_of_independence()
    if any(r.dtype.kind == "c" for r in evaluated.results):
        raise NotScalarOutput("elementwise_grad is of functions of real numbers")
    return evaluated.vjp(None)


@unary_to_nary
def deriv(fun: Callable[[Any], Any], x: Any) -> Any:
    """A function that gives the derivative along ones, by forward mode."""
    return core.make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Callable[[Any], Any], x: Any) -> Any:
    """A function that gives all derivatives of an array by an array, with the axes of both."""
    return Evaluated(fun, x).jacobian()


@unary_to_nary
def hessian(fun: Callable[[Any], Any], x: Any) -> Any:
    """A function that gives the second derivatives."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def holomorphic_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """A function that gives the complex derivative of a holomorphic function."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=2)
    return grad(lambda z: np.real(fun(z)))(x)


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """`grad` by the argument of that name."""
    gradient: Callable[..., Any] = grad(fun, [*inspect.signature(fun).parameters].index(argname))
    return gradient


@unary_to_nary
def make_hvp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """A function that gives the product with the Hessian at a point, as a function of the vector,
    and the gradient there."""
    return core.make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """A function of the arguments and a tensor, which gives the product of that and the Hessian."""
    gradient = grad(fun, argnum)

    def along(*args: Any, **kwargs: Any) -> Any:
        *given, tensor = args
        return np.tensordot(gradient(*given, **kwargs), tensor, np.ndim(tensor))

    product: Callable[..., Any] = grad(along, argnum)
    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """A function of the arguments and a tensor, which gives that times the Jacobian."""

    def along(*args: Any, **kwargs: Any) -> Any:
        *given, tensor = args
        return np.tensordot(tensor, fun(*given, **kwargs), axes=np.ndim(tensor))

    product: Callable[..., Any] = jacobian(along, argnum)
    return product


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """A function that gives the product of the Jacobian with a vector."""
    return Evaluated(fun, x).jvp


def _half_square(x: Any) -> Any:
    return np.sum(x**2, axis=-1) / 2.0


def make_ggnvp(
    f: Callable[..., Any], g: Callable[[Any], Any] = _half_square, f_argnum: int = 0
) -> Callable[..., Any]:
    """A function that gives, at a point, the product of a vector with a Gauss-Newton matrix.

    That of `g(f(x))` is the Jacobian of `f`, transposed, times the Hessian of `g` times the first.
    """

    @unary_to_nary
    def make(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
        inner = Evaluated(f, x)
        hessian_product, _ = core.make_vjp(grad(g), inner.value())
        return lambda v: inner.vjp(hessian_product(inner.jvp(v)))

    made: Callable[..., Any] = make(f, f_argnum)
    return made


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """A function that gives the gradients by all arguments at once, by their names."""
    signature = inspect.signature(fun)

    def gradients(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_names(given: dict[str, Any]) -> Any:
            bound.arguments.update(given)
            return fun(*bound.args, **bound.kwargs)

        found: dict[str, Any] = grad(of_names)(dict(bound.arguments))
        return found

    return gradients
