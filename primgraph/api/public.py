"""The public names of derivatives: of variables, of tensors, and of functions of either."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, Literal, TypeAlias, TypeVar, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from primgraph.api.call_in_world import in_program
from primgraph.api.derivatives import of_values, operators, products
from primgraph.api.derivatives.lazy_matrices import matrix_of
from primgraph.api.derivatives.of_functions import Derivative, gradient_of, hessian_of, jacobian_of
from primgraph.api.transformed import (
    A,
    Array,
    Aux,
    B,
    C,
    First,
    H,
    P,
    S,
    Second,
    Three,
    Two,
)
from primgraph.api.world import handles_in, world_of
from primgraph.derivatives import grad as of_variables
from primgraph.derivatives.grad import Gradients, GradOptions
from primgraph.derivatives.matrices import jacobian as matrices
from primgraph.derivatives.request import Seeds, Variables
from primgraph.eager.derivatives.backward import Tensors
from primgraph.eager.derivatives.backward import grad as grad_of_tensors
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError
from primgraph.ir.frontend.signature import checked_late
from primgraph.operators.call import constant_in_no_grad
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable

Function: TypeAlias = "Callable[..., Any]"
matrices.makers[Tensor] = matrix_of
F = TypeVar("F", bound=Function)


def _as(function: Function) -> Callable[[F], F]:
    """Let a function take what `function` takes of variables, and something else besides."""

    def declare(dispatcher: F) -> F:
        text = dispatcher.__doc__
        wraps(function)(dispatcher)
        dispatcher.__doc__ = text
        dispatcher.__module__ = __name__
        return dispatcher

    return declare


def _first(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get(name)


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, Handle)


def _has_tensors(value: Any) -> bool:
    """Whether these are tensors: one, or several in a list, tuple or iterator."""
    if isinstance(value, list | tuple):
        return any(isinstance(item, Tensor) for item in value)
    return isinstance(value, Tensor)


def beside(outputs: Any, inputs: Any) -> Any:
    """`inputs`, with what stands for tensors in the program that `outputs` are variables of."""
    if not _has_tensors(inputs):
        return inputs
    recorder = next((v.recorder for v in handles_in(outputs) if isinstance(v, Variable)), None)
    if recorder is None:
        return inputs
    if isinstance(inputs, Tensor):
        return in_program(recorder, inputs)
    return [in_program(recorder, v) if isinstance(v, Tensor) else v for v in inputs]


def _are_variables(value: Any) -> bool:
    """Whether a function is called on variables, or on nothing that is an array."""
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
# Where nobody says that inputs may be unused, checkers of types take it that none is.
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
    """The gradient of a function, of tensors, or of variables of a program.

    **Of a function:** `grad(function, argnums=0, has_aux=False)` is the function of the same
    arguments that gives the gradient of `function`, of one element, by its argument at position
    `argnums`: something like that argument, which is an array or a number, or a container of such;
    a tuple for a tuple of positions. Containers are tuples, lists, dicts, named tuples,
    dataclasses, and what `pg.register_container` knows. For arrays and numbers it gives arrays,
    for tensors, or where the function finds tensors that require gradients, tensors, and for
    variables, or where a program is built or a function traced, variables. An argument that does
    not matter has zeros. What the function finds elsewhere is constant for this derivative, but
    not for others: gradients of gradients may stand in each other. With `has_aux` the function
    returns the value and something else, and this gives the gradient and that. The function is
    called each time, so that Python may decide by what it computes; for functions that are called
    often there is `pg.jit`.

    **Of tensors:** with torch's arguments and rules, as `pg.autograd.grad`, a tuple with the
    gradient of `sum_i <grad_outputs[i], outputs[i]>` by each of `inputs`.

    **Of variables:** the gradient of `sum_i <grad_outputs[i], outputs[i]>` with respect to
    `inputs`. One result of the input's type for each input, alone for a single input, in a list
    for a sequence; None for an input that no output depends on. Zeros, which cost nothing, where
    an output depends on it and the derivative is zero everywhere, as for the third derivative of
    `x**2`: a derivative counts as a function of all that the outputs depend on. Outputs that no
    input reaches, beside others that are reached, contribute nothing. `grad_outputs` are arrays
    or variables of the outputs' shapes, cast to their dtypes; one that is None, or all by
    default, are ones (so that outputs need not be scalars).

    Inputs may be intermediate values: each gets its full gradient, also beside another one that
    it is computed from. Outputs or inputs listed twice count twice. A derivative by one of two
    equal variables, such as `a = x * 2` and `b = x * 2`, does not count the other.

    Inputs may be tensors that the outputs were computed with: what stands for them there counts,
    a parameter of the program, or in a function that is compiled an input of it.

    Values with `stop_gradient` set, and those in `no_grad_vars`, are constants: nothing goes
    through them, and as inputs they count as unused.

    - `allow_unused=False` makes an unused input an error.
    - `materialize_grads=True` gives zeros for unused inputs, also where all outputs are
      independent of all inputs, which is an error otherwise.
    - `strict_scalar=True` asks for a seed for each output that has not exactly one element.
    - `is_grads_batched=True` takes seeds with one more leading axis, of one extent N for all,
      and gives results of shape `(N, *x.shape)`, all N in one vectorised pass. None still stands
      for ones, for each of the N.
    - `holomorphic=True`, of functions and of variables, says that complex outputs are holomorphic
      in complex inputs, and gives their complex derivative.
    - `retain_graph`, `create_graph` and `only_inputs` are taken as for tensors, and change
      nothing for variables: a program keeps all that was recorded, its derivatives can be
      differentiated, and no other variable gets a gradient.

    The gradient of a real output by a complex `z = x + iy` is `df/dx - i df/dy`, as in JAX and
    autograd; complex outputs take a seed each, or `holomorphic`.

    Results are variables of the same program and can be differentiated again.

    Raises `NotDifferentiable` if an input or output is not of a float dtype, if no output
    depends on any input, or an input is unused and must not be; `NotScalarError` for a function
    of more elements; `ArgumentError` for arguments of other kinds, with the place in a container;
    `ShapeError` for seeds that do not fit; `OptionError`, a ValueError, for `materialize_grads`
    with `allow_unused=False`.

    >>> pg.grad(lambda x: pg.sum(x**3))(np.array([1.0, 2.0]))
    array([ 3., 12.])
    >>> pg.grad(lambda x, y: x * y, argnums=(0, 1))(2.0, 5.0)
    (array(5.), array(2.))
    """
    outputs = _first("outputs", args, kwargs)
    if _is_function(outputs):
        return _gradient_of(*args, **kwargs)
    if _has_tensors(outputs):
        return grad_of_tensors(*args, **kwargs)
    if len(args) > 1:
        args = (outputs, beside(outputs, args[1]), *args[2:])
    elif "inputs" in kwargs:
        kwargs["inputs"] = beside(outputs, kwargs["inputs"])
    return of_variables.grad(*args, **kwargs)


@checked_late
def _gradient_of(
    outputs: Function,
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Derivative[..., Any]:
    return gradient_of(outputs, argnums, has_aux, holomorphic)


# What messages call it.
_gradient_of.__wrapped__.__qualname__ = "grad"  # type: ignore[attr-defined]


@overload
def forward_grad(
    outputs: Tensor, inputs: Tensors, grad_inputs: Any = None, *, order: int = 1
) -> Tensor: ...
@overload
def forward_grad(
    outputs: Sequence[Tensor], inputs: Tensors, grad_inputs: Any = None, *, order: int = 1
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
    """The directional derivatives of `outputs` along `grad_inputs`, by forward mode.

    One result of the output's type for each output, summed over all inputs; alone for a single
    output, in a list for a sequence, of tensors in a tuple; None for an output that depends on no
    input. `grad_inputs` are arrays, variables or tensors of the inputs' shapes, cast to their
    dtypes, ones by default. Nothing goes through values with `stop_gradient` set.

    With an `order` above one, the derivative of that order along the same direction, by Taylor mode
    in one pass, whose equations grow as the square of the order; `pg.taylor` gives those of all
    orders up to one, and `pg.jet` those along a curve.

    Results are variables of the same program, or tensors, and can be differentiated again. Raises
    as `grad` does, except that an output may be independent of all inputs; `OptionError` for an
    order below one.

    >>> with pg.Program() as program:
    ...     x = pg.data("x", (2,))
    ...     slope = pg.forward_grad(x**2, x)
    >>> pg.Executor().run(program, {"x": [1.0, 2.0]}, [slope])
    [array([2., 4.])]
    """
    if _has_tensors(outputs):
        order = of_variables.checked_order("forward_grad", order)
        return of_values.forward_grad(outputs, inputs, grad_inputs, order)
    return of_variables.forward_grad(outputs, beside(outputs, inputs), grad_inputs, order=order)


@checked_late
@constant_in_no_grad
def vjp(function: Function, inputs: Any, v: Any = None, *, strict: bool = False) -> Any:
    """`function(*inputs)`, and the product of `v` with its Jacobian, by reverse mode.

    `inputs` are the arguments, of which one may stand alone: variables, tensors or arrays, or
    containers of them as in `pg.grad`; `v` has the shapes of what the function returns, in the
    same containers, ones by default and where it has None. The first result is what the function
    returned. The second has one entry for each input, like that, zeros for one that the function
    does not use: alone for a single input, in a tuple for a sequence. Arrays give arrays.

    Arguments are told apart: an array passed twice counts as two, and what the function finds
    elsewhere, the same arrays included, is constant for this derivative, but not for one of
    the results. All results can be differentiated again.

    With `strict`, an input that does not matter, and an output that depends on no input, are a
    `NotDifferentiable`. Raises `ArgumentError`, a TypeError, for what is no function or no
    array, and for a wrong number of entries in `v`; `ShapeError` for a wrong shape of one.

    >>> pg.vjp(lambda x: x**2, np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    (array([1., 4.]), array([2., 4.]))
    """
    return products.vjp(function, inputs, v, strict)


@checked_late
@constant_in_no_grad
def jvp(function: Function, inputs: Any, v: Any = None, *, strict: bool = False) -> Any:
    """`function(*inputs)`, and the product of its Jacobian with `v`, by forward mode.

    `v` has the shapes of `inputs`, and their containers, ones by default. Both results have the
    containers of what the function returns; the second is zero for an output that depends on no
    input. For all else see `vjp`.

    >>> pg.jvp(lambda x: x**2, np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    (array([1., 4.]), array([2., 0.]))
    """
    return products.jvp(function, inputs, v, strict)


@checked_late
@constant_in_no_grad
def hvp(function: Function, inputs: Any, v: Any, *, strict: bool = False) -> Any:
    """`function(*inputs)`, one element, and the product of its Hessian with `v`.

    Forward over reverse: the derivative of the gradient along `v`. `v` has the shapes of
    `inputs`, and their containers; the product has one entry for each input, as in `vjp`, zeros
    where it does not depend on the input.

    Raises `NotScalarError` for a function of more than one element; with `strict`,
    `NotDifferentiable` where an input does not matter to the function. For all else see `vjp`.

    >>> pg.hvp(lambda x: pg.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    (array(9.), array([6., 0.]))
    """
    return products.hessian_product("hvp", function, inputs, v, strict)


@checked_late
@constant_in_no_grad
def vhp(function: Function, inputs: Any, v: Any, *, strict: bool = False) -> Any:
    """`function(*inputs)`, one element, and the product of `v` with its Hessian.

    A Hessian is symmetric, so the product is that of `hvp`, and computed in the same way.

    >>> pg.vhp(lambda x: pg.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    (array(9.), array([6., 0.]))
    """
    return products.hessian_product("vhp", function, inputs, v, strict)


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
    """The derivatives of `y` by `x`, of shape `y.shape + x.shape`, zeros where there are none.

    `y` are variables or tensors that depend on `x`: for a sequence of outputs or inputs a tuple, of
    tuples if both are sequences. Or `y` is a function, and `x` its argument or a sequence of its
    arguments, variables, tensors or arrays, as in `vjp`. Evaluated in one vectorised pass, by the
    `mode` "reverse" or "forward", by default by that which takes fewer directions.

    Without `x`, the function that gives the derivatives of the function `y`, as `pg.jacrev` and
    `pg.jacfwd` do, with their `argnums` and `has_aux`. A Python int in the place of `x` beside a
    function is an `ArgumentError`, as it may be meant as either.

    Raises as `Jacobian` and `pg.grad` do, and `OptionError` for another mode.

    >>> pg.jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
    array([[2., 1., 0.],
           [0., 3., 2.]])
    """
    mode = matrices.checked_mode(mode)
    if x is None and _is_function(y):
        return jacobian_of(y, mode, argnums, has_aux, holomorphic)
    if _is_function(y):
        return _at(partial(jacobian_of, holomorphic=holomorphic), y, x, mode)
    if _has_tensors(y):
        return of_values.jacobian(y, x, mode, holomorphic)
    return matrices.jacobian(y, x, mode=mode, holomorphic=holomorphic)


def _at(
    transform: Callable[..., Derivative[..., Any]], function: Function, x: Any, *options: Any
) -> Any:
    """A derivative of a function at its arguments `x`, by all of them."""
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
    """The derivatives of each sample of `y` by the same sample of `x`, zeros where there are none.

    Axis 0 counts the samples, which are independent. The shape is `(B, *y.shape[1:],
    *x.shape[1:])`; sequences give tuples as in `jacobian`. `y` and `x` are variables or tensors, or
    `y` is a function, and `x` its argument or a sequence of its arguments: variables, tensors, or
    arrays, for which it gives arrays. Raises `MixedSamplesError` where samples may mix, unless
    `check` is False; see `Jacobian`.

    >>> with pg.Program() as program:
    ...     x = pg.data("x", (4, 2))
    ...     jacobian = pg.batched_jacobian(x**2, x)
    >>> jacobian.shape
    (4, 2, 2)
    """
    if _is_function(y) and not _are_variables(x):
        world = world_of(x)
        brought: Any = world.bring(x) if not isinstance(x, list | tuple) else [*map(world.bring, x)]
        found = matrices.batched_jacobian(y, brought, check=check, holomorphic=holomorphic)
        return world.given_back(found)
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
    """The second derivatives of `y`, one element, by `x`, of shape `x.shape + x.shape`.

    `y` is a variable or tensor that depends on `x`: for a sequence of inputs a tuple of tuples. Or
    `y` is a function, and `x` its argument or a sequence of its arguments, as in `vjp`.

    Without `x`, the function that gives the second derivatives of the function `y`, with the
    containers of the arguments in those of the arguments; `argnums` and `has_aux` are as in
    `pg.grad`. A Python int in the place of `x` beside a function is an `ArgumentError`.

    Raises `NotScalarError` for more elements; for all else see `jacobian`.

    >>> pg.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    if x is None and _is_function(y):
        return hessian_of(y, argnums, has_aux, holomorphic)
    if _is_function(y):
        return _at(partial(hessian_of, holomorphic=holomorphic), y, x)
    if _has_tensors(y):
        return of_values.hessian(y, x)
    return matrices.hessian(y, x)


@checked_late
@constant_in_no_grad
def hessian_diagonal(y: Any, x: Any = None, is_batched: bool = False, *, check: bool = True) -> Any:
    """The second derivatives of `y`, one element, by each element of `x` twice.

    `y` and `x` are variables or tensors. Or `y` is a function of one array, and `x` its argument,
    an array too; without `x` this gives the function of that. The result has the type of `x`. With
    `is_batched`, axis 0 counts independent samples, `y` has shape `(B,)` or `(B, 1)`, and each
    sample of the result belongs to that of `y`. That samples do not mix on the way from `x` to `y`
    is checked by the structure of the program, of tensors when one looks at the result;
    `check=False` says that you know it.

    The Hessian is never formed: the second derivative along each axis is taken by forward mode
    over forward mode, all of them in one vectorised pass (of one direction for each element of a
    sample); where the gradient is elementwise, in one pass for the whole.

    Raises `ArgumentError` for anything but one `y` and one `x`, `NotScalarError` for a `y` of more
    elements, `NotDifferentiable` for integers, `MixedSamplesError` where samples may mix.

    >>> pg.hessian_diagonal(lambda x: pg.sum(x**3))(np.array([1.0, 2.0]))
    array([ 6., 12.])
    """
    return operators.differential("hessian_diagonal", y, x, is_batched, check)


@checked_late
@constant_in_no_grad
def laplacian(y: Any, x: Any = None, is_batched: bool = False, *, check: bool = True) -> Any:
    """The sum of the second derivatives of `y`, one element, by each element of `x` twice.

    `y` and `x` are variables or tensors, or a function and its argument, as in `hessian_diagonal`.
    The result has the type of `y`. With `is_batched`, axis 0 counts independent samples, `y` has
    shape `(B,)` or `(B, 1)`, and so has the result; for `check` see `hessian_diagonal`.

    As for `hessian_diagonal` no Hessian is formed, and what is linear in second derivatives is
    applied to their sum only. Raises as that does.

    >>> pg.laplacian(lambda x: pg.sum(x**3))(np.array([1.0, 2.0]))
    array(18.)
    """
    return operators.differential("laplacian", y, x, is_batched, check)


@checked_late
@constant_in_no_grad
def divergence(y: Any, x: Any = None, is_batched: bool = False, *, check: bool = True) -> Any:
    """The sum of the derivatives of each element of `y` by the element of `x` at its place.

    `y` and `x` are variables or tensors of one shape, or a function and its argument, as in
    `hessian_diagonal`; the result has none. With `is_batched`, axis 0 counts independent samples,
    and the result has shape `(B,)`; for `check` see `hessian_diagonal`.

    All directions are taken in one vectorised forward pass, of which the diagonal is kept; of a
    matrix product in the end only the diagonal is computed. Where `y` is elementwise in `x` there
    is only one direction.

    Raises `ArgumentError` for anything but one `y` and one `x`, `ShapeError` for different shapes,
    `NotDifferentiable` for integers, `MixedSamplesError` where samples may mix.

    >>> pg.divergence(lambda x: x**2)(np.array([1.0, 2.0]))
    array(6.)
    """
    return operators.differential("divergence", y, x, is_batched, check)
