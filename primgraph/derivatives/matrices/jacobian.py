"""Jacobians and Hessians, evaluated lazily by indexing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.base.providers import provider
from primgraph.derivatives.functions import gradient_of, require_scalar
from primgraph.derivatives.grad import grad
from primgraph.derivatives.independence import require_apart
from primgraph.derivatives.matrices.layout import Layout, Matrix
from primgraph.derivatives.matrices.lazy_jacobian import Slopes
from primgraph.derivatives.matrices.matrix import DerivativeMatrix, blocks_in
from primgraph.derivatives.request import (
    Request,
    Variables,
    located,
    origin_of,
    require_direction,
    variables_of,
)
from primgraph.derivatives.subgraph import Path
from primgraph.derivatives.traced_call import Call
from primgraph.errors import OptionError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.frontend.signature import checked_late, checked_methods
from primgraph.ir.graph import Value
from primgraph.ir.types import as_dtype
from primgraph.operators.call import hands_out
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable

Function: TypeAlias = "Callable[..., Variables] | Variables"


# Constructors of derivative matrices for handles other than variables. Their arguments are the
# name, the function or its result, the inputs, whether these are batched, and whether to check
# that. They return the matrix, and whether there is a single output.
makers: dict[type, Callable[..., tuple[Matrix, bool]]] = {}


def _maker_of(inputs: Any) -> Callable[..., tuple[Matrix, bool]] | None:
    listed = inputs if isinstance(inputs, list | tuple) else [inputs]
    return next((m for kind, m in makers.items() for i in listed if isinstance(i, kind)), None)


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
        maker = _maker_of(inputs)
        if sparse or pattern is not None:
            _require_sparse("Jacobian", maker, is_batched, holomorphic)
            with located(partial(origin_of, inputs)):
                values = _sparse().jacobian_slopes(function, inputs, pattern)
                self._lay_out(values, values, blocks, flat)
            self._single = isinstance(function, Variable)
            return
        if maker is not None:
            made, self._single = maker("Jacobian", function, inputs, is_batched, check, holomorphic)
            self._lay_out(made, made, blocks, flat)
            return
        with located(partial(origin_of, inputs)):
            traced = Traced.of("Jacobian", function, inputs)
            traced.require_direction(holomorphic)
            slopes = traced.slopes(is_batched, check=check)
            self._lay_out(slopes, slopes, blocks, flat)
            self._single = traced.single


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
        maker = _maker_of(inputs)
        if sparse or pattern is not None:
            _require_sparse("Hessian", maker, is_batched, False)
            with located(partial(origin_of, inputs)):
                found = _sparse().hessian_slopes(function, inputs, pattern)
                self._lay_out(found, found, blocks, flat)
            return
        if maker is not None:
            made, _ = maker("Hessian", function, inputs, is_batched, check, False)
            self._lay_out(made, made, blocks, flat)
            return
        with located(partial(origin_of, inputs)):
            both = with_gradient("Hessian", function, inputs, int(is_batched))
            traced = Traced.of("Hessian", both, inputs)
            traced.require_direction(False)
            values = traced.slopes(is_batched, slice(1), check=check)
            slopes = traced.slopes(is_batched, slice(1, None), symmetric=True)
            self._lay_out(slopes, values, blocks, flat)


def _sparse() -> Any:
    """Import the module for sparse matrices, which few programs use."""
    return provider("sparse Jacobians")


def _require_sparse(name: str, maker: Any, is_batched: bool, holomorphic: bool) -> None:
    if maker is not None:
        raise OptionError(
            f"{name}: sparse is for variables of a program",
            hint=f"pg.sparse_{name.lower()}(function, tensor) takes tensors",
        )
    if is_batched or holomorphic:
        raise OptionError(f"{name}: sparse goes neither with is_batched nor with holomorphic")


@hands_out
@checked_late
def jacobian(
    y: Function, x: Variables, *, mode: str | None = None, holomorphic: bool = False
) -> Any:
    """Return the derivatives of `y` by `x`, of shape `y.shape + x.shape`.

    For a sequence of outputs or inputs the result is a tuple, or a tuple of tuples for both. `y`
    may be a function of `x`. Derivatives by unused inputs are zeros. One vectorised pass by the
    `mode` "reverse" or "forward" evaluates all; by default the mode that takes fewer passes.

    Raises `OptionError` for another mode, and for reverse mode of complex outputs by real inputs or
    forward mode of real outputs by complex inputs. See `Jacobian` for other errors.
    """
    found = Jacobian(y, x, blocks=True, flat=False, holomorphic=holomorphic)
    found._slopes.choose(checked_mode(mode))
    return _evaluated(found, found._single, x)


def checked_mode(mode: Any) -> str | None:
    """Return `mode` if it is "forward", "reverse" or None; raises `OptionError` otherwise."""
    if mode not in (None, "forward", "reverse"):
        raise OptionError(f"a mode is 'forward' or 'reverse', not {mode!r:.60}")
    return None if mode is None else str(mode)


def blocks_of(call: Call, count: int, mode: str | None) -> list[list[Variable]]:
    """Return the derivatives of each of the first `count` results of `call` by each input.

    A block has the shape of the output, then that of the input; all have one dtype.
    """
    traced = Traced(
        "jacobian", call.builder, call.inputs, call.outputs, call.arguments, call, False
    )
    slopes = traced.slopes(False, slice(count))
    slopes.choose(mode)
    return [[block[...] for block in row] for row in blocks_in(slopes)]


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
    return _evaluated(found, found._single, x)


@hands_out
@checked_late
def hessian(y: Callable[..., Variable] | Variable, x: Variables) -> Any:
    """Return the second derivatives of `y`, one element, by `x`, of shape `x.shape + x.shape`.

    For a sequence of inputs the result is a tuple of tuples. `y` may be a function of `x`. Raises
    `NotScalarError` for more elements.
    """
    return _evaluated(Hessian(y, x, blocks=True, flat=False), isinstance(x, Variable), x)


def _evaluated(matrix: DerivativeMatrix, single: bool, x: Variables) -> Any:
    """Evaluate all blocks; nest them in tuples for a sequence of inputs or outputs."""
    rows = tuple(tuple(block[...] for block in row) for row in matrix.blocks)
    found = tuple(row[0] for row in rows) if isinstance(x, Handle) else rows
    return found[0] if single else found


def with_gradient(name: str, function: Any, inputs: Any, rank: int) -> Function:
    """Return value and gradients: as a function if `function` is one, else as variables."""
    if callable(function):
        return gradient_of(name, function, rank=rank)
    (value,) = _one(name, function)
    require_scalar(name, value, rank)
    listed = variables_of(name, "inputs", inputs)
    slopes = grad(value, listed, materialize_grads=True)
    return [value, *(g for g in slopes if g is not None)]


def _one(name: str, outputs: Any) -> list[Variable]:
    """Return the only variable in `outputs`."""
    listed = variables_of(name, "function", outputs)
    if len(listed) != 1:
        raise ShapeError(f"{name} takes one output, not {len(listed)}")
    return listed


_ALL = slice(None)


@final
@dataclass(frozen=True, slots=True)
class Traced:
    """Inputs and outputs of a derivative matrix, of a called function or of a program.

    `sources` are the inputs as they occur on the paths to the outputs. `single` says that the
    output is one variable, and not a sequence of one.
    """

    name: str
    builder: Builder
    inputs: list[Value]
    outputs: list[Value]
    sources: list[Value]
    made: Call | Request
    single: bool

    @staticmethod
    def of(name: str, function: Any, inputs: Any) -> Traced:
        """Call `function` once, or use its result given in its place."""
        listed = variables_of(name, "inputs", inputs)
        if isinstance(function, Variable | list | tuple):
            request = Request.of(name, variables_of(name, "function", function), listed)
            starts = request.inputs
            single = isinstance(function, Variable)
            return Traced(name, request.builder, starts, request.outputs, starts, request, single)
        call = Call.of(name, function, listed)
        call.require_floats(name)
        ends, starts = call.outputs, call.arguments
        return Traced(name, call.builder, call.inputs, ends, starts, call, call.single)

    def require_direction(self, holomorphic: bool) -> None:
        """Raise for derivatives that are not numbers; see the function of that name."""
        inputs, outputs = ([v.type for v in listed] for listed in (self.inputs, self.outputs))
        require_direction(self.name, inputs, outputs, holomorphic)

    def path(self, which: slice) -> tuple[Path, list[Value]]:
        """Return the path to these outputs, and the builder's values for its free inputs."""
        made = self.made
        if isinstance(made, Call):
            path = made.path(made.results[which])
            return path, [made.moved.get(v, v) for v in path.free]
        path = replace(made, outputs=made.outputs[which]).path()
        return path, path.free

    def slopes(
        self,
        is_batched: bool,
        which: slice = _ALL,
        *,
        check: bool = False,
        symmetric: bool = False,
    ) -> Slopes:
        """Return the derivative matrix of these outputs; with `check`, samples must be
        independent."""
        inputs, outputs = self.inputs, self.outputs[which]
        batch = _batch_extent(self.name, self.builder, inputs, outputs) if is_batched else None
        path, free = self.path(which)
        if is_batched and check:
            require_apart(path)
        place = {v: i for i, v in enumerate(path.wrt)}
        return Slopes(
            self.builder,
            path,
            free,
            outputs,
            Layout(tuple(v.shape for v in outputs), batch),
            Layout(tuple(v.shape for v in inputs), batch),
            [place.get(v) for v in self.sources],
            as_dtype(np.result_type(*(v.dtype for v in (*inputs, *outputs)))),
            symmetric=symmetric,
        )


def _batch_extent(
    name: str, builder: Builder, inputs: Sequence[Value], outputs: Sequence[Value]
) -> int:
    """Return the size of axis 0, which all inputs and outputs share."""
    extents = {v.shape[0] if v.shape else None for v in (*inputs, *outputs)}
    extent = extents.pop()
    if extents or extent is None:
        types = ", ".join(str(v.type) for v in (*inputs, *outputs))
        raise ShapeError(
            f"{name}: with is_batched axis 0 counts the samples of everything, and of {types} it "
            "does not",
            origin=builder.origin(None, inputs),
        )
    return extent
