"""Textual form of a graph: printing, and parsing back to an equal graph.

graph f(%x: f64[3]) {
  %0: f64[3] = sin(%x)
  %1: f64[] = reduce_sum(%0, axes=(0,))
  return %1
}

A symbolic size is an expression in names of sizes, as in `f64[N,2*N+1]`.

Bodies of loops and branches are printed in the parameters of their equations, over several lines.

The text contains only the hashes of long constants: `graph.constants` maps these to the arrays, and
`parse(text, graph.constants)` restores them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from primgraph.base.providers import late
from primgraph.base.user_lines import Source
from primgraph.ir.frontend.signature import check_arguments
from primgraph.ir.graph import Equation, Graph, Value, beside, printer
from primgraph.ir.params import HASHED, Array, Named
from primgraph.ir.types import NAME_OF_DTYPE, TensorType

if TYPE_CHECKING:
    import json
else:
    json = late("json")


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_CONTEXT = 3

# Arrays up to this many elements are printed as numbers, larger ones as hexadecimal bytes, and
# those above this many bytes as a hash.
_SPELLED = 8
_INLINE = 1024


def names(graph: Graph) -> dict[Value, str]:
    """Return a distinct name for each value: its hint if it has one, else a number."""
    taken: set[str] = set()
    result: dict[Value, str] = {}
    count = 0
    for value in graph.numbering():
        if value.hint and value.hint not in taken:
            taken.add(value.hint)
            plain = _PLAIN.fullmatch(value.hint)
            result[value] = "%" + (value.hint if plain else json.dumps(value.hint))
        else:
            result[value] = f"%{count}"
            count += 1
    return result


def to_text(graph: Graph, *, sources: bool = False) -> str:
    """Return the text of `graph`; with `sources`, each line ends in its source line."""
    return "\n".join(_lines(graph, sources))


def _lines(graph: Graph, sources: bool) -> list[str]:
    name = names(graph)
    inputs = ", ".join(f"{name[v]}: {v.type}" for v in graph.inputs)
    title = graph.name if _PLAIN.fullmatch(graph.name) else json.dumps(graph.name)
    lines = [f"graph {title}({inputs}) {{"]
    for eqn in graph.body:
        note = f"  # {_comment(eqn.source)}" if sources and eqn.source else ""
        rows = equation_text(eqn, name, sources=sources).split("\n")
        lines += [f"  {row}" for row in (*rows[:-1], rows[-1] + note)]
    lines.append(f"  return {', '.join(name[v] for v in graph.outputs)}".rstrip())
    lines.append("}")
    return lines


printer[0] = to_text


def lines_around(graph: Graph, eqn: Equation | None) -> list[str]:
    """Return the equations around `eqn`, which has an arrow; the first ones for None."""
    place = next((i for i, e in enumerate(graph.body) if e is eqn), 0)
    start = max(0, place - _CONTEXT)
    shown = graph.body[start : place + _CONTEXT + 1]
    name: dict[Value, str] = {}
    for value in graph.numbering():
        name[value] = f"%{value.hint or len(name)}"
    for e in shown:
        for value in (*e.inputs, *e.outputs):
            name.setdefault(value, f"%unbound{len(name)}")
    lines = []
    for e in shown:
        where = f"  # {_comment(e.source)}" if e.source else ""
        first, *rest = equation_text(e, name).split("\n")
        rows = [f"{'->' if e is eqn else '  '} {first}", *(f"   {row}" for row in rest)]
        lines += [*rows[:-1], rows[-1] + where]
    return lines


def _comment(source: Source) -> str:
    return str(source).encode("ascii", "backslashreplace").decode().replace("\n", "\\n")


def equation_text(eqn: Equation, name: dict[Value, str], *, sources: bool = False) -> str:
    """Return the line of an equation with these value names; several lines if it has bodies."""
    outputs = ", ".join(f"{name[v]}: {v.type}" for v in eqn.outputs)
    arguments = [name[v] for v in eqn.inputs]
    arguments += [f"{key}={value_text(value, sources=sources)}" for key, value in eqn.params]
    return f"{outputs} = {eqn.op.name}({', '.join(arguments)})"


def typed_equation(eqn: Equation, graph: Graph) -> str:
    """Return `eqn` with the types of its operands, shortened, for a message."""
    name = names(graph)
    outputs = ", ".join(f"{name[v]}: {v.type}" for v in eqn.outputs)
    shown = [f"{name[v]}: {v.type}" for v in eqn.inputs]
    shown += [f"{key}={brief_text(value)}" for key, value in eqn.params]
    text = f"{outputs} = {eqn.op.name}({', '.join(shown)})"
    return text if len(text) <= 400 else text[:397] + "..."


def brief_text(value: Any) -> str:
    """Return a parameter in one line, with graphs as their names."""
    if isinstance(value, Graph):
        return f"<graph {value.name}>"
    if isinstance(value, tuple):
        return f"({', '.join(map(brief_text, value))}{',' * (len(value) == 1)})"
    return value_text(value)


def value_text(value: Any, *, sources: bool = False) -> str:
    """Return a parameter as text that parses to the same bits."""
    if isinstance(value, tuple):
        inner = ", ".join([value_text(v, sources=sources) for v in value])
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, Graph):
        return "\n".join(_lines(value, sources))
    if isinstance(value, np.dtype):
        return NAME_OF_DTYPE[value]
    if isinstance(value, Array):
        return _array_text(value)
    if isinstance(value, Named):
        return f"@{json.dumps(value.name)}"
    if isinstance(value, complex):
        return complex_text(value)
    return json.dumps(value) if isinstance(value, str) else repr(value)


def complex_text(number: complex) -> str:
    """Return both parts of a complex number, as they parse: `(1.0-0.0j)`."""
    imaginary = repr(number.imag)
    sign = "" if imaginary.startswith("-") else "+"
    return f"({number.real!r}{sign}{imaginary}j)"


def _array_text(array: Array) -> str:
    flat = array.data.ravel()
    spelled = flat.size <= _SPELLED and not (array.type.is_inexact and np.isnan(flat).any())
    if spelled:
        return f"{array.type}{{{', '.join(value_text(v) for v in flat.tolist())}}}"
    if array.data.nbytes > _INLINE:
        return f"{array.type}{{{HASHED}{array.digest}}}"
    return f"{array.type}{{0x{array.little_endian().tobytes().hex()}}}"


def constants_beside(graph: Graph) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays that the text of `graph` has only hashes of, by these hashes."""
    return {a.digest: a.data for a in _arrays_in(graph) if a.data.nbytes > _INLINE}


