"""A back end: plans printed as Python on flat lists, the places of all elements as numbers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from primgraph.codegen.ir import limits, places
from primgraph.codegen.ir.program import Plan
from primgraph.codegen.ir.schedule import schedule
from primgraph.codegen.ir.statements import Compute, Copy, Make, Release, Return, See
from primgraph.codegen.ir.views import How, Repeat
from primgraph.codegen.lower.arrays.planner import plan_schedule
from primgraph.ir.graph import Graph
from primgraph.ir.primitive import registered
from primgraph.ir.views import Expand, Permute, Reshape, Slice

Cells = np.ndarray[Any, Any]


class Card(NamedTuple):
    """What planning asks: operands may be smaller than declared, and be overwritten."""

    broadcasts: tuple[int, ...] = ()
    in_place: tuple[int, ...] = ()
    itself = spaced = fallible = False
    needs = blocking = None


# The table of spellings: expressions of elements, and of all elements that a result comes from.
ELEMENTWISE = {
    **{"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}"},
    **{"maximum": "max({}, {})", "minimum": "min({}, {})", "abs": "abs({})"},
    **{"greater": "{} > {}", "less": "{} < {}", "equal": "{} == {}", "not_equal": "{} != {}"},
    **{"select": "{1} if {0} else {2}", "integer_pow": "{} ** {n}", "logical_not": "not {}"},
    **{"unless_nan": "{0} if {1} == {1} else {1}"},
    **{name: f"math.{name}({{}})" for name in ("sin", "cos", "tanh", "exp", "log", "sqrt")},
    **{"rsqrt": "1.0 / math.sqrt({})", "sigmoid": "1.0 / (1.0 + math.exp(-{}))"},
}
REDUCTIONS = {"reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min"}
ALL = (0, 1, 2)
CARDS = {
    op: Card(ALL, ALL) if name in ELEMENTWISE else Card()
    for name, op in registered().items()
    if name in ("matmul", *ELEMENTWISE, *REDUCTIONS) or op.is_view or getattr(op, "literal", False)
}


def compiled(graph: Graph, options: limits.Options) -> tuple[Plan, Callable[..., Any]]:
    """The plan of a graph, and a function of flat lists that returns a list of such."""
    plan = plan_schedule(schedule(graph), (), options, CARDS)
    exec(printed(plan), namespace := dict[str, Any]())
    return plan, namespace["run"]


def printed(plan: Plan) -> str:
    """The text of a function `run`."""
    parameters = ", ".join(map(places.name_of, plan.arguments))
    lines = ["import math", "from math import inf, nan", f"def run({parameters}):"]
    lines.append(f"    memory = [None] * {plan.arena}")
    lines += [f"    {places.name_of(place)} = {constant(place)}" for place in plan.constants]
    sizes = [plan.schedule.types[v].size for v in plan.schedule.outputs]
    lines += [f"    r{k} = [None] * {size}" for k, size in enumerate(sizes)]
    lines += [f"    {line}" for x in plan.body for line in PRINTERS[type(x)](x)]
    returned = sorted((x.number, places.name_of(x.place)) for x in plan.body if type(x) is Return)
    return "\n".join([*lines, f"    return [{', '.join([name for _, name in returned])}]"])


def constant(place: places.Number | places.Constant) -> str:
    if not isinstance(place, places.Constant):
        return repr([place.value])
    p = place.step.params
    data = p["value"].data if "value" in p else np.arange(p["shape"][p["axis"]], dtype=p["dtype"])
    return repr(data.reshape(-1).tolist())


# Where things are: the list that a place is in, and the indices of its elements there.


def home(place: places.Place) -> str:
    root = places.root_of(place)
    return "memory" if isinstance(root, places.Buffer) else places.name_of(root)


def cells(place: places.Place, *shape: int) -> Cells:
    if isinstance(place, places.View):
        found = seen(place.how, cells(place.of))
    else:
        start = place.offset if isinstance(place, places.Buffer) else 0
        found = start + np.arange(int(np.prod(place.shape))).reshape(place.shape)
    return np.broadcast_to(found, shape) if shape else found


def seen(how: How | None, x: Cells) -> Cells:
    match how:
        case Reshape(shape):
            return x.reshape(shape)
        case Permute(axes):
            return x.transpose(axes)
        case Expand(new):
            return x[tuple(None if n else slice(None) for n in new)]
        case Slice(ranges):
            return x[tuple(slice(*r) for r in ranges)]
        case Repeat(shape):
            return np.broadcast_to(x, shape)
    raise AssertionError("a plan without regions has no blocks")


# What instructions are written as.


def compute(x: Compute) -> list[str]:
    step, name, shape = x.step, x.step.op.name, x.out.shape
    if name in ELEMENTWISE:
        terms = [f"{home(p)}[i{k}]" for k, p in enumerate(x.operands)]
        text = ELEMENTWISE[name].format(*terms, **step.params)
        return each(x.out, text, **{f"i{k}": cells(p, *shape) for k, p in enumerate(x.operands)})
    first, *others = map(cells, x.operands)
    if name in REDUCTIONS:
        reduced = step.params["axes"]
        rows = np.moveaxis(first, reduced, range(-len(reduced), 0)).reshape(*shape, -1)
        return each(x.out, f"{REDUCTIONS[name]}([{home(x.operands[0])}[i] for i in row])", row=rows)
    assert name == "matmul"
    factors = first[..., :, None, :], np.swapaxes(others[0], -1, -2)[..., None, :, :]
    rows, columns = np.broadcast_arrays(*factors)
    left, right = map(home, x.operands)
    text = f"sum([{left}[i] * {right}[j] for i, j in zip(row, column)])"
    return each(x.out, text, row=rows, column=columns)


def each(out: places.Place, text: str, **names: Cells) -> list[str]:
    """A loop that writes an expression of what has these names, one for each element of `out`."""
    places = cells(out)
    lists = [x.reshape(places.size, *x.shape[places.ndim :]).tolist() for x in names.values()]
    what = ", ".join(map(str, [places.reshape(-1).tolist(), *lists]))
    return [f"for {', '.join(['o', *names])} in zip({what}): {home(out)}[o] = {text}"]


def copy(x: Copy) -> list[str]:
    """All is read before anything is written, as both may be in one list."""
    target = [f"{places.name_of(x.out)} = [None] * {int(np.prod(x.out.shape))}"] if x.new else []
    taken = cells(x.source, *x.out.shape)
    target += [f"t = [{home(x.source)}[i] for i in {taken.reshape(-1).tolist()}]"]
    return [*target, *each(x.out, "t[k]", k=np.arange(taken.size).reshape(taken.shape))]


PRINTERS: dict[type, Callable[[Any], list[str]]] = {
    **{Compute: compute, Copy: copy},
    **dict.fromkeys((See, Make, Release, Return), lambda x: []),
}
