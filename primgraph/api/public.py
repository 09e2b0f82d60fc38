"""Public derivative functions: dispatch to variables, tensors and functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal, TypeAlias, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from primgraph.api.call_in_world import in_program, is_tensor
from primgraph.api.derivatives.of_functions import Derivative, gradient_of, hessian_of, jacobian_of
from primgraph.api.transformed import A, Array, Aux, B, C, First, H, P, S, Second, Three, Two
from primgraph.api.world import handles_in, world_of
from primgraph.base.providers import late
from primgraph.derivatives import grad as of_variables
from primgraph.derivatives.grad import Gradients, GradOptions
from primgraph.derivatives.request import Seeds, Variables
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.signature import checked_late
from primgraph.operators.call import constant_in_no_grad
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable

if TYPE_CHECKING:
    from primgraph.api.derivatives import of_values
    from primgraph.derivatives.matrices import jacobian as matrices
    from primgraph.eager.derivatives import backward
    from primgraph.eager.tensor import Tensor, Tensors
else:
    of_values = late("primgraph.api.derivatives.of_values")
    matrices = late("primgraph.derivatives.matrices.jacobian")
    backward = late("primgraph.eager.derivatives.backward")


Function: TypeAlias = "Callable[..., Any]"
F = TypeVar("F", bound=Function)


def _as(function: Function) -> Callable[[F], F]:
    """Decorate a dispatcher with the signature of `function`, which it extends."""

    def declare(dispatcher: F) -> F:
        text = dispatcher.__doc__
        wraps(function)(dispatcher)
        dispatcher.__doc__, dispatcher.__module__ = text, __name__
        return dispatcher

    return declare


def _first(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get(name)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, Handle)


def _has_tensors(value: Any) -> bool:
    """Return whether these are tensors: one, or several in a list, tuple or iterator."""
    if isinstance(value, list | tuple):
        return any(is_tensor(item) for item in value)
    return is_tensor(value)


def inputs_as_variables(outputs: Any, inputs: Any) -> Any:
    """Return `inputs` with tensors replaced by their variables in the program of `outputs`."""
    if not _has_tensors(inputs):
        return inputs
    recorder = next((v.recorder for v in handles_in(outputs) if isinstance(v, Variable)), None)
    if recorder is None:
        return inputs
    if is_tensor(inputs):
        return in_program(recorder, inputs)
    return [in_program(recorder, v) if is_tensor(v) else v for v in inputs]


def _all_beside(
    outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of `grad` with the inputs as variables, as the outputs are."""
    inputs = [inputs_as_variables(outputs, v) for v in args[1:2]]
    named = {k: inputs_as_variables(outputs, v) if k == "inputs" else v for k, v in kwargs.items()}
    return (*args[:1], *inputs, *args[2:]), named


def _are_variables(value: Any) -> bool:
    """Return whether a function is called on variables, or on objects that are not arrays."""
    if any(isinstance(item, Variable) for item in handles_in(value)):
        return not isinstance(value, dict)
    listed = value if isinstance(value, list | tuple) and value else [value]
    arrays = (Handle, np.ndarray, np.generic, int, float, list, tuple, dict)
    return not all(isinstance(item, arrays) for item in listed)


@overload
def grad(
    outputs: Callable[Concatenate[A, P], Any],
    argnums: First = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[A, P], A]: ...
@overload
def grad(
    outputs: Callable[Concatenate[A, P], tuple[Any, Aux]],
    argnums: First = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
) -> Derivative[Concatenate[A, P], tuple[A, Aux]]: ...
@overload
def grad(
    outputs: Callable[Concatenate[A, B, P], Any],
    argnums: Second,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[A, B, P], B]: ...
@overload
def grad(
    outputs: Callable[Concatenate[A, B, P], Any],
    argnums: Two,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[A, B, P], tuple[A, B]]: ...
@overload
def grad(
    outputs: Callable[Concatenate[A, B, C, P], Any],
    argnums: Three,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[A, B, C, P], tuple[A, B, C]]: ...
