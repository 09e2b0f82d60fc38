"""Symbolic sizes of an exported C function: checks, and the size of its workspace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, final

from primgraph.base.user_lines import Source
from primgraph.codegen.ir.c_extents import FUNCTIONS, HELPERS, divisors, is_zero
from primgraph.codegen.ir.extents import ADD, ATOM, MUL, UNARY, SizeWriter
from primgraph.codegen.ir.statements import Blocks, Control, Nests
from primgraph.codegen.targets.export.identifiers import remark, wrap_statement
from primgraph.ir.assumptions import Condition
from primgraph.ir.dims import FLOOR, MAX, MIN, Atom, Dim, bounds, names_in, size, typical
from primgraph.ir.dims.polynomial import terms_of
from primgraph.ir.graph import Graph
from primgraph.ir.sizes import assumptions
from primgraph.ir.types import TensorType

# The return code for sizes that are refused.
REFUSED = -1


@final
class Sizes(NamedTuple):
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


# Helper functions of size expressions. Sums and products saturate at LONG_MAX.
_HELPERS = {
    **HELPERS,
    "pg_plus": """static inline long pg_plus(long x, long y) {
    const long most = (long)(~0ul >> 1);
    return x > most - y ? most : x + y;
}""",
    "pg_times": """static inline long pg_times(long x, long y) {
    const long most = (long)(~0ul >> 1);
    return y && x > most / y ? most : x * y;
}""",
}
_WRITER = SizeWriter(FUNCTIONS, divide="/")
names_of = _WRITER.names


def helpers(used: Collection[str]) -> list[str]:
    """Return the helper functions among the names that are used."""
    return [lines for name, lines in _HELPERS.items() if name in used]


def code(n: int, rank: int = ADD) -> str:
    """Return the text of a size, in parentheses if its precedence is below `rank`."""
    return _WRITER.text(n).operand_code(rank)


def index(offset: int, variables: Sequence[str], strides: Sequence[int]) -> str:
    """Return the index expression of an element, from loop variables and their strides."""
    text = ""
    pairs = [(v, s) for v, s in zip(variables, strides, strict=True) if not is_zero(s)]
    pairs.sort(key=lambda pair: -abs(typical(pair[1])))
    for name, stride in pairs:
        if not _is_negative(stride):
            text += f"{' + ' if text else ''}{times(name, stride)}"
    if not _is_negative(offset) and not (is_zero(offset) and text):
        text += f" + {code(offset)}" if text else code(offset)
    elif _is_negative(offset):
        text += f" - {code(-offset, MUL)}" if text else code(offset)
    for name, stride in pairs:
        if _is_negative(stride):
            text += f" - {times(name, -stride)}"
    return text


def _is_negative(n: int) -> bool:
    """Return whether a size is never positive, and not known to be zero."""
    return not is_zero(n) and bounds(n)[1] <= 0


def times(name: str, stride: int) -> str:
    """Return a multiple of a variable."""
    return name if type(stride) is int and stride == 1 else f"{name} * {code(stride, UNARY)}"


def offset_address(pointer: str, place: str | int) -> str:
    """Return the address of the element at `place` after `pointer`."""
    return pointer if place in ("0", 0) else f"{pointer} + {place}"


def most(extents: Iterable[int], use: Callable[[str], str] = str) -> str:
    """Return an expression that is an upper bound of the sizes and their terms.

    Sizes are nonnegative. The expression saturates at LONG_MAX. It `use`s functions.
    """
    largest: dict[tuple[str, ...], int] = {}
    for n in extents:
        for monomial, number in terms_of(_upper_bound(n)).items():
            factors = tuple([str(atom) for atom, power in monomial for _ in range(power)])
            largest[factors] = max(number, largest.get(factors, 0))
    total = ""
    for factors, number in sorted(largest.items(), key=lambda item: (-len(item[0]), item[0])):
        term = str(number)
        for k, name in enumerate(factors):
            term = name if not k and number == 1 else f"{use('pg_times')}({term}, {name})"
        total = f"{use('pg_plus')}({total}, {term})" if total else term
    return total or "0"


def _upper_bound(n: int) -> int:
    """Return a polynomial in sizes, with nonnegative coefficients, that bounds the magnitude."""
    total = 0
    for monomial, coefficient in terms_of(n).items():
        product = abs(coefficient)
        for atom, power in monomial:
            product = product * _atom_upper_bound(atom) ** power
        total = total + product
    return total


def _atom_upper_bound(atom: Atom) -> int:
    if isinstance(atom, str):
        return size(atom)
    kind, x, y = atom
    # An integer quotient is at most its dividend.
    return _upper_bound(x) + (0 if kind == FLOOR else _upper_bound(y))
