"""Jacobians and Hessians, evaluated lazily by indexing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, final

from primgraph.base.providers import provider
from primgraph.derivatives.grad import grad
from primgraph.derivatives.independence import require_independent_samples
from primgraph.derivatives.matrices.layout import Matrix
from primgraph.derivatives.matrices.lazy_jacobian import LazyJacobian
from primgraph.derivatives.matrices.matrix import DerivativeMatrix, blocks_in
from primgraph.derivatives.matrices.operator import JacobianOperator
from primgraph.derivatives.request import (
    Request,
    Variables,
    located,
    origin_of,
    require_direction,
    require_scalar,
    variables_of,
)
from primgraph.errors import NotScalarError, OptionError, ShapeError
from primgraph.ir.frontend.signature import call_user_function, checked_late, checked_methods
from primgraph.operators.call import hands_out
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable

Function: TypeAlias = "Callable[..., Variables] | Variables"


def _has_tensors(inputs: Any) -> bool:
    listed = inputs if isinstance(inputs, list | tuple) else [inputs]
    return any(isinstance(i, Handle) and not isinstance(i, Variable) for i in listed)


@final
@checked_methods(late=True)
class Jacobian(DerivativeMatrix):
    """The Jacobian of `function` by `inputs`, lazy: entries are computed when indexed.

    `function` takes and returns one or several variables, and is called once; its results may be
    given in its place. The matrix has shape `(N, M)`: N elements of all outputs by M elements of
    all inputs, one variable after the other. With `is_batched`, axis 0 is the batch of B
    independent samples, and the shape is `(B, N, M)`. Unused inputs have zeros.

    - `flat=False` gives, for one input and one output, the shape `y.shape + x.shape`, or
      `(B, *y, *x)` with samples of these shapes.
    - `blocks=True` gives a nested tuple: `J[i][j]` is the block of output i and input j.
    - `check=False` skips the check that samples do not mix; `check_independent` tests it on arrays.
    - `holomorphic=True` is for complex outputs that are holomorphic in complex inputs. Without it,
      real outputs by complex inputs have gradients as rows, and complex outputs by real inputs have
      derivatives as columns.
    - `sparse=True` evaluates all elements that may be nonzero at once, by few products, and indexes
      these; see `sparse_jacobian`, also for `pattern`.

    An index evaluates the missing rows in reverse mode or columns in forward mode, whichever are
    fewer, in one vectorized pass; `passes` counts them. `Block` lists valid indices. Results are
    variables, which can be differentiated again.

    With tensors as `inputs`, the function is called on tensors, or its results are given as
    tensors. Indexing returns tensors, and evaluated entries are kept.

    Raises `ArgumentError` for what is no function or variable, `NotDifferentiable` for other dtypes
    than floats, `ShapeError` for outputs without the samples of the inputs, `MixedSamplesError`
    where samples may mix, with the equation and line where they meet.

    >>> with pg.Program() as program:
    ...     x = pg.data("x", (3,))
    ...     jacobian = pg.Jacobian(x**2, x)
    ...     row = jacobian[1]
    >>> pg.Executor().run(program, {"x": [1.0, 2.0, 3.0]}, [row])
    [array([0., 4., 0.])]
    """

    _single: bool

    def __init__(
        self,
        function: Any,
        inputs: Handle | Sequence[Handle],
        is_batched: bool = False,
        *,
        blocks: bool = False,
        flat: bool = True,
        check: bool = True,
        holomorphic: bool = False,
        sparse: bool = False,
        pattern: Any = None,
    ) -> None:
        self._single = isinstance(function, Variable)
        made = _lazy("Jacobian", function, inputs, is_batched, check, holomorphic, sparse, pattern)
        if made is not None:
            matrix, single = made
            self._single = self._single or single
            self._lay_out(matrix, matrix, blocks, flat)
            return
        with located(partial(origin_of, inputs)):
            request = request_for("Jacobian", function, inputs)
            require_matrix(request, holomorphic)
            matrix = LazyJacobian(_operator(request, is_batched, check=check))
            self._lay_out(matrix, matrix, blocks, flat)
        self._single = self._single or (request.call is not None and request.call.single)


@final
@checked_methods(late=True)
class Hessian(DerivativeMatrix):
    """Second derivatives of `function` by all `inputs`, evaluated when indexed.

    The function returns one element, or with `is_batched` one per sample, of shape `(B,)` or `(B,
    1)`; its result may be given in its place. The shape is `(M, M)` or `(B, M, M)`. The rest is as
    in `Jacobian`, and with `sparse` as in `sparse_hessian`. As the matrix is symmetric, rows are
    evaluated as columns, by forward mode over one gradient.

    Raises `NotScalarError`, a ValueError and a RuntimeError, for more than one element.

    >>> with pg.Program() as program:
    ...     x = pg.data("x", (2,))
    ...     hessian = pg.Hessian(x[0] ** 2 * x[1], x)
    ...     whole = hessian[:]
    >>> pg.Executor().run(program, {"x": [1.0, 2.0]}, [whole])
    [array([[4., 2.],
           [2., 0.]])]
    """

    def __init__(
        self,
        function: Any,
        inputs: Handle | Sequence[Handle],
        is_batched: bool = False,
        *,
        blocks: bool = False,
        flat: bool = True,
        check: bool = True,
        sparse: bool = False,
        pattern: Any = None,
    ) -> None:
        made = _lazy("Hessian", function, inputs, is_batched, check, False, sparse, pattern)
        if made is not None:
            self._lay_out(made[0], made[0], blocks, flat)
            return
        with located(partial(origin_of, inputs)):
            both = with_gradient("Hessian", function, inputs, int(is_batched))
            request = request_for("Hessian", both, inputs)
            require_matrix(request, False)
            value, gradient = request.first(1), request.select_outputs(slice(1, None))
            values = LazyJacobian(_operator(value, is_batched, check=check))
            operator = _operator(gradient, is_batched, check=False, symmetric=True)
            self._lay_out(LazyJacobian(operator), values, blocks, flat)


def _lazy(
    name: str,
    function: Any,
    inputs: Any,
    is_batched: bool,
    check: bool,
    holomorphic: bool,
    sparse: bool,
    pattern: Any,
) -> tuple[Matrix, bool] | None:
    """Return a sparse matrix, or one of tensors, and whether there is one output; None for a dense
    matrix of variables."""
    tensors = _has_tensors(inputs)
    if not sparse and pattern is None:
        if not tensors:
            return None
        made: tuple[Matrix, bool] = provider("Jacobians of tensors").matrix_of(
            name, function, inputs, is_batched, check, holomorphic
        )
        return made
    if tensors:
        raise OptionError(
            f"{name}: sparse is for variables of a program",
            hint=f"pg.sparse_{name.lower()}(function, tensor) takes tensors",
        )
    if is_batched or holomorphic:
        raise OptionError(f"{name}: sparse goes neither with is_batched nor with holomorphic")
    with located(partial(origin_of, inputs)):
        return provider("sparse Jacobians").lazy_matrix(name, function, inputs, pattern), False


@hands_out
@checked_late
def jacobian(
    y: Function, x: Variables, *, mode: str | None = None, holomorphic: bool = False
) -> Any:
    """Return the derivatives of `y` by `x`, of shape `y.shape + x.shape`.

    For a sequence of outputs or inputs the result is a tuple, or a tuple of tuples for both. `y`
    may be a function of `x`. Derivatives by unused inputs are zeros. One vectorised pass by the
    `mode` "reverse" or "forward" evaluates all; by default the mode that takes fewer passes, or
    forward mode.

    Raises `OptionError` for another mode, and for reverse mode of complex outputs by real inputs or
    forward mode of real outputs by complex inputs. See `Jacobian` for other errors.
    """
    found = Jacobian(y, x, blocks=True, flat=False, holomorphic=holomorphic)
    found._matrix.choose(checked_mode(mode))
    return _evaluate_blocks(found, found._single, x)


def checked_mode(mode: Any) -> str | None:
    """Return `mode` if it is "forward", "reverse" or None; raises `OptionError` otherwise."""
    if mode not in (None, "forward", "reverse"):
        raise OptionError(f"a mode is 'forward' or 'reverse', not {mode!r:.60}")
    return None if mode is None else str(mode)


def blocks_of(request: Request, mode: str | None) -> list[list[Variable]]:
    """Return the derivatives of each output of a call by each input.

    A block has the shape of the output, then that of the input; all have one dtype.
    """
    matrix = LazyJacobian(JacobianOperator(replace(request, name="jacobian")))
    matrix.choose(mode)
    return [[block[...] for block in row] for row in blocks_in(matrix)]


@hands_out
@checked_late
def batched_jacobian(
    y: Function, x: Variables, *, check: bool = True, holomorphic: bool = False
) -> Any:
    """Return the derivatives of each sample of `y` by the same sample of `x`.

    Axis 0 counts the samples, which are independent. The shape is `(B, *y.shape[1:],
    *x.shape[1:])`; sequences give tuples as in `jacobian`. Raises `MixedSamplesError` if samples
    may mix, unless `check` is False; see `Jacobian`.
    """
    found = Jacobian(y, x, True, blocks=True, flat=False, check=check, holomorphic=holomorphic)
    return _evaluate_blocks(found, found._single, x)


@hands_out
@checked_late
def hessian(y: Callable[..., Variable] | Variable, x: Variables) -> Any:
    """Return the second derivatives of `y`, one element, by `x`, of shape `x.shape + x.shape`.

    For a sequence of inputs the result is a tuple of tuples. `y` may be a function of `x`. Raises
    `NotScalarError` for more elements.
    """
    return _evaluate_blocks(Hessian(y, x, blocks=True, flat=False), isinstance(x, Variable), x)


def _evaluate_blocks(matrix: DerivativeMatrix, single: bool, x: Variables) -> Any:
    """Evaluate all blocks; nest them in tuples for a sequence of inputs or outputs."""
    rows = tuple(tuple(block[...] for block in row) for row in matrix.blocks)
    found = tuple(row[0] for row in rows) if isinstance(x, Handle) else rows
    return found[0] if single else found


def with_gradient(name: str, function: Any, inputs: Any, rank: int) -> Function:
    """Return value and gradients: as a function if `function` is one, else as variables.

    With `rank` 1 there may be one element per sample, of shape `(B,)` or `(B, 1)`, for independent
    samples.
    """

    def value_and_gradients(value: Variable, arguments: Sequence[Variable]) -> list[Variable]:
        require_scalar(name, value, rank)
        gradients = grad(value, list(arguments), materialize_grads=True)
        return [value, *gradients]

    def gradient(*arguments: Variable) -> list[Variable]:
        result = call_user_function(function, *arguments)
        if isinstance(result, list | tuple) and len(result) == 1:
            result = result[0]
        if not isinstance(result, Variable):
            raise NotScalarError(f"{name}: the function returned {result!r:.80}, not a variable")
        return value_and_gradients(result, arguments)

    if callable(function):
        return gradient
    values = variables_of(name, "function", function)
    if len(values) != 1:
        raise ShapeError(f"{name} takes one output, not {len(values)}")
    return value_and_gradients(values[0], variables_of(name, "inputs", inputs))


def request_for(name: str, function: Any, inputs: Any) -> Request:
    """Return the request for a function, which is called once, or for its results."""
    listed = variables_of(name, "inputs", inputs)
    if isinstance(function, Variable | list | tuple):
        return Request.from_variables(name, variables_of(name, "function", function), listed)
    request = Request.from_call(name, function, listed)
    request.require_floats()
    return request


def require_matrix(request: Request, holomorphic: bool) -> None:
    """Raise for derivatives that are not numbers; see `require_direction`."""
    inputs, outputs = ([v.type for v in listed] for listed in (request.inputs, request.outputs))
    require_direction(request.name, inputs, outputs, holomorphic)


def _operator(
    request: Request, is_batched: bool, *, check: bool, symmetric: bool = False
) -> JacobianOperator:
    """Return the operator of a request; with `check`, samples must be independent."""
    batch = _batch_extent(request) if is_batched else None
    if is_batched and check:
        require_independent_samples(request.path)
    return JacobianOperator(request, batch, symmetric=symmetric)


def _batch_extent(request: Request) -> int:
    """Return the size of axis 0, which all inputs and outputs share."""
    values = [*request.inputs, *request.outputs]
    extents = {v.shape[0] if v.shape else None for v in values}
    extent = extents.pop()
    if extents or extent is None:
        types = ", ".join(str(v.type) for v in values)
        raise ShapeError(
            f"{request.name}: with is_batched axis 0 counts the samples of everything, and of "
            f"{types} it does not",
            origin=request.builder.origin(None, request.inputs),
        )
    return extent
