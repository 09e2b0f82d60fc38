"""C code for reductions: initial values, along a strip, along its rows, and across strips.

Along a strip a runtime function reduces in its own order; its result is combined with the value in
memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from primgraph.codegen.ir.c_extents import extent
from primgraph.codegen.ir.statements import Node
from primgraph.codegen.ops.c.spellings import moved_type, type_name
from primgraph.codegen.targets.c.strip_mining import Strips
from primgraph.codegen.targets.c.walk import IDENTITY
from primgraph.ir.types import TensorType

# Maximum number of elements that are added without a loop.
_FEW = 16
# Minimum number of sums in one loop: a single one has a function.
_JOINT = 2


def first_of(kind: str, type: TensorType) -> str:
    """Return the initial value of a reduction in C."""
    if type.dtype.kind not in "biu" or kind not in ("max", "min"):
        return IDENTITY[kind]
    # The extremum of integers begins with the least or greatest of the dtype.
    bits, signed = 8 * type.dtype.itemsize, type.dtype.kind == "i"
    if kind == "max":
        return f"INT{bits}_MIN" if signed else "0"
    return f"INT{bits}_MAX" if signed else f"UINT{bits}_MAX"


def initial_statement(kind: str, type: TensorType, place: str) -> str:
    """Return the statement that initialises all elements of a result at `place`."""
    start, c = first_of(kind, type), moved_type(type.dtype)
    target = f"(({c} *){place})"
    if type.size == 1:
        return f"{target}[0] = {start};"
    return f"for (long i = 0; i < {extent(type.size)}; i++) {target}[i] = {start};"


def accumulation_statement(kind: str, target: str, text: str) -> str:
    """Return the statement that combines `text` into `target`."""
    match kind:
        case "sum":
            return f"{target} += {text};"
        case "prod":
            return f"{target} *= {text};"
        case _:
            # Of signed zeros the last one counts, as in NumPy. NaN propagates.
            sign = ">=" if kind == "max" else "<="
            return f"if ({text} {sign} {target} || {text} != {text}) {target} = {text};"


def strip_accumulation(strips: Strips, node: Node, here: Set[int]) -> str:
    """Return a reduction across strips: each element of a strip has its own result."""
    text = strips.argument(node.operands[0], here)
    target = f"w{node.value}[{strips.walk.index(node.offset, node.strides)}]"
    return accumulation_statement(node.kind, target, text)


def write_reduction(strips: Strips, node: Node, count: str) -> Iterator[str]:
    """Yield a reduction along a strip of `count` elements, or along each of its rows."""
    flat, (o,) = strips.walk.flat, node.operands
    if flat is not None and flat.is_segmented(node):
        yield from _rows_reduced(strips, node, count)
        return
    dtype = strips.types(node.value).dtype
    kind, name = moved_type(dtype), type_name(dtype)
    target = f"w{node.value}[{strips.walk.base(node.offset, node.strides)}]"
    run = strips.run(o)
    if run is None:
        yield f"const {kind} one{node.value} = {strips.element(o)};"
        run = f"&one{node.value}", "0"
    given, function = ", ".join([*run, count]), strips.use(f"pg_{node.kind}_{name}")
    if node.kind == "prod":
        yield f"{target} = {function}({given}, {target});"
        return
    statement = accumulation_statement(node.kind, target, "part")
    yield f"{{ const {kind} part = {function}({given}); {statement} }}"


def are_joint_sums(strips: Strips, nodes: Sequence[Node]) -> bool:
    """Return whether several reductions along a strip are sums that one loop computes."""
    if strips.walk.flat is not None or len(nodes) < _JOINT:
        return False
    runs = [strips.run(node.operands[0]) for node in nodes]
    dtypes = {strips.types(node.value).dtype for node in nodes}
    plain = all(node.kind == "sum" for node in nodes) and all(run and run[1] == "1" for run in runs)
    return plain and len(dtypes) == 1 and dtypes.pop().kind == "f"


def write_joint_sums(strips: Strips, nodes: Sequence[Node], count: str) -> Iterator[str]:
    """Yield one loop for several sums along a strip, in the order of the runtime function.

    Additions to one run wait for each other; those of several sums do not.
    """
    name = type_name(strips.types(nodes[0].value).dtype)
    runs = [run for node in nodes if (run := strips.run(node.operands[0])) is not None]
    starts = ", ".join([f"s{node.value} = {{0}}" for node in nodes])
    yield f"{{ pg_octet_{name} {starts}; long k = 0;"
    yield f"  for (; k + 8 <= {count}; k += 8) {{"
    for node, (first, _) in zip(nodes, runs, strict=True):
        yield f"      s{node.value} += *(const pg_octet_{name} *)({first} + k);"
    yield "  }"
    for node, (first, _) in zip(nodes, runs, strict=True):
        target = f"w{node.value}[{strips.walk.base(node.offset, node.strides)}]"
        total = strips.use(f"pg_total_{name}")
        yield f"  {target} += {total}(s{node.value}, {first} + k, {count} - k);"
    yield "}"


def _rows_reduced(strips: Strips, node: Node, count: str) -> Iterator[str]:
    flat, run = strips.walk.flat, strips.run(node.operands[0])
    assert flat is not None
    assert run is not None
    dtype = strips.types(node.value).dtype
    n, kind, name = flat.width, moved_type(dtype), type_name(dtype)
    first = strips.walk.first_row(node.offset, node.strides)
    target = f"w{node.value}[{first} + q * {extent(node.strides[flat.row])}]"
    yield f"for (long q = 0; q < {count} / {n}; q++) {{"
    yield f"    const {kind} *p = {run[0]} + q * {n};"
    if node.kind == "prod":
        yield f"    {target} = {strips.use(f'pg_prod_{name}')}(p, 1, {n}, {target});"
    elif node.kind == "sum" and n <= _FEW:
        yield f"    {target} += {_in_pairs([f'p[{t}]' for t in range(n)])};"
    else:
        yield f"    const {kind} part = {strips.use(f'pg_{node.kind}_{name}')}(p, 1, {n});"
        yield f"    {accumulation_statement(node.kind, target, 'part')}"
    yield "}"


def _in_pairs(terms: Sequence[str]) -> str:
    """Return the pairwise sum of some terms."""
    while len(terms) > 1:
        pairs = [f"({' + '.join(terms[k : k + 2])})" for k in range(0, len(terms), 2)]
        terms = pairs
    return terms[0]
