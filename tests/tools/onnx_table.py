"""The tables of the page about models of ONNX, made from the tables of the package.

    python tests/tools/onnx_table.py

writes them between their marks on the page.
"""

from __future__ import annotations

import re
from pathlib import Path

import primgraph.interop.onnx.operators  # noqa: F401
from primgraph.interop.compositions.table import COMPOSITIONS
from primgraph.interop.onnx.export import saving, words  # noqa: F401
from primgraph.interop.onnx.table import known_operators
from primgraph.ir.primitive import Primitive, registered
from primgraph.primitives.special_functions.formulas import FORMULAS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "onnx.md"
_PART = re.compile(r"(<!-- onnx table -->\n).*?(<!-- end -->)", re.DOTALL)
# Primitives of tests and of other packages begin with their names.
_HOME = "primgraph."


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def primitives() -> list[Primitive]:
    """The primitives of primgraph that a compiled graph may have."""
    found = [op for op in registered().values() if isinstance(op, Primitive)]
    return sorted(
        (op for op in found if op.type_rule.__module__.startswith(_HOME) and not op.formal),
        key=lambda op: op.name,
    )


def table() -> str:
    """The lines between the marks."""
    ops = primitives()
    named = {*words.WORDS, *words.COMPOSED}
    written = [op for op in ops if op.name in named or op in FORMULAS or op in COMPOSITIONS]
    composed = [op.name for op in written if op.name not in words.WORDS]
    plain = [f"{op.name}: {words.WORDS[op.name]}" for op in written if op.name in words.WORDS]
    lacking = [op.name for op in ops if op not in written]
    rows = [
        ("operators that `from_onnx` takes, besides those that the standard defines by others",
         _listed(known_operators())),
        ("primitives that are one operator of ONNX", _listed(plain)),
        ("primitives that are compositions", _listed(composed)),
        ("primitives that ONNX lacks", _listed(lacking)),
    ]  # fmt: skip
    return "".join(f"**{title[0].upper()}{title[1:]}:** {text}.\n\n" for title, text in rows)


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
