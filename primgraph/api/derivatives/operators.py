"""Differential operators of variables, of tensors, and of functions of one array."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, final

from primgraph.api.arguments import call_differentiated
from primgraph.api.call_in_world import in_program
from primgraph.api.derivatives.of_values import nodes_of, zeros
from primgraph.api.transformed import Transformed
from primgraph.api.world import InProgram, as_tensor, world_of
from primgraph.base.grad_mode import enable_tracking
from primgraph.derivatives import differential_operators as of_variables
from primgraph.derivatives.request import require_scalar
from primgraph.eager.derivatives import recording
from primgraph.eager.derivatives.other_modes import (
    answers,
    argument,
    dependent_nodes,
    depends_beyond,
)
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, NotDifferentiable, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import checked_late
from primgraph.ir.graph import Value
from primgraph.ir.types import TensorType
from primgraph.operators.call import constant_in_no_grad
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable, handle_of
from primgraph.primitives.shapes import reshape


@checked_late
@constant_in_no_grad
def hessian_diagonal(y: Any, x: Any = None, is_batched: bool = False, *, check: bool = True) -> Any:
    """Compute the diagonal of the Hessian of `y`, one element, by `x`.

    `y` and `x` are variables or tensors. Or `y` is a function of one array, and `x` its argument;
    without `x`, return the function that computes the diagonal. The result has the type of `x`.
    With `is_batched`, axis 0 is the batch of independent samples, and `y` has shape `(B,)` or `(B,
    1)`. That samples do not mix is checked by the structure of the program; for tensors, when the
    result is read. `check=False` skips the check.

    The Hessian is never formed: the second derivative along each axis is taken by forward over
    forward mode, in one vectorized pass with a direction for each element of a sample; in one pass
    for the whole if the gradient is elementwise.

    Raises `ArgumentError` for anything but one `y` and one `x`, `NotScalarError` for a `y` of
    several elements, `NotDifferentiable` for integers, `MixedSamplesError` if samples may mix.

    >>> pg.hessian_diagonal(lambda x: pg.sum(x**3))(np.array([1.0, 2.0]))
    array([ 6., 12.])
    """
    return differential("hessian_diagonal", y, x, is_batched, check)


@checked_late
@constant_in_no_grad
def laplacian(y: Any, x: Any = None, is_batched: bool = False, *, check: bool = True) -> Any:
    """Compute the sum of the unmixed second derivatives of `y`, one element, by `x`.

    `y` and `x` are variables or tensors, or a function and its argument, as in `hessian_diagonal`.
    The result has the type of `y`. With `is_batched`, axis 0 is the batch of independent samples,
    and `y` and the result have shape `(B,)` or `(B, 1)`; for `check` see `hessian_diagonal`.

    No Hessian is formed; operations that are linear in second derivatives apply to their sum.
    Raises as `hessian_diagonal` does.

    >>> pg.laplacian(lambda x: pg.sum(x**3))(np.array([1.0, 2.0]))
    array(18.)
    """
    return differential("laplacian", y, x, is_batched, check)


@checked_late
@constant_in_no_grad
def divergence(y: Any, x: Any = None, is_batched: bool = False, *, check: bool = True) -> Any:
    """Compute the divergence of `y`: the sum of the diagonal of its Jacobian by `x`.

    `y` and `x` are variables or tensors of one shape, or a function and its argument, as in
    `hessian_diagonal`. The result is a scalar; with `is_batched`, axis 0 is the batch of
    independent samples, and the result has shape `(B,)`. For `check` see `hessian_diagonal`.

    One vectorized forward pass takes all directions, of which the diagonal is kept. Of a final
    matrix product only the diagonal is computed. An elementwise `y` needs one direction.

    Raises `ArgumentError` for anything but one `y` and one `x`, `ShapeError` for different shapes,
    `NotDifferentiable` for integers, `MixedSamplesError` if samples may mix.

    >>> pg.divergence(lambda x: x**2)(np.array([1.0, 2.0]))
    array(6.)
    """
    return differential("divergence", y, x, is_batched, check)


_OF_VARIABLES: dict[str, Callable[..., Any]] = {
    "hessian_diagonal": of_variables.hessian_diagonal,
    "laplacian": of_variables.laplacian,
    "divergence": of_variables.divergence,
}


def differential(
    name: str, y: Any, x: Any, is_batched: bool, check: bool, orders: Any = None
) -> Any:
    """Apply the differential operator of that name to variables, tensors or a function.

    With `orders` the result is a list, with one entry for each of them.
    """
    if callable(y) and not isinstance(y, Handle):
        operator = Operator(name, y, is_batched, check, orders)
        return operator if x is None else operator(x)
    if isinstance(y, Tensor) or isinstance(x, Tensor):
        return _apply_to_tensors(name, y, x, is_batched, check, orders)
    found = _OF_VARIABLES.get(name) or getattr(import_module(_PARTIALS), name)
    return found(y, x, *([] if orders is None else [orders]), is_batched, check=check)


# Module that is imported on first use.
_PARTIALS = "primgraph.derivatives.partials"


@final
class Operator(Transformed[[Any], Any]):
    """Differential operator of a function of one array, as a function of that array."""

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        is_batched: bool,
        check: bool,
        orders: Any = None,
    ) -> None:
        super().__init__(name, function)
        self._options = is_batched, check, orders

    def __reduce__(self) -> tuple[Any, ...]:
        return Operator, (self.name, self.function, *self._options)

    def __call__(self, x: Any) -> Any:
        world = world_of(x)
        if isinstance(world, InProgram):
            variable = _distinct_copy(in_program(world.recorder, x))
            with enable_tracking():
                y = call_differentiated(self.function, variable)
            return world.convert_results(differential(self.name, y, variable, *self._options))
        start = as_tensor(x)
        if start.dtype.kind != "f":
            raise NotDifferentiable(
                f"{self.name}: x is {start.type}, and only floats have derivatives"
            )
        node = argument(start.node)
        with recording.track_all():
            y = call_differentiated(self.function, start.family(node))
        with recording.enable_grad():
            if not isinstance(y, Tensor):
                raise ArgumentError(f"{self.name}: the function returned {y!r:.80}, not a tensor")
            found = _apply_to_tensors(self.name, y, start.family(node), *self._options)
        listed = isinstance(found, list)
        is_tracked = recording.is_on.get() and depends_beyond([y.node], [node])
        kept = [f if is_tracked else f.detach() for f in (found if listed else [found])]
        return world.convert_results(kept if listed else kept[0])


def _distinct_copy(x: Variable) -> Variable:
    """Return the same elements as a distinct variable, by reshapes that no other variable has."""
    builder, shape = x.recorder, x.shape
    assert isinstance(builder, Builder)
    value: Value = x.value
    (value,) = builder.emit(reshape, [value], {"shape": (1, *shape)}, distinct=True)
    (value,) = builder.emit(reshape, [value], {"shape": shape})
    return handle_of(builder, value)


def _apply_to_tensors(
    name: str, y: Any, x: Any, is_batched: bool, check: bool, orders: Any = None
) -> Any:
    for role, item in (("y", y), ("x", x)):
        if not isinstance(item, Tensor):
            raise ArgumentError(f"{name} takes one tensor as {role}, not {item!r:.60}")
    indices = None
    if orders is not None:
        size = x.shape[-1] if x.shape else 0
        indices = tuple(import_module(_PARTIALS).checked_indices(orders, size))
    type = _type_of(name, y, x, is_batched)
    ends, starts = nodes_of(name, y, x)
    count = 1 if indices is None else len(indices)
    if ends[0] not in dependent_nodes(ends, starts):
        rows = [x.family(zeros(type)) for _ in range(count)]
        rows = [y if indices and not any(indices[i]) else row for i, row in enumerate(rows)]
        return rows[0] if indices is None else rows
    options: dict[str, Any] = {"is_batched": is_batched, "check": check}
    if indices is not None:
        options["orders"] = indices
    nodes = answers(
        name, ends, starts, [type] * count, tracked=recording.is_on.get(), options=options
    )
    found = [x.family(node) for node in nodes]
    return found[0] if indices is None else found


def _type_of(name: str, y: Tensor, x: Tensor, is_batched: bool) -> TensorType:
    """Return the type of the result; raises `ShapeError` for tensors that do not fit."""
    if is_batched and (not x.shape or x.shape[:1] != y.shape[:1]):
        raise ShapeError(f"{name}: {y.type} and {x.type} have not the same samples")
    if name == "divergence":
        if y.shape != x.shape:
            raise ShapeError(f"divergence takes equal shapes, not {y.type} and {x.type}")
        return y.type.with_shape(y.shape[: int(is_batched)])
    if name == "partials":
        return y.type
    require_scalar(name, y, int(is_batched))
    return x.type if name == "hessian_diagonal" else y.type
