"""C code for calls of functions on whole arrays."""

from __future__ import annotations

from typing import final

import numpy as np

from primgraph.codegen.ir.access import Access, row_major
from primgraph.codegen.ir.c_extents import is_few, is_one, is_zero
from primgraph.codegen.ir.extents import ATOM, UNARY
from primgraph.codegen.ir.statements import Product, Routine
from primgraph.codegen.lower.nests import routines
from primgraph.codegen.ops.c.call_lines import Call
from primgraph.codegen.ops.c.spellings import C_TYPES, type_name
from primgraph.codegen.targets.export.page import Page, declare, write_source_comment
from primgraph.codegen.targets.export.places import kind_of
from primgraph.codegen.targets.export.sizes import offset_address
from primgraph.ir.assumptions import is_at_least
from primgraph.ir.dims import Dim, typical
from primgraph.ir.types import DType, Shape, TensorType

_DTYPES: dict[str, DType] = {kind: np.dtype(name) for name, kind in C_TYPES.items() if name != "b1"}


def routine(page: Page, item: Routine) -> None:
    """Write the statements of a call."""
    for v in item.values:
        declare(page, page.place(v), page.type(v))
    lines = routines.routine(item.step)
    assert lines is not None
    for line in list(lines(_Call(page, item))):
        page.line(line)


@final
class _Call(Call):
    """Names of a call: those of arrays are the user's."""

    def __init__(self, page: Page, item: Routine) -> None:
        super().__init__(item.step)
        values = (*item.operands, *item.values)
        self.page, self.kinds = page, [kind_of(page.type(v).dtype) for v in values]
        self.pointers = [_address(page, v) for v in values]
        self.index = page.loops[0]

    def array(self, k: int, kind: str, *, const: bool = False) -> str:
        pointer = self.pointers[k]
        if kind == self.kinds[k]:
            return pointer
        return f"({'const ' if const else ''}{kind} *){pointer}"

    def room(self, kind: str, count: int) -> str:
        return self.page.allocate_workspace(TensorType((count,), _DTYPES[kind]))

    def size(self, n: int) -> str:
        return self.page.size(n, ATOM)

    def use(self, function: str) -> str:
        return self.page.use(function)

    def fail(self) -> None:
        self.page.fail()


def _address(page: Page, value: int) -> str:
    """Return a pointer to the elements of a value; a scalar constant gets a variable."""
    place = page.place(value)
    if value in page.scope.plan.constants and place.is_number:
        name = page.names.fresh("", "given")
        page.line(f"const {kind_of(page.type(value).dtype)} {name} = {place.text};")
        return f"&{name}"
    return place.pointer


# Minimum length of rows for adding row by row instead of element by element.
_LONG = 8
# Minimum length of sums that are split into several partial sums, for accuracy and speed.
_DEEP = 16
# Minimum number of multiplications for a call of BLAS.
_LARGE = 32**3


def product(page: Page, item: Product) -> None:
    """Write the statements of a product."""
    if not is_zero(item.step.results[0].size):
        _Loops(page, item).write()


