"""Writes products of matrices as loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from primgraph.codegen.export.formulas import kind_of
from primgraph.codegen.export.words import index
from primgraph.codegen.native.access import row_major
from primgraph.codegen.native.items import Product

if TYPE_CHECKING:
    from primgraph.codegen.export.function import Writer

# Rows of this many elements are added up as rows; shorter ones element by element.
_LONG = 8


def product(page: Writer, item: Product) -> None:
    """The loops of a product; each element is a sum, in order."""
    type = item.step.results[0]
    if not type.size:
        return
    page.say(item.step.source)
    kind, zero = kind_of(type.dtype), "0.0f" if type.dtype.itemsize == 4 else "0.0"
    batch, (m, n) = type.shape[:-2], type.shape[-2:]
    depth = item.step.operands[0].shape[-1]
    axes = [d for d, extent in enumerate(batch) if extent != 1]
    names = page.loops
    outer, (row, column, along) = names[: len(axes)], names[len(axes) : len(axes) + 3]
    place = page.place(item.value)
    left, right = (page.place(v) if depth else place for v in (item.left.root, item.right.root))
    strides = row_major(type.shape)
    for d, name in zip(axes, outer, strict=True):
        page.open(f"for (long {name} = 0; {name} < {batch[d]}; {name}++)")

    def element(which: str, *inner: tuple[str, int]) -> str:
        holder, offset, steps = {
            "out": (place, 0, strides),
            "left": (left, item.left.offset, item.left.strides),
            "right": (right, item.right.offset, item.right.strides),
        }[which]
        variables = [*outer, *(name for name, _ in inner)]
        by = [*(steps[d] for d in axes), *(steps[d] for _, d in inner)]
        return holder.element(index(offset, variables, by))

    opened = len(axes)
    rows = (row, -2) if m > 1 else None
    if rows:
        page.open(f"for (long {row} = 0; {row} < {m}; {row}++)")
        opened += 1
    inner = [rows] if rows else []
    if depth and n >= _LONG and item.right.strides[-1] == 1:
        page.open(f"for (long {column} = 0; {column} < {n}; {column}++)")
        page.line(f"{element('out', *inner, (column, -1))} = {zero};")
        page.close()
        page.open(f"for (long {along} = 0; {along} < {depth}; {along}++)")
        factor = page.name("factor")
        page.line(f"const {kind} {factor} = {element('left', *inner, (along, -1))};")
        page.open(f"for (long {column} = 0; {column} < {n}; {column}++)")
        target = element("out", *inner, (column, -1))
        page.line(f"{target} += {factor} * {element('right', (along, -2), (column, -1))};")
        page.close()
        page.close()
    else:
        columns = [(column, -1)] if n > 1 else []
        if columns:
            page.open(f"for (long {column} = 0; {column} < {n}; {column}++)")
            opened += 1
        whole = place.is_number and not place.is_declared
        total = place.text if whole else page.name("sum")
        place.is_declared = True
        page.line(f"{kind} {total} = {zero};")
        if depth:
            page.open(f"for (long {along} = 0; {along} < {depth}; {along}++)")
            x = element("left", *inner, (along, -1))
            y = element("right", (along, -2), *columns)
            page.line(f"{total} += {x} * {y};")
            page.close()
        if not whole:
            page.line(f"{element('out', *inner, *columns)} = {total};")
    for _ in range(opened):
        page.close()