@overload
def grad(
    outputs: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[P, Any]: ...
@overload
def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    no_grad_vars: Tensors | None = None,
    only_inputs: bool = True,
) -> tuple[Any, ...]: ...
# Without `allow_unused`, type checkers assume that no input is unused.
@overload
def grad(
    outputs: Variables,
    inputs: Variable,
    grad_outputs: Seeds = None,
    *,
    allow_unused: bool = True,
    **options: Unpack[GradOptions],
) -> Variable: ...
@overload
def grad(
    outputs: Variables,
    inputs: Sequence[Variable],
    grad_outputs: Seeds = None,
    *,
    allow_unused: Literal[False] = False,
    **options: Unpack[GradOptions],
) -> list[Variable]: ...
@overload
def grad(
    outputs: Variables,
    inputs: Sequence[Variable],
    grad_outputs: Seeds = None,
    *,
    allow_unused: Literal[True],
    **options: Unpack[GradOptions],
) -> list[Variable | None]: ...
@overload
def grad(
    outputs: Variables,
    inputs: Variables,
    grad_outputs: Seeds = None,
    *,
    allow_unused: bool = True,
    **options: Unpack[GradOptions],
) -> Gradients: ...
@_as(of_variables.grad)
@constant_in_no_grad
def grad(*args: Any, **kwargs: Any) -> Any:
    """Return the gradient of a function, of tensors, or of variables of a program.

    **Of a function:** `grad(function, argnums=0, has_aux=False)` returns a function of the same
    arguments: the gradient of `function`, which returns one element, by the argument at position
    `argnums`, in its containers; by several positions, a tuple. Containers are tuples, lists,
    dicts, named tuples, dataclasses, and classes given to `pg.register_container`. Arrays and
    numbers give arrays; tensors give tensors, and so do tensors that require gradients and that it
    finds elsewhere. In a program or a traced function, results are variables. Unused arguments have
    gradient zero. Values found elsewhere are constants of this derivative; nested gradients do
    differentiate by them. With `has_aux` the function returns a value and something else, and the
    result is the gradient and that. The function runs at each call, so Python control flow may
    depend on values; `pg.jit` compiles functions that are called often.

    **Of tensors:** return a tuple with the gradient of `sum_i <grad_outputs[i], outputs[i]>` by
    each of `inputs`, with the arguments and rules of `pg.autograd.grad`, which are torch's.

    **Of variables:** return that gradient as one variable for a single input, a list for a
    sequence; None for an input that no output depends on. It is zeros, at no cost, where the
    derivative is zero everywhere. `grad_outputs` are arrays or variables of the outputs' shapes,
    cast to their dtypes; None stands for ones. Inputs may be intermediate values, each with its
    full gradient; those listed twice count twice. A derivative by one of two equal variables does
    not count the other. A tensor stands for its parameter or input in the program. Values with
    `stop_gradient` set, and those in `no_grad_vars`, are constants; as inputs they count as unused.
    An unused input is an error with `allow_unused=False`, and has zeros with
    `materialize_grads=True`, even if all are unused, which is an error otherwise. `strict_scalar`
    requires a seed for each output that has not exactly one element. `is_grads_batched` takes seeds
    with a leading axis of size N, and returns results of shape `(N, *x.shape)`, in one pass.
    `holomorphic` returns the complex derivative of holomorphic outputs. Other options have no
    effect.

    The gradient of a real output by a complex `z = x + iy` is `df/dx - i df/dy`, as in JAX. Complex
    outputs need seeds, or `holomorphic`. Results can be differentiated again.

    Raises `NotDifferentiable` for dtypes other than floats, if no output depends on any input, or
    for an unused input with `allow_unused=False`; `NotScalarError`, `ArgumentError`, `ShapeError`
    and `OptionError` for values, seeds and options that do not fit.

    >>> pg.grad(lambda x: pg.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> pg.grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 5.0)
    (array(5.), array(2.))
    """
    outputs = _first("outputs", args, kwargs)
    if _is_function(outputs):
        return gradient_of(*args, **kwargs)
    if _has_tensors(outputs):
        return backward.grad(*args, **kwargs)
    return _gradient_of_variables(outputs, args, kwargs)


