"""Jacobians and Hessians, evaluated where they are indexed."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np

from primgraph.autodiff.functions import gradient_of, require_scalar
from primgraph.autodiff.grad import Request, Variables, grad, variables_of
from primgraph.autodiff.independence import require_apart, require_independent
from primgraph.autodiff.lazy_matrix import Layout, Passes, Slopes, picked, zeros_of
from primgraph.autodiff.matrix_index import Selection
from primgraph.autodiff.subgraph import Path
from primgraph.autodiff.traced_call import Call, located
from primgraph.errors import ArgumentError, OptionError, ShapeError
from primgraph.ir.builder import Builder
from primgraph.ir.graph import Value
from primgraph.ir.primitive import recording
from primgraph.ir.sheet import facts
from primgraph.ir.signature import checked_late, checked_methods
from primgraph.ir.types import DType, Shape, TensorType, as_dtype
from primgraph.operators.shaping import reshape
from primgraph.operators.variable import Variable

# So many inputs and outputs are listed.
_SHOWN = 8

Function: TypeAlias = "Callable[..., Variables] | Variables"


@final
@checked_methods(late=True)
class Block:
    """A part of a Jacobian, indexed like the array of `shape` and `dtype` that it stands for.

    An index evaluates what it needs and is not there yet, and gives a variable of the program.
    It may hold integers, slices of any step, `...`, None, lists and arrays of integers or
    booleans, and means what it means in NumPy. Raises `BoundsError`, an IndexError, for a place
    outside and for too many indices, and `IndexKindError`, an IndexError and a TypeError, for
    what can be no index.
    """

    __slots__ = ("_axes", "_columns", "_rows", "_slopes", "dtype", "shape")

    def __init__(
        self, slopes: Slopes, axes: tuple[Shape, Shape, Shape], rows: int, columns: int
    ) -> None:
        """A part with these axes for samples, rows and columns, from that row and column on."""
        self._slopes = slopes
        self._axes = axes
        self._rows = rows
        self._columns = columns
        self.dtype: DType = slopes.dtype
        self.shape: Shape = tuple(n for part in axes for n in part)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"<Block {TensorType(self.shape, self.dtype)}>"

    def _repr_html_(self) -> str:
        rows, columns = (math.prod(part) for part in self._axes[1:])
        return facts(
            "Block of a Jacobian",
            [
                ("type", str(TensorType(self.shape, self.dtype))),
                ("rows", f"{self._rows} to {self._rows + rows}, of outputs"),
                ("columns", f"{self._columns} to {self._columns + columns}, of inputs"),
                *_counted(self._slopes),
            ],
        ).html()

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("a 0-d block has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Variable]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Variable:
        with located():
            found = Selection.of(self._axes, index)
        if 0 in found.shape:
            return zeros_of(self._slopes.builder, TensorType(found.shape, self.dtype))
        rows = [n + self._rows for n in found.rows]
        columns = [n + self._columns for n in found.columns]
        block = self._slopes.block(rows, columns)
        with recording(self._slopes.builder):
            if self._slopes.outputs.batch is not None:
                block = picked(block, 0, found.samples)
            if found.places is None:
                return reshape(block, found.shape)
            return picked(reshape(block, (block.size,)), 0, found.places)


@checked_methods(late=True)
class DerivativeMatrix(ABC):
    """What Jacobians and Hessians share: how they are laid out, indexed and counted."""

    _slopes: Slopes
    # The derivatives of the function itself, by which samples are told to be independent.
    _values: Slopes
    _blocks: tuple[tuple[Block, ...], ...]
    _whole: Block | None

    def _lay_out(self, slopes: Slopes, values: Slopes, blocks: bool, flat: bool) -> None:
        self._slopes, self._values = slopes, values
        outputs, inputs = slopes.outputs, slopes.inputs
        lead = outputs.lead()
        self._blocks = tuple(
            tuple(
                Block(
                    slopes,
                    (lead, (rows,), (columns,))
                    if flat
                    else (lead, outputs.sample(i), inputs.sample(j)),
                    outputs.offsets()[i],
                    inputs.offsets()[j],
                )
                for j, columns in enumerate(inputs.extents())
            )
            for i, rows in enumerate(outputs.extents())
        )
        single = len(outputs.shapes) == len(inputs.shapes) == 1
        if not flat and not blocks and not single:
            raise OptionError(
                "a Jacobian of several inputs or outputs has no shape of its own unless flat",
                hint="ask for blocks=True, or leave out flat=False",
            )
        total = (lead, (outputs.offsets()[-1],), (inputs.offsets()[-1],))
        self._whole = None if blocks else Block(slopes, total, 0, 0)
        if not blocks and not flat:
            self._whole = self._blocks[0][0]

    @property
    def shape(self) -> Any:
        """The shape as an array; with `blocks`, those of all blocks as nested tuples."""
        if self._whole is not None:
            return self._whole.shape
        return tuple(tuple(b.shape for b in row) for row in self._blocks)

    @property
    def dtype(self) -> DType:
        """The common dtype of inputs and outputs."""
        return self._slopes.dtype

    @property
    def blocks(self) -> tuple[tuple[Block, ...], ...]:
        """For each output a tuple with one block for each input."""
        return self._blocks

    def whole(self) -> Variable:
        """All of it as one variable of shape `(N, M)` or `(B, N, M)`, however it is indexed."""
        slopes = self._slopes
        extents = slopes.outputs.offsets()[-1], slopes.inputs.offsets()[-1]
        shape = (*slopes.outputs.lead(), *extents)
        return Block(slopes, (shape[:-2], shape[-2:-1], shape[-1:]), 0, 0)[...]

    @property
    def passes(self) -> Passes:
        """How many rows and columns have been evaluated so far."""
        return self._slopes.passes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.dtype} {self.shape}>"

    def _repr_html_(self) -> str:
        """How it is laid out and what of it has been evaluated; nothing is, to show that."""
        outputs, inputs = self._slopes.outputs, self._slopes.inputs
        return facts(
            f"{type(self).__name__} of {self._slopes.builder.name}",
            [
                ("shape", str(self.shape)),
                ("dtype", str(self.dtype)),
                ("samples", "" if outputs.batch is None else str(outputs.batch)),
                ("outputs", _shapes(outputs, self.dtype)),
                ("inputs", _shapes(inputs, self.dtype)),
                *_counted(self._slopes),
            ],
            ["evaluated where it is indexed"],
        ).html()

    def __len__(self) -> int:
        return len(self._blocks if self._whole is None else self._whole)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        """A variable; with `blocks`, what the nested tuple of blocks gives."""
        if self._whole is not None:
            return self._whole[index]
        if not isinstance(index, tuple):
            return self._blocks[index]
        found: Any = self._blocks
        for entry in index[:2]:
            found = found[entry]
        return found[index[2:]] if len(index) > 2 else found

    def check_independent(self, feed: Mapping[str, Any] | None = None) -> None:
        """Make sure that the samples of a batch do not mix, where that was not checked before.

        First by the structure of the program, as it is done without `check=False`: whether every
        operation on the way keeps the samples apart. If that does not tell, by evaluation on the
        arrays in `feed`, by name: whether no output of one sample changes with another sample
        there.

        Raises `MixedSamplesError` if samples mix, or may mix and there is no `feed`.
        """
        with located():
            if self._slopes.outputs.batch is None:
                raise OptionError("there are no samples without is_batched=True")
            require_independent(self._values, feed)


def _counted(slopes: Slopes) -> list[tuple[str, str]]:
    """What has been evaluated of a matrix."""
    passes = slopes.passes
    return [
        ("evaluated", f"{passes.reverse} rows by reverse mode"),
        ("", f"{passes.forward} columns by forward mode"),
    ]


def _shapes(layout: Layout, dtype: DType) -> str:
    """The types of the first few arrays."""
    shown = [str(TensorType(s, dtype)) for s in layout.shapes[:_SHOWN]]
    more = len(layout.shapes) - len(shown)
    return ", ".join([*shown, f"{more} more"] if more else shown)


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

    Each index evaluates rows in reverse mode or columns in forward mode, whichever are fewer
    and not there yet, all of them in one vectorised pass; `passes` counts them. See `Block` for
    what an index may be. What it gives is a variable of the program, which can be differentiated
    again.

    Raises `ArgumentError` for what is no function or variable, `NotDifferentiable` for other
    dtypes than floats, `ShapeError` for outputs without the samples of the inputs,
    `MixedSamplesError` where samples may mix, with the equation and the line where they meet.
    """

    def __init__(
        self,
        function: Function,
        inputs: Variables,
        is_batched: bool = False,
        *,
        blocks: bool = False,
        flat: bool = True,
        check: bool = True,
    ) -> None:
        with located(inputs):
            slopes = _Traced.of("Jacobian", function, inputs).slopes(is_batched)
            if is_batched and check:
                require_apart(slopes.path)
            self._lay_out(slopes, slopes, blocks, flat)


