"""The names of other libraries that `primgraph.compat` has and lacks, for the pages of docs.

`python tests/tools/compat_names.py` writes the lists into docs/coming-from/*.md. Names of the real
packages come from `tests/recorded/names`, and reasons for what there is not from the table of
`primgraph.compat.absent`.
"""

from __future__ import annotations

import importlib
import sys
import textwrap
import warnings
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT)]

from primgraph.compat.absent import reason_for  # noqa: E402

SYSTEMS = {"torch": "torch", "paddle": "Paddle", "megengine": "MegEngine", "oneflow": "OneFlow"}
NAMES = ROOT / "tests" / "recorded" / "names"
DOCS = ROOT / "docs" / "coming-from"
BEGIN = "## Names that compat has and lacks\n"


def recorded(system: str) -> dict[str, list[str]]:
    """Return the names of the real package by module."""
    text = (NAMES / f"{system}.txt").read_text(encoding="utf-8").replace("\n  ", " ")
    lines = [line.partition(": ") for line in text.splitlines()]
    return {module: names.split() for module, _, names in lines}


def compared(system: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return the names of each module of the real package that compat has, and that it lacks."""
    found = {}
    for module, names in recorded(system).items():
        has = [name for name in names if is_there(module, name)]
        found[module] = has, [name for name in names if name not in has]
    return found


def is_there(module: str, name: str) -> bool:
    """Return whether compat has a name of a module."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return hasattr(importlib.import_module(f"primgraph.compat.{module}"), name)
    except ModuleNotFoundError:
        return False


def section(system: str) -> str:
    """Return the lists of a system as Markdown."""
    found = compared(system)
    has = sum(len(names) for names, _ in found.values())
    whole = has + sum(len(names) for _, names in found.values())
    text = f"`primgraph.compat.{system}` has {has} of {whole} public names of {SYSTEMS[system]}:"
    lines = [BEGIN, text, ""]
    for module, (names, _) in found.items():
        lines += _item(module, names)
    reasons = defaultdict(list)
    lacking = []
    for module, (_, names) in found.items():
        lacking += _item(module, [name for name in names if not reason_for(name)])
        for name in names:
            if reason_for(name):
                reasons[reason_for(name)].append(f"`{module}.{name}`")
    if lacking:
        lines += ["", "It lacks these:", "", *lacking]
    if reasons:
        head = "And these" if lacking else "It lacks these"
        lines += ["", f"{head}, with reasons or replacements:", "", "| | |", "|---|---|"]
        lines += [f"| {', '.join(sorted(set(names)))} | {r} |" for r, names in reasons.items()]
    return "\n".join([*lines, ""])


def _item(module: str, names: list[str]) -> list[str]:
    if not names:
        return []
    text = f"- `{module}`: {', '.join(names)}"
    return textwrap.wrap(text, 110, subsequent_indent="  ", break_on_hyphens=False)


def page(system: str) -> str:
    """Return the page of a system with these lists at its end."""
    text = (DOCS / f"{system}.md").read_text(encoding="utf-8")
    return text.partition(BEGIN)[0].rstrip() + "\n\n" + section(system)


def main() -> None:
    for system in SYSTEMS:
        (DOCS / f"{system}.md").write_text(page(system), encoding="utf-8")


if __name__ == "__main__":
    main()
