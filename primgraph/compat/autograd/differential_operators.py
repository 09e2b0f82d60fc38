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


def _require_one_number(name: str, evaluated: Evaluated) -> None:
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
    """Return the function that computes the gradient of `fun`, whose result is one real number.

    The gradient is by the argument at position `argnum`, or a tuple of gradients for a tuple of
    positions. It takes the arguments of `fun`, and each gradient has the structure of the argument.

    >>> from primgraph.compat.autograd import grad
    >>> grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    evaluated = Evaluated(fun, x)
    evaluated.tell_of_independence()
    _require_one_number("grad", evaluated)
    return evaluated.vjp(None)


@unary_to_nary
def value_and_grad(fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Return the function that computes the value and the gradient of `fun`, as for SciPy.

    >>> from primgraph.compat.autograd import value_and_grad
    >>> value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    evaluated = Evaluated(fun, x)
    evaluated.tell_of_independence()
    _require_one_number("value_and_grad", evaluated)
    return evaluated.value(), evaluated.vjp(None)


@unary_to_nary
def grad_and_aux(fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Return the function that computes the gradient of the first of two results, and the second.

    >>> from primgraph.compat.autograd import grad_and_aux
    >>> grad_and_aux(lambda x: (x**2, 3.0 * x))(2.0)
    (np.float64(4.0), np.float64(6.0))
    """
    evaluated = Evaluated(fun, x, has_aux=True)
    return evaluated.vjp(None), evaluated.value()[1]


@unary_to_nary
def elementwise_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that computes the sums of the columns of the Jacobian.

    These are its diagonal if all other elements are zero.

    >>> from primgraph.compat.autograd import elementwise_grad
    >>> elementwise_grad(np.sin)(np.zeros(2))
    array([1., 1.])
    """
    evaluated = Evaluated(fun, x)
    evaluated.tell_of_independence()
    if any(r.dtype.kind == "c" for r in evaluated.results):
        raise NotScalarOutput("elementwise_grad is of functions of real numbers")
    return evaluated.vjp(None)


@unary_to_nary
def deriv(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that computes the derivative along ones, by forward mode.

    >>> from primgraph.compat.autograd import deriv
    >>> deriv(lambda x: x**2)(3.0)
    np.float64(6.0)
    """
    return core.make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that computes the Jacobian, with the axes of result and argument.

    >>> from primgraph.compat.autograd import jacobian
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return Evaluated(fun, x).jacobian()


@unary_to_nary
def hessian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that computes the second derivatives.

    >>> from primgraph.compat.autograd import hessian
    >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def holomorphic_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return the function that computes the complex derivative of a holomorphic function.

    >>> from primgraph.compat.autograd import holomorphic_grad
    >>> holomorphic_grad(lambda z: z**2)(1.0 + 2.0j)
    np.complex128(2+4j)
    """
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=2)
    return grad(lambda z: np.real(fun(z)))(x)


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """Return `grad` by the argument of that name.

    >>> from primgraph.compat.autograd import grad_named
    >>> grad_named(lambda x, y: x * y**2, "y")(3.0, 2.0)
    np.float64(12.0)
    """
    gradient: Callable[..., Any] = grad(fun, [*inspect.signature(fun).parameters].index(argname))
    return gradient


@unary_to_nary
def make_hvp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Return the function that computes, at a point, the Hessian-vector product and the gradient.

    >>> from primgraph.compat.autograd import make_hvp
    >>> product, gradient = make_hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    >>> product(np.ones(2))
    array([ 6., 12.])
    """
    return core.make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return the function of the arguments and a tensor that multiplies it with the Hessian.

    >>> from primgraph.compat.autograd import hessian_tensor_product
    >>> hessian_tensor_product(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.ones(2))
    array([ 6., 12.])
    """
    gradient = grad(fun, argnum)

    def contract(*args: Any, **kwargs: Any) -> Any:
        *given, tensor = args
        return np.tensordot(gradient(*given, **kwargs), tensor, np.ndim(tensor))

    product: Callable[..., Any] = grad(contract, argnum)
    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return the function of the arguments and a tensor that multiplies it with the Jacobian.

    >>> from primgraph.compat.autograd import tensor_jacobian_product
    >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.ones(2))
    array([2., 4.])
    """

    def contract(*args: Any, **kwargs: Any) -> Any:
        *given, tensor = args
        return np.tensordot(tensor, fun(*given, **kwargs), axes=np.ndim(tensor))

    product: Callable[..., Any] = jacobian(contract, argnum)
    return product


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """Return the function that computes, at a point, the Jacobian-vector product.

    >>> from primgraph.compat.autograd.differential_operators import make_jvp_reversemode
    >>> make_jvp_reversemode(lambda x: x**2)(np.array([1.0, 2.0]))(np.ones(2))
    array([2., 4.])
    """
    return Evaluated(fun, x).jvp


def _half_square(x: Any) -> Any:
    return np.sum(x**2, axis=-1) / 2.0


def make_ggnvp(
    f: Callable[..., Any], g: Callable[[Any], Any] = _half_square, f_argnum: int = 0
) -> Callable[..., Any]:
    """Return the function that computes, at a point, the Gauss-Newton-vector product.

    The Gauss-Newton matrix of `g(f(x))` is `J.T @ H @ J`, with the Jacobian of `f` and the
    Hessian of `g`.

    >>> from primgraph.compat.autograd import make_ggnvp
    >>> make_ggnvp(lambda x: x**2)(np.array([1.0, 2.0]))(np.ones(2))
    array([ 4., 16.])
    """

    @unary_to_nary
    def make(f: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
        inner = Evaluated(f, x)
        hessian_product, _ = core.make_vjp(grad(g), inner.value())
        return lambda v: inner.vjp(hessian_product(inner.jvp(v)))

    made: Callable[..., Any] = make(f, f_argnum)
    return made


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Return the function that computes the gradients by all arguments, by name.

    >>> from primgraph.compat.autograd import multigrad_dict
    >>> multigrad_dict(lambda x, y: x * y)(2.0, 3.0)
    {'x': np.float64(3.0), 'y': np.float64(2.0)}
    """
    signature = inspect.signature(fun)

    def gradients(*args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def call_by_names(given: dict[str, Any]) -> Any:
            bound.arguments.update(given)
            return fun(*bound.args, **bound.kwargs)

        found: dict[str, Any] = grad(call_by_names)(dict(bound.arguments))
        return found

    return gradients