def _arrays_in(value: Any) -> Iterator[Array]:
    if isinstance(value, Array):
        yield value
    elif isinstance(value, tuple):
        for inner in value:
            yield from _arrays_in(inner)
    elif isinstance(value, Graph):
        for eqn in value.body:
            for _, inner in eqn.params:
                yield from _arrays_in(inner)


beside[0] = constants_beside


def read_type(text: str) -> TensorType:
    """Parse a type. Raises `LoadError` for other text."""
    found: TensorType = _parser().parse_type(text)
    return found


@check_arguments
def parse(text: str, constants: Mapping[str, Any] | None = None) -> Graph:
    """Return the graph that `text` describes.

    Long constants are not in the text, which has their hash: `constants` provides them, as
    `graph.constants` of the printed graph does.

    Raises `LoadError` with line and column for malformed text, a value used before it is bound, an
    unknown op, a missing or wrong constant, or a type that differs from the op's type rule.

    >>> graph = pg.trace(pg.sin, pg.spec(3))
    >>> str(pg.parse(str(graph))) == str(graph)
    True
    """
    found: Graph = _parser().parse(text, {} if constants is None else constants)
    return found


def _parser() -> Any:
    """Return the module that parses, which is loaded when a text is first read."""
    return import_module("primgraph.ir.frontend.parser")
