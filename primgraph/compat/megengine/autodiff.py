"""Derivatives by the names that they have in `megengine.autodiff`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

from primgraph.compat.absent import absent
from primgraph.custom.function import Function as _Function
from primgraph.eager.derivatives.backward import grad
from primgraph.eager.derivatives.manager import GradManager
from primgraph.errors import MissingMethodError

__all__ = ["Function", "GradManager", "grad"]


class Function:
    """A function with its own derivative: a subclass has methods `forward` and `backward`.

    `forward(*inputs)` gives a tensor, or several in a tuple, and keeps what `backward` needs as
    attributes; `backward(*gradients)` gets one for each, None for one that does not matter, and
    gives one, or None, for each input. An instance is called once.

    >>> class Square(megengine.autodiff.Function):
    ...     def forward(self, x):
    ...         self.x = x
    ...         return x * x
    ...
    ...     def backward(self, gradient):
    ...         return 2 * self.x * gradient
    ...
    >>> w = megengine.Parameter([1.0, 2.0])
    >>> with megengine.autodiff.GradManager().attach([w]) as manager:
    ...     _ = manager.backward(Square()(w).sum())
    ...
    >>> w.grad
    Tensor([2. 4.], device=xpux:0)
    """

    def forward(self, *inputs: Any) -> Any:
        """Compute the value; subclasses define it."""
        raise MissingMethodError(f"{type(self).__name__} has no forward")

    def backward(self, *gradients: Any) -> Any:
        """The gradients by its inputs."""
        raise MissingMethodError(f"{type(self).__name__} has no backward")

    def __call__(self, *inputs: Any) -> Any:
        """Apply the function: `forward`, with the derivative that `backward` defines."""
        return _Called.apply(self, *inputs)


@final
class _Called(_Function):
    """The methods of an instance as static ones."""

    @staticmethod
    def forward(ctx: Any, function: Function, *inputs: Any) -> Any:
        ctx.function = function
        ctx.set_materialize_grads(False)
        return function.forward(*inputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        found = ctx.function.backward(*gradients)
        return (None, *found) if isinstance(found, list | tuple) else (None, found)


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
