"""C code for calls of functions on whole arrays."""

from __future__ import annotations

from typing import final

import numpy as np

from primgraph.codegen.ir.extents import ATOM
from primgraph.codegen.ir.statements import Routine
from primgraph.codegen.lower.nests import routines
from primgraph.codegen.ops.c.call_lines import Call
from primgraph.codegen.ops.c.spellings import C_TYPES
from primgraph.codegen.targets.export.nests.formulas import kind_of
from primgraph.codegen.targets.export.page import Page, declare
from primgraph.ir.types import DType, TensorType

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