def _gradient_of_variables(outputs: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return `grad` of variables. Raises `ArgumentError` for one argument of another kind."""
    if len(args) + len(kwargs) == 1 and not isinstance(outputs, Variable):
        raise ArgumentError(
            f"grad takes a function, or outputs and inputs, not {type(outputs).__name__} alone",
            hint="pg.grad(f)(x) is the gradient of f at x; pg.grad(y, x) is that of a variable y",
        )
    args, kwargs = _all_beside(outputs, args, kwargs)
    return of_variables.grad(*args, **kwargs)


@overload
def forward_grad(
    outputs: Tensor, inputs: Tensors, grad_inputs: Any = None, *, order: int = 1
) -> Tensor: ...
@overload
def forward_grad(
    outputs: Sequence[Tensor],
    inputs: Tensors,
    grad_inputs: Any = None,
    *,
    order: int = 1,
) -> tuple[Tensor | None, ...]: ...
@overload
def forward_grad(
    outputs: Variable, inputs: Variables, grad_inputs: Seeds = None, *, order: int = 1
) -> Variable: ...
@overload
def forward_grad(
    outputs: Sequence[Variable], inputs: Variables, grad_inputs: Seeds = None, *, order: int = 1
) -> list[Variable]: ...
@overload
def forward_grad(
    outputs: Variables, inputs: Variables, grad_inputs: Seeds = None, *, order: int = 1
) -> Gradients: ...
@_as(of_variables.forward_grad)
@constant_in_no_grad
def forward_grad(outputs: Any, inputs: Any, grad_inputs: Any = None, *, order: int = 1) -> Any:
    """Compute the directional derivatives of `outputs` along `grad_inputs`, by forward mode.

    Return one result for each output, of its type, summed over the inputs: alone for a single
    output, else in a list, for tensors in a tuple; None for an output that depends on no input.
    `grad_inputs` are arrays, variables or tensors of the inputs' shapes, cast to their dtypes; ones
    by default. Values with `stop_gradient` set are constants.

    `order` above one returns the derivative of that order along the same direction, in one pass of
    Taylor mode whose equations grow as the square of the order. `pg.taylor` returns all orders, and
    `pg.jet` derivatives along a curve.

    Results can be differentiated again. Raises as `grad` does, except that outputs may be
    independent of all inputs; `OptionError` for an order below one.

    >>> with pg.Program() as program:
    ...     x = pg.data("x", (2,))
    ...     slope = pg.forward_grad(x**2, x)
    >>> pg.Executor().run(program, {"x": [1.0, 2.0]}, [slope])
    [array([2., 4.])]
    """
    if _has_tensors(outputs):
        order = of_variables.checked_order("forward_grad", order)
        return of_values.forward_grad(outputs, inputs, grad_inputs, order)
    inputs = inputs_as_variables(outputs, inputs)
    return of_variables.forward_grad(outputs, inputs, grad_inputs, order=order)


@overload
def jacobian(
    y: Callable[Concatenate[NDArray[S], P], Array],
    *,
    mode: str | None = None,
    argnums: First = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[NDArray[S], P], NDArray[S]]: ...
@overload
def jacobian(
    y: Callable[Concatenate[H, P], H],
    *,
    mode: str | None = None,
    argnums: First = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[H, P], H]: ...
@overload
def jacobian(
    y: Callable[P, Any],
    *,
    mode: str | None = None,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[P, Any]: ...
@overload
def jacobian(
    y: Callable[[NDArray[S]], Array],
    x: NDArray[S],
    *,
    mode: str | None = None,
    holomorphic: bool = False,
) -> NDArray[S]: ...
@overload
def jacobian(
    y: Callable[[H], H], x: H, *, mode: str | None = None, holomorphic: bool = False
) -> H: ...
@overload
def jacobian(y: H, x: H, *, mode: str | None = None, holomorphic: bool = False) -> H: ...
@overload
def jacobian(y: Any, x: Any, *, mode: str | None = None, holomorphic: bool = False) -> Any: ...
@checked_late
@constant_in_no_grad
def jacobian(
    y: Any,
    x: Any = None,
    *,
    mode: str | None = None,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Any:
    """Compute the Jacobian of `y` by `x`, of shape `y.shape + x.shape`.

    `y` is a variable or tensor that depends on `x`; sequences of outputs or inputs give a tuple, or
    tuples of tuples. Or `y` is a function, and `x` its argument or a sequence of its arguments:
    variables, tensors or arrays, as in `vjp`. `mode` is "reverse" or "forward", by default the one
    with fewer directions, which are computed in one vectorized pass. Elements without a path are 0.

    Without `x`, return the function that computes the Jacobian of the function `y`, with the
    `argnums` and `has_aux` of `pg.jacrev` and `pg.jacfwd`. A Python int as `x` beside a function is
    an `ArgumentError`, since it might be meant as `argnums`.

    Raises the errors of `Jacobian` and `pg.grad`, and `OptionError` for another mode.

    >>> pg.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
    array([[2., 1., 0.],
           [0., 3., 2.]])
    """
    mode = matrices.checked_mode(mode)
    if x is None and _is_function(y):
        return jacobian_of(y, mode, argnums, has_aux, holomorphic)
    if _is_function(y) and not isinstance(x, Variable):
        return _derivative_at(partial(jacobian_of, holomorphic=holomorphic), y, x, mode)
    if _has_tensors(y):
        return of_values.jacobian(y, x, mode, holomorphic)
    return matrices.jacobian(y, x, mode=mode, holomorphic=holomorphic)


def _derivative_at(
    transform: Callable[..., Derivative[..., Any]], function: Function, x: Any, *options: Any
) -> Any:
    """Return a derivative of a function by all of its arguments `x`."""
    if type(x) is int:
        name = getattr(transform, "func", transform).__name__.removesuffix("_of")
        raise ArgumentError(
            f"{name}: {x} beside a function may be the number of an argument or the point",
            hint=f"write pg.{name}(f, argnums={x}) for the one, pg.{name}(f)({x}.0) for the other",
        )
    if isinstance(x, list | tuple):
        return transform(function, *options, tuple(range(len(x))), False)(*x)
    return transform(function, *options, 0, False)(x)


@checked_late
@constant_in_no_grad
def batched_jacobian(y: Any, x: Any, *, check: bool = True, holomorphic: bool = False) -> Any:
    """Compute the Jacobian of each sample of `y` by the same sample of `x`.

    Axis 0 is the batch of independent samples. The shape is `(B, *y.shape[1:], *x.shape[1:])`;
    sequences give tuples as in `jacobian`. `y` and `x` are variables or tensors, or `y` is a
    function, and `x` its argument or a sequence of its arguments: variables, tensors, or arrays,
    which give arrays. Raises `MixedSamplesError` where samples may mix, unless `check` is False;
    see `Jacobian`.

    >>> with pg.Program() as program:
    ...     x = pg.data("x", (4, 2))
    ...     jacobian = pg.batched_jacobian(x**2, x)
    >>> jacobian.shape
    (4, 2, 2)
    """
    if _is_function(y) and not _are_variables(x):
        world = world_of(x)
        convert, is_listed = world.convert_leaf, isinstance(x, list | tuple)
        brought: Any = [*map(convert, x)] if is_listed else convert(x)
        found = matrices.batched_jacobian(y, brought, check=check, holomorphic=holomorphic)
        return world.convert_results(found)
    if _has_tensors(y):
        return of_values.batched_jacobian(y, x, check, holomorphic)
    return matrices.batched_jacobian(y, x, check=check, holomorphic=holomorphic)


@overload
def hessian(
    y: Callable[Concatenate[NDArray[S], P], Array],
    *,
    argnums: First = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[NDArray[S], P], NDArray[S]]: ...
@overload
def hessian(
    y: Callable[Concatenate[H, P], H],
    *,
    argnums: First = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
) -> Derivative[Concatenate[H, P], H]: ...
@overload
def hessian(
    y: Callable[P, Any],
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[P, Any]: ...
@overload
def hessian(y: Callable[[NDArray[S]], Array], x: NDArray[S]) -> NDArray[S]: ...
@overload
def hessian(y: Callable[[H], H], x: H) -> H: ...
@overload
def hessian(y: H, x: H) -> H: ...
@overload
def hessian(y: Any, x: Any) -> Any: ...
@checked_late
@constant_in_no_grad
def hessian(
    y: Any,
    x: Any = None,
    *,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Any:
    """Compute the Hessian of `y`, one element, by `x`, of shape `x.shape + x.shape`.

    `y` is a variable or tensor that depends on `x`; a sequence of inputs gives a tuple of tuples.
    Or `y` is a function, and `x` its argument or a sequence of its arguments, as in `vjp`.

    Without `x`, return the function that computes the Hessian of the function `y`: containers of
    the arguments within containers of the arguments, with the `argnums` and `has_aux` of `pg.grad`.
    A Python int as `x` beside a function is an `ArgumentError`.

    Raises `NotScalarError` for more than one element; otherwise as `jacobian`.

    >>> pg.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    if x is None and _is_function(y):
        return hessian_of(y, argnums, has_aux, holomorphic)
    if _is_function(y) and not isinstance(x, Variable):
        return _derivative_at(partial(hessian_of, holomorphic=holomorphic), y, x)
    if _has_tensors(y):
        return of_values.hessian(y, x)
    return matrices.hessian(y, x)
