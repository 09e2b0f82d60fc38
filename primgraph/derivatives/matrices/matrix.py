"""Derivative matrices as arrays: layout, blocks and indexing."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterator, Mapping
from typing import Any, final

from primgraph.derivatives.independence import require_independent
from primgraph.derivatives.matrices.layout import Layout, Matrix, Passes, Selection
from primgraph.derivatives.matrices.lazy_jacobian import LazyJacobian
from primgraph.derivatives.request import located, origin_of
from primgraph.errors import ArgumentError, OptionError
from primgraph.ir.frontend.html_tables import facts
from primgraph.ir.frontend.signature import checked_methods
from primgraph.ir.types import DType, Shape, TensorType
from primgraph.operators.call import hands_out
from primgraph.operators.shape.shaping import reshape

# Maximum numbers of inputs and outputs shown.
_SHOWN = 8


@final
@checked_methods(late=True)
class Block:
    """Block of a Jacobian, indexed like the array of `shape` and `dtype` that it stands for.

    An index evaluates the missing rows or columns, and returns a variable of the program, or a
    tensor. It may contain integers, slices, `...`, None, lists and arrays of integers or booleans,
    with NumPy's semantics. Raises `BoundsError`, an IndexError, for an index out of bounds and for
    too many indices, and `IndexKindError`, an IndexError and a TypeError, for an invalid index.
    """

    __slots__ = ("_axes", "_columns", "_matrix", "_rows", "dtype", "shape")

    def __init__(
        self, matrix: Matrix, axes: tuple[Shape, Shape, Shape], rows: int, columns: int
    ) -> None:
        """Initialise a block with these axes for samples, rows and columns, at a row and column
        offset."""
        self._matrix = matrix
        self._axes = axes
        self._rows = rows
        self._columns = columns
        self.dtype: DType = matrix.dtype
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
                *_pass_counts(self._matrix),
            ],
        ).html()

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("a 0-d block has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @hands_out
    def __getitem__(self, index: Any) -> Any:
        if self._matrix.outputs.names or self._matrix.inputs.names:
            return self._index_symbolic(index)
        with located(origin_of):
            found = Selection.from_index(self._axes, index)
        if 0 in found.shape:
            return self._matrix.zeros(TensorType(found.shape, self.dtype))
        rows = [n + self._rows for n in found.rows]
        columns = [n + self._columns for n in found.columns]
        return self._matrix.arrange_block(self._matrix.block(rows, columns), found)

    def _index_symbolic(self, index: Any) -> Any:
        """Index a block of symbolic size: the whole matrix is evaluated, then indexed."""
        rows, columns = (math.prod(part) for part in self._axes[1:])
        whole = self._matrix.whole((self._rows, rows), (self._columns, columns))
        return reshape(whole, self.shape)[index]


@checked_methods(late=True)
class DerivativeMatrix(ABC):
    """Base class of Jacobians and Hessians: layout, indexing and counters."""

    _matrix: Matrix
    # The derivatives of the function itself, which show whether samples are independent.
    _values: Matrix
    _blocks: tuple[tuple[Block, ...], ...]
    _whole: Block | None

    def _lay_out(self, matrix: Matrix, values: Matrix, blocks: bool, flat: bool) -> None:
        self._matrix, self._values = matrix, values
        outputs, inputs = matrix.outputs, matrix.inputs
        lead = outputs.lead()
        self._blocks = blocks_in(matrix, flat=flat)
        single = len(outputs.shapes) == len(inputs.shapes) == 1
        if not flat and not blocks and not single:
            raise OptionError(
                "a Jacobian of several inputs or outputs has no shape of its own unless flat",
                hint="ask for blocks=True, or leave out flat=False",
            )
        total = (lead, (outputs.offsets()[-1],), (inputs.offsets()[-1],))
        self._whole = None if blocks else Block(matrix, total, 0, 0)
        if not blocks and not flat:
            self._whole = self._blocks[0][0]

    @property
    def shape(self) -> Any:
        """Shape as an array; with `blocks`, the shapes of all blocks in nested tuples."""
        if self._whole is not None:
            return self._whole.shape
        return tuple(tuple(b.shape for b in row) for row in self._blocks)

    @property
    def dtype(self) -> DType:
        """Common dtype of inputs and outputs."""
        return self._matrix.dtype

    @property
    def blocks(self) -> tuple[tuple[Block, ...], ...]:
        """Blocks as nested tuples: one tuple per output with one block per input."""
        return self._blocks

    def whole(self) -> Any:
        """Return all of it as one variable of shape `(N, M)` or `(B, N, M)`."""
        matrix = self._matrix
        extents = matrix.outputs.offsets()[-1], matrix.inputs.offsets()[-1]
        shape = (*matrix.outputs.lead(), *extents)
        return Block(matrix, (shape[:-2], shape[-2:-1], shape[-1:]), 0, 0)[...]

    @property
    def passes(self) -> Passes:
        """Numbers of rows and columns evaluated so far."""
        return self._matrix.passes

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.dtype} {self.shape}>"

    def _repr_html_(self) -> str:
        """Return an HTML table of the layout and of what was evaluated, without evaluating more."""
        outputs, inputs = self._matrix.outputs, self._matrix.inputs
        return facts(
            f"{type(self).__name__} of {self._matrix.name}",
            [
                ("shape", str(self.shape)),
                ("dtype", str(self.dtype)),
                ("samples", "" if outputs.batch is None else str(outputs.batch)),
                ("outputs", _shapes(outputs, self.dtype)),
                ("inputs", _shapes(inputs, self.dtype)),
                *_pass_counts(self._matrix),
            ],
            ["evaluated where it is indexed"],
        ).html()

    def __len__(self) -> int:
        return len(self._blocks if self._whole is None else self._whole)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Any:
        """Index the matrix; with `blocks`, index the nested tuple of blocks."""
        if self._whole is not None:
            return self._whole[index]
        if not isinstance(index, tuple):
            return self._blocks[index]
        found: Any = self._blocks
        for entry in index[:2]:
            found = found[entry]
        return found[index[2:]] if len(index) > 2 else found

    def check_independent(self, feed: Mapping[str, Any] | None = None) -> None:
        """Check that the samples of a batch do not mix, if that was not checked before.

        First by the structure of the program, as without `check=False`: whether every operation
        between inputs and outputs keeps the samples independent. If that is not conclusive, by
        evaluation on the arrays in `feed`, by name: whether no output of one sample changes with
        another sample.

        Raises `MixedSamplesError` if samples mix, or may mix and there is no `feed`.
        """
        with located(origin_of):
            if self._matrix.outputs.batch is None:
                raise OptionError("there are no samples without is_batched=True")
            if not isinstance(self._values, LazyJacobian):
                raise OptionError(
                    "check_independent is for variables of a program",
                    hint="leave out check=False, and samples of tensors are told apart",
                )
            require_independent(self._values.operator, feed)


def blocks_in(matrix: Matrix, *, flat: bool = False) -> tuple[tuple[Block, ...], ...]:
    """Return one tuple of blocks per output, with the axes of output and input, or `flat`."""
    outputs, inputs = matrix.outputs, matrix.inputs
    lead = outputs.lead()
    return tuple(
        tuple(
            Block(
                matrix,
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


def _pass_counts(matrix: Matrix) -> list[tuple[str, str]]:
    """Return the numbers of evaluated rows and columns for display."""
    passes = matrix.passes
    return [
        ("evaluated", f"{passes.reverse} rows by reverse mode"),
        ("", f"{passes.forward} columns by forward mode"),
    ]


def _shapes(layout: Layout, dtype: DType) -> str:
    """Format the types of the first few arrays."""
    shown = [str(TensorType(s, dtype)) for s in layout.shapes[:_SHOWN]]
    more = len(layout.shapes) - len(shown)
    return ", ".join([*shown, f"{more} more"] if more else shown)
