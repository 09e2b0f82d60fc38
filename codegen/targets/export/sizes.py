"""Symbolic sizes of an exported C function: checks, and the size of its workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.c_extents import divisors
from primgraph.codegen.ir.extents import ATOM, SizeWriter
from primgraph.codegen.ir.statements import Blocks, Control, Nests
from primgraph.codegen.targets.export.extents import code, most, names_of
from primgraph.codegen.targets.export.identifiers import remark, wrap_statement
from primgraph.ir.assumptions import Condition
from primgraph.ir.dims import FLOOR, MAX, MIN, Dim, bounds, names_in
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import assumptions
from primgraph.ir.types import TensorType

# The return code for sizes that are refused.
REFUSED = -1


@final
@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a function, its assumptions about them, and the types of all values."""

    names: tuple[str, ...]
    conditions: list[tuple[Condition, Source | None]]
    types: frozenset[TensorType]

    def parameters(self) -> str:
        return ", ".join([f"long {n}" for n in self.names])

    def test(self, function: str, nbytes: int, used: set[str]) -> list[str]:
        """Return a C function that checks whether `function` accepts its sizes.

        The helper functions that it calls are added to those `used`.
        """
        lines = [f"static bool pg_fits_{function}({self.parameters()}) {{"]
        negative = " || ".join([f"{n} < 0" for n in self.names])
        lines += _return_false_if(negative)
        differences = [c.difference for c, _ in self.conditions]
        extents = [t.nbytes for t in self.types]
        every = [*(n for t in self.types for n in t.shape), *differences, *extents, nbytes]
        whole = most(every, partial(_used, used))
        lines.append("    /* No number that is computed of them may be too large. */")
        lines += wrap_statement(f"const long largest = {whole};", 1)
        lines += _return_false_if("largest > (long)(~0ul >> 2)")
        for y in dict.fromkeys(divisors(every)):
            used |= names_of(y)
            lines += _return_false_if(f"{code(y)} == 0")
        for condition, source in self.conditions:
            where = f", assumed by {source}  {source.text}".rstrip() if source else ""
            lines.append(f"    {remark(f'{condition}{where}')}")
            sign = "<" if condition.lower else "!="
            used |= names_of(condition.difference)
            lines += _return_false_if(f"{code(condition.difference)} {sign} 0")
        return [*lines, "    return true;", "}"]

    def workspace(self, function: str, nbytes: int, used: set[str]) -> list[str]:
        """Return a C function that computes the size of the workspace, by helpers `used`."""
        used |= names_of(nbytes)
        return [
            f"long {function}_workspace({self.parameters()}) {{",
            f"    if (!pg_fits_{function}({', '.join(self.names)})) {{",
            "        return -1;",
            "    }",
            f"    return {code(nbytes)};",
            "}",
        ]


def _used(used: set[str], name: str) -> str:
    used.add(name)
    return name


def sizes_of(graph: Graph, plan: Nests) -> Sizes:
    """Return the sizes of the graph of `plan`."""
    found = dict(assumptions(graph))
    for type in graph.input_types:
        for n in type.shape:
            if _may_be_negative(n):
                found.setdefault(Condition(n, True), None)  # type: ignore[arg-type]
    return Sizes(in_order(graph), list(found.items()), frozenset(_types(plan)))


def in_order(graph: Graph) -> tuple[str, ...]:
    """Return the sizes of a graph, in the order of its input axes."""
    axes = [n for type in graph.input_types for n in type.shape]
    found = [name for n in axes for name in sorted(names_in(n))]
    return tuple(dict.fromkeys([*found, *graph.sizes]))


def _may_be_negative(n: int) -> bool:
    """Return whether a size expression may be negative for some sizes."""
    return type(n) is Dim and bounds(n)[0] < 0


def _types(plan: Nests) -> Iterator[TensorType]:
    yield from (t for t in plan.types.values() if t.names)
    for item in plan.items:
        for body in item.bodies if isinstance(item, Control | Blocks) else ():
            yield from _types(body)


def _return_false_if(test: str) -> list[str]:
    return [f"    if ({test}) {{", "        return false;", "    }"]


# Constant expressions of the arguments of macros.
_MACRO = SizeWriter(
    {
        FLOOR: "({0} < 0 ? -(({1} - 1 - {0}) / {1}) : {0} / {1})",
        MAX: "({0} > {1} ? {0} : {1})",
        MIN: "({0} < {1} ? {0} : {1})",
    },
    divide="/",
    name="({})",
    within=ATOM,
)


def macro(n: int) -> str:
    """Return a size as a constant expression of a macro, with arguments in parentheses."""
    return _MACRO.text(n).operand_code(ATOM)