@final
@checked_methods(late=True)
class Hessian(DerivativeMatrix):
    """The second derivatives of `function` by all `inputs`, evaluated when indexed.

    The function returns one element, or with `is_batched` one for each sample, of shape `(B,)`
    or `(B, 1)`; what it has built may be given in its place. The shape is `(M, M)` or
    `(B, M, M)`. All else is as in `Jacobian`; as the matrix is symmetric, rows are evaluated as
    columns, by forward mode over one gradient.

    Raises `NotScalarError`, a ValueError and a RuntimeError, for more than one element.
    """

    def __init__(
        self,
        function: Function,
        inputs: Variables,
        is_batched: bool = False,
        *,
        blocks: bool = False,
        flat: bool = True,
        check: bool = True,
    ) -> None:
        with located(inputs):
            both = _with_gradient(function, inputs, int(is_batched))
            traced = _Traced.of("Hessian", both, inputs)
            values = traced.slopes(is_batched, slice(1))
            if is_batched and check:
                require_apart(values.path)
            slopes = traced.slopes(is_batched, slice(1, None), symmetric=True)
            self._lay_out(slopes, values, blocks, flat)


@checked_late
def jacobian(y: Variables, x: Variables) -> Any:
    """The derivatives of `y` by `x`, of shape `y.shape + x.shape`, zeros where there are none.

    For a sequence of outputs or inputs a tuple, of tuples if both are sequences. Evaluated by
    reverse or forward mode, whichever takes fewer passes, in one vectorised pass.
    """
    return _evaluated(Jacobian(y, x, blocks=True, flat=False), y, x)