@final
class _Loops:
    """A product of stacks of matrices, as loops over all axes of size other than 1."""

    def __init__(self, page: Page, item: Product) -> None:
        type = item.step.results[0]
        self.page, self.item, self.dtype = page, item, type.dtype
        batch: Shape = type.shape[:-2]
        self.m, self.n = type.shape[-2:]
        self.depth = item.step.operands[0].shape[-1]
        axes = [d for d, n in enumerate(batch) if not is_one(n)]
        count = len(axes)
        self.outer = list(zip(axes, page.loops, strict=False))
        self.extents = [batch[d] for d in axes]
        self.row, self.column, self.along = page.loops[count : count + 3]
        self.out = Access(item.value, 0, row_major(type.shape))

    @property
    def is_long(self) -> bool:
        """Return whether rows on the right are long enough for adding row by row."""
        return not is_zero(self.depth) and typical(self.n) >= _LONG

    @property
    def zero(self) -> str:
        return "0.0f" if self.dtype.itemsize == 4 else "0.0"

    def place(self, access: Access, *inner: tuple[str, int]) -> str:
        """Return the index expression of a matrix element; indices are given with their axes."""
        variables = [name for _, name in self.outer] + [name for name, _ in inner]
        strides = [access.strides[d] for d, _ in self.outer]
        strides += [access.strides[d] for _, d in inner]
        return self.page.index(access.offset, variables, strides)

    def element(self, access: Access, *inner: tuple[str, int]) -> str:
        return self.page.place(access.root).element(self.place(access, *inner))

    def address(self, access: Access, *inner: tuple[str, int]) -> str:
        held = self.page.place(access.root)
        return (
            held.pointer
            if held.is_number
            else offset_address(held.text, self.place(access, *inner))
        )

    def write(self) -> None:
        page, item = self.page, self.item
        write_source_comment(page, item.step.source)
        for (_, name), count in zip(self.outer, self.extents, strict=True):
            self.page.open_for(name, count)
        inner = [] if is_few(self.m, 1) else [(self.row, -2)]
        if not (page.blas and self.write_blas_call()):
            if inner:
                self.page.open_for(self.row, self.m)
            if self.is_long and is_one(item.right.strides[-1]):
                self.write_rows(inner)
            else:
                self.write_elements(inner)
            if inner:
                page.close()
        for _ in self.outer:
            page.close()

    def write_rows(self, inner: list[tuple[str, int]]) -> None:
        """Write additions of multiples of the rows on the right."""
        page, across = self.page, (self.column, -1)
        if not self.item.is_added:
            self.page.open_for(self.column, self.n)
            page.line(f"{self.element(self.out, *inner, across)} = {self.zero};")
            page.close()
        self.page.open_for(self.along, self.depth)
        factor, kind = page.names.fresh("factor"), kind_of(self.dtype)
        page.line(
            f"const {kind} {factor} = {self.element(self.item.left, *inner, (self.along, -1))};"
        )
        self.page.open_for(self.column, self.n)
        term = self.element(self.item.right, (self.along, -2), across)
        page.line(f"{self.element(self.out, *inner, across)} += {factor} * {term};")
        page.close()
        page.close()

    def write_elements(self, inner: list[tuple[str, int]]) -> None:
        """Write a sum for each element of the result."""
        page, left, right = self.page, self.item.left, self.item.right
        across = [] if is_few(self.n, 1) else [(self.column, -1)]
        if across:
            self.page.open_for(self.column, self.n)
        held = page.place(self.item.value)
        whole = held.is_number and not held.is_declared
        held.is_declared = True
        kind, target = kind_of(self.dtype), self.element(self.out, *inner, *across)
        sign = "+=" if self.item.is_added else "="
        if typical(self.depth) >= _DEEP:
            x, y = self.address(left, *inner), self.address(right, *across)
            dot = page.use(f"pg_dot_{type_name(self.dtype)}")
            along, down, count = map(page.size, (left.strides[-1], right.strides[-2], self.depth))
            text = f"{dot}({x}, {along}, {y}, {down}, {count})"
            page.line(f"{f'{kind} {held.text}' if whole else target} {sign} {text};")
        else:
            total = held.text if whole else page.names.fresh("sum")
            page.line(f"{kind} {total} = {self.zero};")
            if not is_zero(self.depth):
                self.page.open_for(self.along, self.depth)
                x = self.element(left, *inner, (self.along, -1))
                y = self.element(right, (self.along, -2), *across)
                page.line(f"{total} += {x} * {y};")
                page.close()
            if not whole:
                page.line(f"{target} {sign} {total};")
        if across:
            page.close()

    def write_blas_call(self) -> bool:
        """Write a call of BLAS if the product is large and its strides are supported."""
        m, n, k = self.m, self.n, self.depth
        left, right = _blas_layout(self.item.left, (m, k)), _blas_layout(self.item.right, (k, n))
        if typical(m * n * k) < _LARGE or left is None or right is None:
            return False
        single = self.dtype.itemsize == 4
        name, one = ("cblas_sgemm", "1.0f") if single else ("cblas_dgemm", "1.0")
        x, y, z = (self.address(a) for a in (self.item.left, self.item.right, self.out))
        sizes = f"CblasRowMajor, {left[0]}, {right[0]}, {', '.join(map(self.narrow, (m, n, k)))}"
        self.page.use("cblas")
        self.page.line(f"{name}({sizes}, {one},")
        before = one if self.item.is_added else self.zero
        lead = [self.lead(apart) for apart in (left[1], right[1], n)]
        self.page.line(f"    {x}, {lead[0]}, {y}, {lead[1]}, {before}, {z}, {lead[2]});")
        return True

    def narrow(self, n: int) -> str:
        """Return a size as a BLAS argument."""
        return f"(int){self.page.size(n, UNARY)}" if type(n) is Dim else str(n)

    def lead(self, n: int) -> str:
        """Return the row stride for BLAS, which requires at least 1."""
        most = self.page.use("pg_most") if type(n) is Dim else ""
        return f"(int){most}({self.page.size(n)}, 1)" if most else str(n)


def _blas_layout(access: Access, shape: tuple[int, int]) -> tuple[str, int] | None:
    """Return how BLAS reads a matrix, plain or transposed, and its row stride; or None."""
    down, across = access.strides[-2:]
    if is_one(across) and is_at_least(down, shape[1]):
        return "CblasNoTrans", down
    if is_one(down) and is_at_least(across, shape[0]):
        return "CblasTrans", across
    return None
