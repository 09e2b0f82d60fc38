"""Vector calls: C calls of runtime functions on runs of elements.

A run is memory with a stride, a repeated number, or a strip buffer that is filled first.
"""

from __future__ import annotations

from collections.abc import Iterator

from primgraph.codegen.ir.statements import Node, Operand
from primgraph.codegen.ops.c.spellings import moved_type
from primgraph.codegen.targets.c.strip_mining import Strips
from primgraph.codegen.targets.c.walk import STRIP


def call(strips: Strips, node: Node, count: str) -> Iterator[str]:
    """Yield a call that computes `count` elements of a value, of one or two operands."""
    suffix = "f" if strips.types(node.value).dtype.itemsize == 4 else ""
    function, target = f"pg_{node.name}{suffix}", strips.buffer[node.value]
    if len(node.operands) == 1:
        yield from _unary_call(strips, node, function, target, count)
        return
    runs: list[str] = []
    for k, o in enumerate(node.operands):
        run = strips.run(o)
        if run is None:
            name = f"x{node.value}_{k}"
            yield from _fill_run(strips, node, o, name, count)
            run = (name, "1") if o.strides else (f"&{name}", "0")
        runs += run
    yield f"{function}({target}, {', '.join(runs)}, {count});"


def _unary_call(strips: Strips, node: Node, name: str, target: str, count: str) -> Iterator[str]:
    """Yield a unary call, whose input is contiguous and may alias the output."""
    (o,) = node.operands
    source, apart = strips.run(o) or (target, "0")
    if apart != "1":
        yield f"for (long j = 0; j < {count}; j++) {target}[j] = {strips.element(o)};"
        source = target
    yield f"{name}({target}, {source}, {count});"


def _fill_run(strips: Strips, node: Node, o: Operand, name: str, count: str) -> Iterator[str]:
    """Fill a run for an operand that is not in memory: one number, or a strip."""
    kind, text = moved_type(strips.types(node.value).dtype), strips.element(o)
    if not o.strides:
        yield f"const {kind} {name} = {text};"
        return
    yield f"{kind} {name}[{STRIP}];"
    yield f"for (long j = 0; j < {count}; j++) {name}[j] = {text};"
