"""Jacobians and Hessians, evaluated where they are indexed."""

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


# How matrices of derivatives by handles of other classes than variables are made: of the name, the
# function or what it has given, the inputs, whether these are batches, and whether to check these.
# With the matrix comes whether one output is meant.
makers: dict[type, Callable[..., tuple[Matrix, bool]]] = {}


def _maker_of(inputs: Any) -> Callable[..., tuple[Matrix, bool]] | None:
    listed = inputs if isinstance(inputs, list | tuple) else [inputs]
    return next((m for kind, m in makers.items() for i in listed if isinstance(i, kind)), None)


@final
@checked_methods(late=True)
class Jacobian(DerivativeMatrix):
    """The derivatives of all outputs of `function` by all `inputs`, evaluated when indexed.

    `function` takes and returns variables, one or several; it is called once. What it has built
    already may be given in its place. The array that is indexed has shape `(N, M)`: all N
    elements of the outputs, one output after the other, by all M of the inputs. With
    `is_batched`, axis 0 of everything counts B samples, of which none depends on another, and the
    shape is `(B, N, M)`. Inputs that do not matter have zeros.

    - `flat=False` gives, for one input and one output, the shape `y.shape + x.shape`, or
      `(B, *y, *x)` with samples of these shapes.
    - `blocks=True` gives a nested tuple: `J[i][j]` is the block of output i and input j.
    - `check=False` says that you know that samples do not mix, where the structure of the
      program does not tell (or that what mixes does not matter to you); `check_independent`
      tells on given arrays.
    - `holomorphic=True` says that complex outputs are holomorphic in complex inputs. Without it
      only one of both may be complex: of real outputs by complex inputs each row is a gradient, of
      complex outputs by real inputs each column a derivative.
    - `sparse=True` evaluates all elements that may be other than zero at once, by few products, and
      takes from them what is indexed; see `sparse_jacobian`, also for `pattern`.

    Each index evaluates rows in reverse mode or columns in forward mode, whichever are fewer
    and not there yet, all of them in one vectorised pass; `passes` counts them. See `Block` for
    what an index may be. What it gives is a variable of the program, which can be differentiated
    again.

    For tensors as `inputs`, the function is called on tensors, or tensors that depend on them are
    given in its place; what an index gives are tensors, and what is evaluated is kept as well.

    Raises `ArgumentError` for what is no function or variable, `NotDifferentiable` for other
    dtypes than floats, `ShapeError` for outputs without the samples of the inputs,
    `MixedSamplesError` where samples may mix, with the equation and the line where they meet.

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
    """The second derivatives of `function` by all `inputs`, evaluated when indexed.

    The function returns one element, or with `is_batched` one for each sample, of shape `(B,)`
    or `(B, 1)`; what it has built may be given in its place. The shape is `(M, M)` or
    `(B, M, M)`. All else is as in `Jacobian`, and with `sparse` as in `sparse_hessian`; as the
    matrix is symmetric, rows are evaluated as columns, by forward mode over one gradient.

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
    """What few programs use, and is loaded by the first one that does."""
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
    """The derivatives of `y` by `x`, of shape `y.shape + x.shape`, zeros where there are none.

    For a sequence of outputs or inputs a tuple, of tuples if both are sequences; `y` may be a
    function of `x` in place of what it gives. Evaluated in one vectorised pass, by the `mode`
    "reverse" or "forward", by default by that which takes fewer passes.

    Raises `OptionError` for another mode, and for reverse mode of complex outputs by real inputs
    or forward mode of real outputs by complex inputs; for all else see `Jacobian`.
    """
    found = Jacobian(y, x, blocks=True, flat=False, holomorphic=holomorphic)
    found._slopes.choose(checked_mode(mode))
    return _evaluated(found, found._single, x)


def checked_mode(mode: Any) -> str | None:
    """`mode`, if there is one of that name, or None; `OptionError` otherwise."""
    if mode not in (None, "forward", "reverse"):
        raise OptionError(f"a mode is 'forward' or 'reverse', not {mode!r:.60}")
    return None if mode is None else str(mode)


def blocks_of(call: Call, count: int, mode: str | None) -> list[list[Variable]]:
    """The derivatives of each of the first `count` results of `call` by each of its inputs.

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
    """The derivatives of each sample of `y` by the same sample of `x`, zeros where there are none.

    Axis 0 counts the samples, which are independent. The shape is `(B, *y.shape[1:],
    *x.shape[1:])`; sequences give tuples as in `jacobian`. Raises `MixedSamplesError` where
    samples may mix, unless `check` is False; see `Jacobian`.
    """
    found = Jacobian(y, x, True, blocks=True, flat=False, check=check, holomorphic=holomorphic)
    return _evaluated(found, found._single, x)


@hands_out
@checked_late
def hessian(y: Callable[..., Variable] | Variable, x: Variables) -> Any:
    """The second derivatives of `y`, one element, by `x`, of shape `x.shape + x.shape`.

    For a sequence of inputs a tuple of tuples; `y` may be a function of `x` in place of what it
    gives. Raises `NotScalarError` for more elements.
    """
    return _evaluated(Hessian(y, x, blocks=True, flat=False), isinstance(x, Variable), x)


def _evaluated(matrix: DerivativeMatrix, single: bool, x: Variables) -> Any:
    """All blocks as variables, in tuples only where there was a sequence, or no `single` output."""
    rows = tuple(tuple(block[...] for block in row) for row in matrix.blocks)
    found = tuple(row[0] for row in rows) if isinstance(x, Handle) else rows
    return found[0] if single else found


def with_gradient(name: str, function: Any, inputs: Any, rank: int) -> Function:
    """A value and its gradients by all inputs: a function if there is one, else variables."""
    if callable(function):
        return gradient_of(name, function, rank=rank)
    (value,) = _one(name, function)
    require_scalar(name, value, rank)
    listed = variables_of(name, "inputs", inputs)
    slopes = grad(value, listed, materialize_grads=True)
    return [value, *(g for g in slopes if g is not None)]


def _one(name: str, outputs: Any) -> list[Variable]:
    """The only variable in `outputs`."""
    listed = variables_of(name, "function", outputs)
    if len(listed) != 1:
        raise ShapeError(f"{name} takes one output, not {len(listed)}")
    return listed


_ALL = slice(None)


@final
@dataclass(frozen=True, slots=True)
class Traced:
    """What a matrix is made of: inputs and outputs, of a function that was called or of a program.

    `sources` are the inputs as paths to the outputs have them. `single` tells that one output is
    meant, and no sequence of one.
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
        """`function` is called once; what it has built may be given in its place."""
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
        """Refuse derivatives that are no numbers; see the function of that name."""
        inputs, outputs = ([v.type for v in listed] for listed in (self.inputs, self.outputs))
        require_direction(self.name, inputs, outputs, holomorphic)

    def path(self, which: slice) -> tuple[Path, list[Value]]:
        """The path to these outputs, and the values of the builder for its free ones."""
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
        """The matrix of derivatives of these outputs; with `check` samples have to be apart."""
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
    """The extent of axis 0, which all inputs and outputs share."""
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
