"""Derivatives of functions by the names that they have in `torch.autograd.functional`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from primgraph.api import public as pg
from primgraph.api.derivatives import products
from primgraph.compat.absent import absent
from primgraph.compat.torch.core.conjugates import conjugate_values
from primgraph.compat.torch.func import require_tensors
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError
from primgraph.operators.handle import Handle

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function: TypeAlias = Callable[..., Any]


def _checked(name: str, func: Function, inputs: Any) -> Function:
    """Return `func`, which is to return tensors. Raises `ArgumentError` for other inputs."""
    message = (
        f"user-provided function given to {name} must be either a Tensor or a tuple of Tensors"
    )
    for given in inputs if isinstance(inputs, tuple) else (inputs,):
        if not isinstance(given, Handle):
            raise ArgumentError(
                f"The inputs given to {name} must be either a Tensor or a tuple of Tensors but the "
                f"given inputs has type {type(given)}.",
                hint="torch.tensor(x) makes a tensor",
            )
    return require_tensors(func, f"The outputs of the {message}, not")


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the derivatives of `func(*inputs)` by `inputs`: axes of the result, then of the input.

    Tuples of results or inputs give tuples. Always in one vectorised pass; `strategy` is
    "reverse-mode" or "forward-mode".

    >>> torch.autograd.functional.jacobian(lambda x: x * x, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    func = _checked("jacobian", func, inputs)
    if strict:
        products.vjp(func, inputs, strict=True)
    found = pg.jacobian(func, inputs, mode=strategy.removesuffix("-mode"))
    return _detach_results(conjugate_values(found), create_graph)


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the second derivatives of `func(*inputs)`, one element, by `inputs`.

    Always in one vectorised pass, forward over reverse mode.

    >>> torch.autograd.functional.hessian(lambda x: torch.sum(x**3), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    func = _checked("hessian", func, inputs)
    if strict:
        products.vjp(func, inputs, strict=True)
    return _detach_results(pg.hessian(func, inputs), create_graph)


def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of `v`, ones by default, with its Jacobian.

    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.vjp(lambda x: x * x, x, torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    func = _checked("vjp", func, inputs)
    value, product = products.vjp(func, inputs, conjugate_values(v), strict=strict)
    if v is None and not _is_single(value):
        raise ArgumentError(
            "The vector v can only be None if the user-provided function returns a single Tensor "
            "with a single element.",
            hint="give v of the shapes of the results",
        )
    return _pair((value, conjugate_values(product)), create_graph)


def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)` and the product of its Jacobian with `v`, ones by default.

    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.jvp(lambda x: x * x, x, torch.ones(2))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    func = _checked("jvp", func, inputs)
    _require_vector(inputs, v)
    return _pair(products.jvp(func, inputs, v, strict=strict), create_graph)


def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)`, one element, and the product of `v` with its Hessian.

    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.vhp(lambda x: torch.sum(x**3), x, torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    func = _checked("vhp", func, inputs)
    _require_vector(inputs, v)
    value, product = products.vhp(func, inputs, v, strict=strict)
    return _pair((value, conjugate_values(product)), create_graph)


def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return `func(*inputs)`, one element, and the product of its Hessian with `v`.

    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.autograd.functional.hvp(lambda x: torch.sum(x**3), x, torch.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    func = _checked("hvp", func, inputs)
    _require_vector(inputs, v)
    value, product = products.hvp(func, inputs, v, strict=strict)
    return _pair((value, conjugate_values(product)), create_graph)


def _is_single(value: Any) -> bool:
    return isinstance(value, Handle) and value.type.size == 1


def _require_vector(inputs: Any, v: Any) -> None:
    """Raise `ArgumentError` for no vector and inputs of more than one element."""
    if v is None and not _is_single(inputs):
        raise ArgumentError(
            "The vector v can only be None if the input to the user-provided function is a single "
            "Tensor with a single element.",
            hint="give v of the shapes of the inputs",
        )


def _pair(found: tuple[Any, Any], create_graph: bool) -> tuple[Any, Any]:
    value, product = found
    return _detach_results(value, create_graph), _detach_results(product, create_graph)


def _detach_results(found: Any, create_graph: bool) -> Any:
    """Detach derivatives unless they are to be differentiated again."""
    if create_graph:
        return found
    if isinstance(found, tuple | list):
        return tuple(_detach_results(item, create_graph) for item in found)
    return found.detach() if isinstance(found, Tensor) else found


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
