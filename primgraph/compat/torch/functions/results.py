"""Rows of torch's functions, and results that a caller gives the tensor for (`out=`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, TypeVar

from primgraph.eager.derivatives.reverse import unshared_node
from primgraph.eager.inplace.views import share_computed
from primgraph.eager.node import array_node
from primgraph.eager.run import compute
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, DTypeError, NotDifferentiable, UnsupportedDTypeError
from primgraph.numpy.changing import ChangingArray
from primgraph.operators import astype
from primgraph.operators.handle import Handle
from primgraph.operators.names import define

Function = TypeVar("Function", bound=Callable[..., Any])
_KINDS = "biufc"


def store_result(out: Any, found: Any) -> Any:
    """Write a result, or several, to the tensors that the caller gives, and return these.

    Tensors of another shape are resized. Raises `DTypeError` for a dtype of a lower kind, and
    `NotDifferentiable` for a tensor that requires a gradient.
    """
    if isinstance(found, tuple):
        return type(out)(store_result(o, f) for o, f in zip(out, found, strict=True))
    if out.requires_grad or (isinstance(found, Tensor) and found.requires_grad):
        raise NotDifferentiable(
            "functions with out=... arguments don't support automatic differentiation, but one of "
            "the arguments requires grad.",
            hint="leave out= out, or compute within no_grad()",
        )
    kinds = [_KINDS.index("i" if d.kind == "u" else d.kind) for d in (found.dtype, out.dtype)]
    if kinds[0] > kinds[1]:
        raise DTypeError(f"a result of {found.dtype} cannot be stored in out= of {out.dtype}")
    if found.shape != out.shape:
        out.resize_from(found.astype(out.dtype))
        return out
    return out.copy_(found)


def array_like(input: Tensor, array: Any) -> Any:
    """Return an array as a tensor of the family of `input`."""
    return input.family(array_node(array))


def in_family(input: Any, found: Any) -> Any:
    """Return a tensor, or several, as tensors of the family of `input`."""
    if isinstance(found, tuple):
        return tuple(in_family(input, f) for f in found)
    if isinstance(found, Tensor) and isinstance(input, Tensor) and found.family is not input.family:
        return input.family(unshared_node(found.node))
    return found


def computed(found: Any) -> Any:
    """Return a result whose elements are computed now, so that its errors are raised here."""
    if isinstance(found, Tensor):
        compute([found.node])
    return found


def takes_out(function: Function) -> Function:
    """Return `function` with a keyword argument `out`, for the tensor of the result."""

    @wraps(function)
    def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        return found if out is None else store_result(out, found)

    return call  # type: ignore[return-value]


def define_functions(own: dict[str, Any], text: str, world: str = "torch") -> list[str]:
    """Define the functions of rows in `own`, and return their names.

    They take `out`, and NumPy's names of `dim` and `keepdim` as torch does.
    """
    also = {"axis": "dim", "keepdims": "keepdim"}
    return define(world, own, text, also=also, store=store_result, refuse=refuse_plain)


def over_axes(dim: Any) -> Any:
    """Return the axes of a reduction: no axes mean all of them in torch."""
    return None if isinstance(dim, list | tuple) and not dim else dim


def require_floats(name: str, input: Any, dtype: Any = None) -> Any:
    """Return `input` in the dtype. Raises `UnsupportedDTypeError` for integers."""
    found = input if dtype is None else astype(input, dtype)
    if found.type.dtype.kind not in "fc":
        raise UnsupportedDTypeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point "
            f"or complex dtype. Got: {found.dtype}",
            hint=f"{name}(x.float()) computes in float32",
        )
    return found


def require_tensors(name: str, given: Any) -> Any:
    """Return a list of tensors. Raises `ArgumentError` for a tensor, or a number among them."""
    if isinstance(given, Handle):
        raise ArgumentError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
            hint=f"torch.{name}([x, y]) joins two tensors, and x.unbind() is the list of slices",
        )
    for place, item in enumerate(given if isinstance(given, list | tuple) else ()):
        if type(item) in (float, int, bool, complex):
            raise ArgumentError(
                f"expected Tensor as element {place} in argument 0, but got {type(item).__name__}",
                hint="torch.tensor(x) makes a tensor",
            )
    return given


def as_fixed_view(found: Any, input: Any, function: Callable[[Any], Any]) -> Any:
    """Return `found`, which is `function(input)`, as a view of `input` that is not written to."""
    if isinstance(found, ChangingArray):
        found.refusal = "this view shares elements of another tensor, and is not written to here"
        return found
    return share_computed(found, input, function)


def refuse_plain(name: str, given: Any) -> NoReturn:
    """Raise `ArgumentError` for a number or a list in place of a tensor."""
    raise ArgumentError(
        f"{name}(): argument 'input' (position 1) must be Tensor, not {type(given).__name__}",
        hint="torch.tensor(x) makes a tensor",
    )
