"""C code for a loop nest in the style of a person: as few loops as possible."""

from __future__ import annotations

from math import prod
from typing import final

from primgraph.codegen.ir.c_extents import is_few, is_zero
from primgraph.codegen.ir.statements import Nest
from primgraph.codegen.targets.export.nests.elements import Elements
from primgraph.codegen.targets.export.nests.grid import grid_of
from primgraph.codegen.targets.export.nests.reductions import Reductions
from primgraph.codegen.targets.export.page import Page

# Block length of longer sums, which reduces rounding errors.
_BLOCK = 256


def nest(page: Page, item: Nest) -> None:
    """Write the statements of a nest."""
    for n in item.indexed_sizes():
        # No index is valid.
        page.open(f"if ({page.size(n)} == 0 && {page.size(prod(item.domain))} != 0)")
        page.line("return 1;")
        page.fail()
        page.close()
    loops = _Loops(page, item)
    loops.reductions.begin_others()
    if not is_zero(prod(item.domain)):
        loops.level(0)


@final
class _Loops:
    """The nested loops of one nest."""

    def __init__(self, page: Page, item: Nest) -> None:
        self.page, self.grid = page, grid_of(item, page.loops)
        self.reductions = Reductions(page, item, self.grid)
        self.elements = Elements(page, item, self.grid, self.reductions)

    def level(self, depth: int) -> None:
        """Write the loops inside `depth` loops."""
        self.reductions.begin(depth)
        if depth == len(self.grid.axes):
            self.elements.write()
        elif depth + 1 == len(self.grid.axes) and self.in_blocks(depth):
            self.blocks(depth)
        else:
            i, n = self.grid.variables[depth], self.grid.extents[depth]
            self.page.open_for(i, n)
            self.level(depth + 1)
            self.page.close()
        self.reductions.end(depth)

    def in_blocks(self, depth: int) -> bool:
        sums = self.reductions.sums(depth)
        floats = [n for n in sums if self.page.type(n.value).dtype.kind == "f"]
        return bool(floats) and not is_few(self.grid.extents[depth], 2 * _BLOCK)

    def blocks(self, depth: int) -> None:
        """Write the innermost loop in blocks, with a partial sum per block."""
        page, i, n = self.page, self.grid.variables[depth], self.grid.extents[depth]
        first, last = page.name("first"), page.name("last")
        sums = self.reductions.sums(depth)
        page.open(f"for (long {first} = 0; {first} < {page.size(n)}; {first} += {_BLOCK})")
        more = f"{first} < {page.size(n - _BLOCK)} ? {first} + {_BLOCK}"
        page.line(f"const long {last} = {more} : {page.size(n)};")
        whole = self.reductions.begin_parts(sums)
        page.open(f"for (long {i} = {first}; {i} < {last}; {i}++)")
        self.level(depth + 1)
        page.close()
        self.reductions.end_parts(sums, whole)
        page.close()