@checked_late
def batched_jacobian(y: Variables, x: Variables, *, check: bool = True) -> Any:
    """The derivatives of each sample of `y` by the same sample of `x`, zeros where there are none.

    Axis 0 counts the samples, which are independent. The shape is `(B, *y.shape[1:],
    *x.shape[1:])`; sequences give tuples as in `jacobian`. Raises `MixedSamplesError` where
    samples may mix, unless `check` is False; see `Jacobian`.
    """
    return _evaluated(Jacobian(y, x, True, blocks=True, flat=False, check=check), y, x)


@checked_late
def hessian(y: Variable, x: Variables) -> Any:
    """The second derivatives of `y`, one element, by `x`, of shape `x.shape + x.shape`.

    For a sequence of inputs a tuple of tuples. Raises `NotScalarError` for more elements.
    """
    return _evaluated(Hessian(y, x, blocks=True, flat=False), x, x)


def _evaluated(matrix: DerivativeMatrix, y: Variables, x: Variables) -> Any:
    """All blocks as variables, in tuples only where there was a sequence."""
    rows = tuple(tuple(block[...] for block in row) for row in matrix.blocks)
    found = tuple(row[0] for row in rows) if isinstance(x, Variable) else rows
    return found[0] if isinstance(y, Variable) else found


def _with_gradient(function: Any, inputs: Any, rank: int) -> Function:
    """A value and its gradients by all inputs: a function if there is one, else variables."""
    if callable(function):
        return gradient_of("Hessian", function, rank=rank)
    (value,) = _one("Hessian", function)
    require_scalar("Hessian", value, rank)
    listed = variables_of("Hessian", "inputs", inputs)
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
class _Traced:
    """What a matrix is made of: inputs and outputs, of a function that was called or of a program.

    `sources` are the inputs as paths to the outputs have them.
    """

    name: str
    builder: Builder
    inputs: list[Value]
    outputs: list[Value]
    sources: list[Value]
    made: Call | Request

    @staticmethod
    def of(name: str, function: Any, inputs: Any) -> _Traced:
        """`function` is called once; what it has built may be given in its place."""
        listed = variables_of(name, "inputs", inputs)
        if isinstance(function, Variable | list | tuple):
            request = Request.of(name, variables_of(name, "function", function), listed)
            starts = request.inputs
            return _Traced(name, request.builder, starts, request.outputs, starts, request)
        call = Call.of(name, function, listed)
        call.require_floats(name)
        return _Traced(name, call.builder, call.inputs, call.outputs, call.arguments, call)

    def path(self, which: slice) -> tuple[Path, list[Value]]:
        """The path to these outputs, and the values of the builder for its free ones."""
        made = self.made
        if isinstance(made, Call):
            path = made.path(made.results[which])
            return path, [made.moved.get(v, v) for v in path.free]
        ends = self.outputs[which]
        path = Path.between(self.builder, self.inputs, ends, made.constants)
        return path, path.free

    def slopes(self, is_batched: bool, which: slice = _ALL, *, symmetric: bool = False) -> Slopes:
        """The matrix of derivatives of these outputs."""
        inputs, outputs = self.inputs, self.outputs[which]
        batch = _batch_extent(self.name, self.builder, inputs, outputs) if is_batched else None
        path, free = self.path(which)
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
