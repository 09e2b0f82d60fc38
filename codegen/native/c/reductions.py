"""Writes reductions in C: what they begin with, along a strip, along its rows, and across strips.

Along a strip a function of the runtime reduces it, in an order of its own; its result is combined
with what is in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from primgraph.codegen.native.c.extents import extent
from primgraph.codegen.native.c.spellings import moved_type, type_name
from primgraph.codegen.native.c.strip_mining import Strips
from primgraph.codegen.native.c.walk import IDENTITY
from primgraph.codegen.native.items import Node
from primgraph.ir.types import TensorType

# As many elements are added up without a loop.
_FEW = 16


def first_of(kind: str, type: TensorType) -> str:
    """What a reduction begins with, as C writes it."""
    if type.dtype.kind not in "biu" or kind not in ("max", "min"):
        return IDENTITY[kind]
    # Integers begin with the first of what they are the extremum of.
    bits, signed = 8 * type.dtype.itemsize, type.dtype.kind == "i"
    if kind == "max":
        return f"INT{bits}_MIN" if signed else "0"
    return f"INT{bits}_MAX" if signed else f"UINT{bits}_MAX"


def begun(kind: str, type: TensorType, place: str) -> str:
    """The statement that lets all elements of a result, in memory at `place`, begin."""
    start, c = first_of(kind, type), moved_type(type.dtype)
    target = f"(({c} *){place})"
    if type.size == 1:
        return f"{target}[0] = {start};"
    return f"for (long i = 0; i < {extent(type.size)}; i++) {target}[i] = {start};"


def combined(kind: str, target: str, text: str) -> str:
    """The statement that combines what is in `target` with what `text` says."""
    match kind:
        case "sum":
            return f"{target} += {text};"
        case "prod":
            return f"{target} *= {text};"
        case _:
            # Of zeros of both signs the last one counts, as in NumPy. A NaN wins, and stays.
            sign = ">=" if kind == "max" else "<="
            return f"if ({text} {sign} {target} || {text} != {text}) {target} = {text};"


def accumulated(strips: Strips, node: Node, here: Set[int]) -> str:
    """A reduction across strips: an element of the result for each of a strip."""
    text = strips.argument(node.operands[0], here)
    target = f"w{node.value}[{strips.walk.index(0, node.strides)}]"
    return combined(node.kind, target, text)


def reduced(strips: Strips, node: Node, count: str) -> Iterator[str]:
    """A reduction along a strip of `count` elements, or along each of its rows."""
    flat, (o,) = strips.walk.flat, node.operands
    if flat is not None and flat.is_segmented(node):
        yield from _rows_reduced(strips, node, count)
        return
    dtype = strips.types(node.value).dtype
    kind, name = moved_type(dtype), type_name(dtype)
    target = f"w{node.value}[{strips.walk.base(0, node.strides)}]"
    run = strips.run(o)
    if run is None:
        yield f"const {kind} one{node.value} = {o.text};"
        run = f"&one{node.value}", "0"
    given = ", ".join([*run, count])
    if node.kind == "prod":
        yield f"{target} = pg_prod_{name}({given}, {target});"
        return
    statement = combined(node.kind, target, "part")
    yield f"{{ const {kind} part = pg_{node.kind}_{name}({given}); {statement} }}"


def _rows_reduced(strips: Strips, node: Node, count: str) -> Iterator[str]:
    flat, run = strips.walk.flat, strips.run(node.operands[0])
    assert flat is not None
    assert run is not None
    dtype = strips.types(node.value).dtype
    n, kind, name = flat.width, moved_type(dtype), type_name(dtype)
    first = strips.walk.first_row(0, node.strides)
    target = f"w{node.value}[{first} + q * {extent(node.strides[flat.row])}]"
    yield f"for (long q = 0; q < {count} / {n}; q++) {{"
    yield f"    const {kind} *p = {run[0]} + q * {n};"
    if node.kind == "prod":
        yield f"    {target} = pg_prod_{name}(p, 1, {n}, {target});"
    elif node.kind == "sum" and n <= _FEW:
        yield f"    {target} += {_in_pairs([f'p[{t}]' for t in range(n)])};"
    else:
        yield f"    const {kind} part = pg_{node.kind}_{name}(p, 1, {n});"
        yield f"    {combined(node.kind, target, 'part')}"
    yield "}"


def _in_pairs(terms: Sequence[str]) -> str:
    """The sum of some terms, in pairs, whose sums are added up in pairs."""
    while len(terms) > 1:
        pairs = [f"({' + '.join(terms[k : k + 2])})" for k in range(0, len(terms), 2)]
        terms = pairs
    return terms[0]
