"""A back end for nests: a subroutine of Fortran 90, with arrays as vectors from index 0."""

from collections.abc import Iterator

from primgraph.codegen.ir.access import row_major
from primgraph.codegen.ir.limits import Limits
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import (
    PLAIN,
    Nest,
    Nests,
    Node,
    Operand,
    Product,
    values_written,
)
from primgraph.codegen.lower.nests.nests import nests
from primgraph.errors import CompileError
from primgraph.ir.graph import Graph

# The table of spellings: primitives of one element, and how reductions begin and go on. Views,
# literals and the copies that joining and padding need are nests without any of these.
ELEMENTWISE = {
    **{"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}"},
    **{"maximum": "max({}, {})", "minimum": "min({}, {})", "abs": "abs({})", "sqrt": "sqrt({})"},
    **{name: f"{name}({{}})" for name in ("sin", "cos", "tanh", "exp", "log")},
}
REDUCTIONS = {
    "sum": ("0d0", "{} + {}"),
    "max": ("-huge(1d0)", "max({}, {})"),
    "min": ("huge(1d0)", "min({}, {})"),
}
# Nothing in blocks of rows, which are for caches and threads.
WHOLE = Limits(cache=1 << 60)


def fortran(graph: Graph) -> str:
    """The text of a subroutine `f`, which takes the inputs, then arrays for the results."""
    plan = nests(schedule(graph), WHOLE, complete=True, alone=True)
    if any(str(t.dtype) != "float64" for t in plan.types.values()):
        raise CompileError("this back end has float64 only")
    count = plan.schedule.inputs
    given = ", ".join(f"m{v}" for v in (*range(count), *plan.outputs))
    lines = [f"subroutine f({given})", "  implicit none"]
    lines += [declaration(plan, v, "intent(in)") for v in range(count)]
    lines += [declaration(plan, v, "intent(out)") for v in plan.outputs]
    lines += [constant(plan, v) for v in plan.constants]
    written = dict.fromkeys(v for item in plan.items for v in values_written(item))
    lines += [declaration(plan, v) for v in written if v not in plan.outputs]
    nodes = [n for item in plan.items if isinstance(item, Nest) for n in item.nodes]
    lines += [f"  real(8) :: v{n.value}" for n in nodes if n.kind in PLAIN]
    axes = 1 + max((len(x.domain) for x in plan.items if isinstance(x, Nest)), default=2)
    lines.append(f"  integer :: {', '.join(f'i{k}' for k in range(max(axes, 3)))}")
    for item in plan.items:
        lines += [f"  {line}" for line in statements(plan, item)]
    return "\n".join([*lines, "end subroutine f", ""])


def declaration(plan: Nests, value: int, *attributes: str) -> str:
    last = plan.types[value].size - 1
    return f"  {', '.join(['real(8)', *attributes])} :: m{value}(0:{last})"


def constant(plan: Nests, value: int) -> str:
    numbers = ", ".join(map(number, plan.constants[value].reshape(-1).tolist()))
    return f"{declaration(plan, value)} = [{numbers}]"


def number(value: float | str) -> str:
    """A number of Python or of C as one of Fortran, in double precision."""
    text = repr(float(value.strip("()") if isinstance(value, str) else value))
    text = text.replace("e", "d") if "e" in text else f"{text}d0"
    return f"({text})" if text.startswith("-") else text


# Statements.


def statements(plan: Nests, item: object) -> Iterator[str]:
    if isinstance(item, Nest):
        for node in item.nodes:
            if node.kind in REDUCTIONS:
                yield f"m{node.value} = {REDUCTIONS[node.kind][0]}"
        body = [line for node in item.nodes for line in element(item, node)]
        yield from loops(item.domain, body)
    elif isinstance(item, Product):
        yield from product(plan, item)
    else:
        raise CompileError(f"this back end has no {type(item).__name__}")


def loops(domain: tuple[int, ...], body: list[str]) -> Iterator[str]:
    for k, n in enumerate(domain):
        yield f"{'  ' * k}do i{k} = 0, {n - 1}"
    yield from (f"{'  ' * len(domain)}{line}" for line in body)
    yield from (f"{'  ' * k}end do" for k in reversed(range(len(domain))))


def element(nest: Nest, node: Node) -> Iterator[str]:
    """The lines of a node for one index."""
    args = [read(o) for o in node.operands]
    place = f"m{node.value}({index(node.offset, node.strides)})"
    if node.kind in REDUCTIONS:
        yield f"{place} = {REDUCTIONS[node.kind][1].format(place, *args)}"
    elif node.kind == "put":
        yield f"{place} = {args[0]}"
    else:
        name = node.step.op.name if node.step is not None else node.kind
        if node.kind not in ("text", "call", "copy") or name not in (*ELEMENTWISE, "copy"):
            raise CompileError(f"this back end has no {name}")
        yield f"v{node.value} = {ELEMENTWISE.get(name, '{}').format(*args)}"
        if node.value in nest.stored:
            yield f"m{node.value}({index(0, row_major(nest.domain))}) = v{node.value}"


def read(x: Operand) -> str:
    if x.value >= 0:
        return f"v{x.value}"
    return f"m{x.root}({index(x.offset, x.strides)})" if x.root >= 0 else number(x.text)


def index(offset: int, strides: tuple[int, ...]) -> str:
    terms = [f"i{k} * {s}" for k, s in enumerate(strides) if s]
    return " + ".join([str(offset), *terms]).replace("+ -", "- ")


def product(plan: Nests, item: Product) -> Iterator[str]:
    """The loops of a product of two matrices."""
    m, n = plan.types[item.value].shape
    out = f"m{item.value}({index(0, (n, 1))})"
    (a, b), (c, d) = item.left.strides, item.right.strides
    x = f"m{item.left.root}({index(item.left.offset, (a, 0, b))})"
    y = f"m{item.right.root}({index(item.right.offset, (0, d, c))})"
    if not item.is_added:
        yield f"m{item.value} = 0d0"
    yield from loops((m, n, item.step.operands[0].shape[-1]), [f"{out} = {out} + {x} * {y}"])
