"""Functions with derivatives of the user, by the names of `torch.autograd.function`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from primgraph.compat.absent import absent
from primgraph.custom import function as custom
from primgraph.custom.function import Context as FunctionCtx
from primgraph.eager.derivatives.recording import is_on, no_grad
from primgraph.eager.tensor import Tensor
from primgraph.errors import NotDifferentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]


class Function(custom.Function):
    """`pg.Function`, with gradients by complex tensors as torch has them in its `backward`.

    >>> class Square(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * gradient
    ...
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    _conjugated = True
    # Batches of samples are those of `forward` and `backward` themselves.
    generate_vmap_rule = True


class _Once(Function):
    """Identity of gradients whose own derivative is an error."""

    @staticmethod
    def forward(ctx: Any, found: Any, *sources: Any) -> Any:
        return found.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotDifferentiable(
            "trying to differentiate twice a function that was marked with @once_differentiable",
            hint="leave out the decorator: backward is differentiated like other functions",
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `backward` whose results are constants: to differentiate them is an error.

    >>> class Sin(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x.sin()
    ...
    ...     @staticmethod
    ...     @torch.autograd.function.once_differentiable
    ...     def backward(ctx, gradient):
    ...         return gradient * ctx.saved_tensors[0].cos()
    ...
    >>> x = torch.zeros(2, requires_grad=True)
    >>> torch.autograd.grad(Sin.apply(x).sum(), x)
    (tensor([1., 1.]),)
    """

    @wraps(fn)
    def call(ctx: Any, *args: Any) -> Any:
        with no_grad():
            found = fn(ctx, *args)
        given = (*args, *ctx.saved_tensors)
        sources = [a for a in given if isinstance(a, Tensor) and a.requires_grad]
        if not (is_on.get() and sources):
            return found
        if isinstance(found, tuple):
            return tuple(_Once.apply(f, *sources) if _is_float(f) else f for f in found)
        return _Once.apply(found, *sources)

    return call


def _is_float(found: Any) -> bool:
    return isinstance(found, Tensor) and found.type.is_inexact


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
