"""C functions of special functions, emitted from their graphs of scalar primitives."""

from __future__ import annotations

import re
from functools import cache

from primgraph.codegen.ir.schedule import Step, schedule
from primgraph.codegen.ops.c.spellings import c_type, expression_writer, function, literal
from primgraph.ir.graph import Graph
from primgraph.ir.types import FLOAT32, FLOAT64
from primgraph.primitives.special_functions.formulas import FORMULAS, Formula, piece

# The length up to which an expression that is used once stands in the one that uses it.
_SHORT = 38
# A name, or a call with one pair of parentheses.
_ATOM = re.compile(r"\w+(\([^()]*\))?")
_BY_NAME = {f"pg_{formula.name}": formula for formula in FORMULAS.values()}
_DTYPES = {"f64": FLOAT64, "f32": FLOAT32}


@cache
def functions_of(name: str) -> dict[str, str]:
    """Return the C functions of a name such as `pg_gammaln_f64` by name, callees first.

    Return an empty dict for the name of no special function.
    """
    stem, _, ending = name.rpartition("_")
    if stem not in _BY_NAME or ending not in _DTYPES:
        return {}
    formula, dtype = _BY_NAME[stem], _DTYPES[ending]
    if dtype == FLOAT64 or formula.single:
        found: dict[str, str] = {}
        _add(found, name, piece(formula.function.__name__, dtype))
        return found
    return {**functions_of(f"{stem}_f64"), name: _call_in_double(formula, stem)}


def _call_in_double(formula: Formula, stem: str) -> str:
    params = ", ".join(f"float {x}" for x in formula.operands)
    args = ", ".join(f"(double){x}" for x in formula.operands)
    body = f"return (float){stem}_f64({args});"
    return f"static inline float {stem}_f32({params}) {{ {body} }}"


def _add(found: dict[str, str], name: str, graph: Graph) -> None:
    """Add the functions that a graph calls to those `found`, and then its own."""
    for eqn in graph.body:
        if eqn.op.has_bodies:
            for branch in eqn.kwargs["branches"]:
                if branch.body and f"pg_{branch.name}" not in found:
                    _add(found, f"pg_{branch.name}", branch)
    found[name] = _function(name, graph)


def _function(name: str, graph: Graph) -> str:
    """Return a C function with a line for each value that is long or used more than once."""
    plan = schedule(graph)
    texts = {k: graph.inputs[k].hint for k in range(plan.inputs)}
    params = ", ".join(f"{c_type(plan.types[k].dtype)} {text}" for k, text in texts.items())
    (result,) = plan.outputs
    lines = [f"static inline {c_type(plan.types[result].dtype)} {name}({params}) {{"]
    for step in plan.steps:
        (value,) = step.outputs
        text = _expression(step, [texts[v] for v in step.inputs])
        if value == result:
            lines.append(f"    return {text};")
        elif step.op.has_bodies or (
            not step.op.literal and (plan.uses[value] > 1 or len(text) > _SHORT)
        ):
            lines.append(f"    const {c_type(step.results[0].dtype)} v{value} = {text};")
            text = f"v{value}"
        texts[value] = text if step.op.literal or _ATOM.fullmatch(text) else f"({text})"
    return "\n".join([*lines, "}"])


def _expression(step: Step, args: list[str]) -> str:
    """Return the C expression of a scalar primitive."""
    dtype = step.results[0].dtype
    if step.op.literal:
        return literal(step.params["value"], dtype)
    if step.op.has_bodies:
        calls = [_branch(b, args[1:]) for b in step.params["branches"]]
        return calls[0] if len(calls) == 1 else f"{args[0]} ? {calls[1]} : {calls[0]}"
    name, _ = function(step)
    if name and len(args) == 1:
        return _call(name + ("f" if dtype == FLOAT32 else ""), args)
    found = expression_writer(step)
    text = None if found is None else found(args, step)
    assert text is not None, step.op.name
    return text


def _branch(graph: Graph, args: list[str]) -> str:
    """Return the call of a piece, or the operand that it returns."""
    if graph.body:
        return _call(f"pg_{graph.name}", args)
    return args[graph.inputs.index(graph.outputs[0])]


def _call(name: str, args: list[str]) -> str:
    joined = ", ".join(args)
    is_closed = len(args) == 1 and joined.startswith("(")
    return name + (joined if is_closed else f"({joined})")
