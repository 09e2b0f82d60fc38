"""The table of targets on the page about interoperability: which primitives have no words in them.

    PYTHONPATH=tests:tests/drafts:tests/primitives python tests/tools/targets_table.py

writes it between its marks. A target has a primitive if it takes the samples of it in
`tests/primitives/samples`, on real and on complex numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from derive import build, type_of
from onnx_table import primitives
from samples import ROWS
from samples.rows import Call

from primgraph.codegen.targets.export.file import c_source
from primgraph.codegen.targets.libraries import kernel as libraries
from primgraph.codegen.targets.readable.standalone import standalone_source
from primgraph.errors import CompileError, UnsupportedError
from primgraph.interop.compositions.compose import compose
from primgraph.interop.onnx.export.saving import require_words
from primgraph.interop.onnx.export.words import has_word
from primgraph.ir.graph import Graph
from primgraph.ir.primitive import Primitive
from primgraph.ir.types import TensorType

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "interoperability.md"
_PART = re.compile(r"(<!-- targets table -->\n).*?(<!-- end -->)", re.DOTALL)
# Calls of a primitive that are tried, on real and on complex numbers each.
_CALLS = 3
# Primitives that compilation replaces before a target sees them.
_LOWERED = {"custom_tangents", "solution"}


def _in_onnx(graph: Graph) -> None:
    require_words(compose(graph, has_word))


def _in_c(graph: Graph) -> None:
    c_source([graph], "sample")


def _in_library(target: str) -> Callable[[Graph], None]:
    dialect = libraries.dialect_of(target)
    return lambda graph: (standalone_source([graph], dialect=dialect), None)[1]


@cache
def targets() -> dict[str, Callable[[Graph], None]]:
    """What raises for a graph that a target has no words for, by the title of the target."""
    found: dict[str, Callable[[Graph], None]] = {"C": _in_c}
    for target in libraries.HOMES:
        found[libraries.dialect_of(target).title] = _in_library(target)
    return found | {"ONNX": _in_onnx}


def _types(call: Call, dtype: str) -> list[TensorType]:
    return [
        TensorType(a.shape, a.dtype)
        if not isinstance(a, str)
        else type_of(a.replace("x[", f"{dtype}[", 1))
        for a in call.operands
    ]


def _samples(op: Primitive) -> Iterator[Graph]:
    """Graphs of the first calls on arrays that are not empty: real ones, then complex ones."""
    row, counts = ROWS[op.name], {False: 0, True: 0}
    for call in row.calls:
        graph = build(partial(op, **call.params), *_types(call, row.dtypes[0]))
        types = [v.type for v in (*graph.inputs, *graph.outputs)]
        kind = is_complex(graph)
        if all(t.size for t in types) and counts[kind] < _CALLS:
            counts[kind] += 1
            yield graph


def is_complex(graph: Graph) -> bool:
    """Whether complex numbers go in or come out."""
    return any(v.type.is_complex for v in (*graph.inputs, *graph.outputs))


def _takes(require: Callable[[Graph], None], graph: Graph) -> bool:
    try:
        require(graph)
    except (CompileError, UnsupportedError):
        return False
    return True


@cache
def support() -> dict[str, dict[str, dict[bool, list[bool]]]]:
    """Which samples are taken, by primitive, target, and whether they have complex numbers."""
    found: dict[str, dict[str, dict[bool, list[bool]]]] = {}
    for op in primitives():
        if op.name in _LOWERED:
            continue
        graphs = [*_samples(op)]
        for title, require in targets().items():
            taken = found.setdefault(op.name, {}).setdefault(title, {False: [], True: []})
            for graph in graphs:
                taken[is_complex(graph)].append(_takes(require, graph))
    return found


def _cell(taken: dict[bool, list[bool]], complex_too: bool) -> str:
    if not taken[False]:
        return "yes" if all(taken[True]) else "no"
    real = "yes" if all(taken[False]) else "in part" if any(taken[False]) else "no"
    if real == "yes" and complex_too and not all(taken[True]):
        return "real numbers"
    return real


def table() -> str:
    """The lines between the marks."""
    found, titles = support(), [*targets()]
    has_complex = {t: any(any(row[t][True]) for row in found.values()) for t in titles}
    cells = {
        name: [_cell(row[title], has_complex[title]) for title in titles]
        for name, row in found.items()
    }
    rows = {name: row for name, row in cells.items() if set(row) != {"yes"}}
    plain = [title for title in titles if not has_complex[title]]
    text = f"NumPy has all {len(cells)} primitives, `by_scipy` with SciPy. The others have "
    text += f"{len(cells) - len(rows)} of them, and the rest as below; {' and '.join(plain)} real numbers only.\n\n"
    lines = [["primitive", *titles], ["---"] * (len(titles) + 1)]
    lines += [[f"`{name}`", *row] for name, row in rows.items()]
    return text + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_PART.sub(lambda m: f"{m[1]}{table()}{m[2]}", page), encoding="utf-8")


def shown() -> str:
    """What the page has between the marks."""
    found = _PART.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    return found[0].removeprefix(found[1]).removesuffix(found[2])


if __name__ == "__main__":
    main()
