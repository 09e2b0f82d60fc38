"""Forward mode by dual tensors, by the names of `torch.autograd.forward_ad`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from primgraph.api.public import forward_grad
from primgraph.compat.absent import absent
from primgraph.eager.derivatives.recording import enable_grad
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, DTypeError, ShapeError

__all__ = ["UnpackedDualTensor", "dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, which is None for what depends on no dual tensor."""

    primal: Any
    tangent: Any


# Dual tensors with their tangents, of each level that was entered.
_levels: list[list[tuple[Any, Any]]] = []


def enter_dual_level() -> int:
    """Enter a level of forward mode, and return its number; there is one at a time.

    >>> level = torch.autograd.forward_ad.enter_dual_level()
    >>> torch.autograd.forward_ad.exit_dual_level(level=level)
    """
    if _levels:
        raise ArgumentError("Nested forward mode AD is not supported at the moment")
    _levels.append([])
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave a level of forward mode.

    >>> torch.autograd.forward_ad.enter_dual_level()
    0
    >>> torch.autograd.forward_ad.exit_dual_level()
    """
    if not _levels:
        raise ArgumentError("there is no level of forward mode to leave")
    _levels.pop()


@contextmanager
def dual_level() -> Iterator[int]:
    """Compute tangents of what is computed of dual tensors in a block.

    >>> import primgraph.compat.torch.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(torch.tensor(2.0), torch.tensor(1.0))
    ...     fwAD.unpack_dual(x**3).tangent
    tensor(12.)
    """
    yield enter_dual_level()
    exit_dual_level()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
    """Return a tensor that has a tangent in this level; see `dual_level`.

    Raises `ArgumentError` outside of a level, `ShapeError` and `DTypeError` for tangents of another
    type.

    >>> import primgraph.compat.torch.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     fwAD.unpack_dual(fwAD.make_dual(torch.tensor(2.0), torch.tensor(1.0))).tangent
    tensor(1.)
    """
    if not _levels:
        raise ArgumentError("make_dual is called within dual_level()")
    if not tensor.type.is_inexact:
        raise DTypeError(f"Expected tensor to be floating point or complex, but got: {tensor.type}")
    if tangent.shape != tensor.shape:
        raise ShapeError(f"the tangent of {tensor.type} has its shape, and is not {tangent.type}")
    with enable_grad():
        dual = tensor.clone() if tensor.requires_grad else tensor.detach().requires_grad_()
    _levels[-1].append((dual, tangent))
    return dual


def unpack_dual(tensor: Any, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor and its tangent; see `dual_level`.

    >>> torch.autograd.forward_ad.unpack_dual(torch.ones(1)).tangent is None
    True
    """
    duals = _levels[-1] if _levels else []
    if not duals or not (isinstance(tensor, Tensor) and tensor.requires_grad):
        return UnpackedDualTensor(tensor, None)
    with enable_grad():
        tangent = forward_grad(tensor, [d for d, _ in duals], [t for _, t in duals])
    kept = any(d.grad_fn is not None or t.requires_grad for d, t in duals)
    if kept or tangent is None:
        return UnpackedDualTensor(tensor, tangent)
    return UnpackedDualTensor(tensor.detach(), tangent.detach())


if not TYPE_CHECKING:
    __getattr__ = absent(__name__)


def __dir__() -> list[str]:
    return sorted(__all__)
