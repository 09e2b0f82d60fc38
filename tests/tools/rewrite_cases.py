"""Cases of rewriting as text, in `tests/rewrites`: what is rewritten, how, and what comes out.

    python tests/tools/rewrite_cases.py

writes what comes out now; read the difference line by line before it goes into a commit. A case is
a title that begins with `#`, a line that names a function with `@transform`, the level, and flags
(`clean_up exact last`), a graph, the word `becomes`, and a graph.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import final

from primgraph import transforms
from primgraph.ir.graph import Graph
from primgraph.ir.text import parse, to_text
from primgraph.transforms.dataflow.contract import declared
from primgraph.transforms.pipeline import Pass

FOLDER = Path(__file__).parents[1] / "rewrites"
_ARROW = "becomes"


@final
@dataclass(frozen=True, slots=True)
class Case:
    """A graph as text, the words that say what is done with it, and the text that it becomes."""

    title: str
    call: str
    before: str
    after: str

    def graph(self) -> Graph:
        return parse(self.before)

    def result(self) -> Graph:
        name, level, *flags = self.call.split()
        run = Pass(passes()[name]).bound(level)
        return run(self.graph(), **dict.fromkeys(flags, True))

    def __str__(self) -> str:
        return "\n".join([f"# {self.title}", self.call, self.before, _ARROW, self.after, ""])


@cache
def passes() -> dict[str, Callable[..., Graph]]:
    """All functions of the package with `@transform`, by name."""
    for module in pkgutil.walk_packages(transforms.__path__, f"{transforms.__name__}."):
        importlib.import_module(module.name)
    return {t.__name__: t for name, t in declared.items() if name.startswith("primgraph.")}


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.txt"))


def read(path: Path) -> Iterator[Case]:
    """The cases of a file, in order."""
    for part in path.read_text(encoding="ascii").split("# ")[1:]:
        title, call, graphs = part.split("\n", 2)
        before, _, after = graphs.partition(f"\n{_ARROW}\n")
        yield Case(title, call, before.strip(), after.strip())


def write(path: Path) -> None:
    """Write down what the cases of a file become now."""
    cases = [Case(c.title, c.call, c.before, to_text(c.result())) for c in read(path)]
    path.write_text("\n".join(map(str, cases)), encoding="ascii")


if __name__ == "__main__":
    for file in files():
        write(file)
