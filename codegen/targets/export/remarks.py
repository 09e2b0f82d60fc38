"""Comments of a C function: what it computes, its arguments and requirements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from primgraph.codegen.ir.c_extents import is_zero
from primgraph.codegen.targets.export.sizes import REFUSED, Sizes, code
from primgraph.codegen.targets.text.docstrings import Told, docstring
from primgraph.codegen.targets.text.names import comment
from primgraph.ir.frontend.result_names import Title

_WHY = "where NumPy raises an error: results are of no use"


class Needs(NamedTuple):
    """Requirements and return codes of a function."""

    name: str
    nbytes: int
    stack: int
    can_fail: bool
    sizes: Sizes | None

    def lines(self) -> Iterator[str]:
        """Yield the lines after the arguments."""
        if self.sizes:
            more = f"; 1 {_WHY}" if self.can_fail else ""
            yield f"Returns 0; {REFUSED} for sizes that are refused{more}."
            yield "Sizes are refused if one is below 0, or no memory is large enough for them."
            for told in dict.fromkeys(str(c) for c, _ in self.sizes.conditions):
                yield f"They are refused unless {told}."
        elif self.can_fail:
            yield f"Returns 0, or else a number {_WHY}."
        if self.sizes and not is_zero(self.nbytes):
            yield f"Needs {code(self.nbytes)} bytes of workspace, whatever is in them."
            yield "The workspace is aligned for any type, as memory from malloc is."
        elif self.nbytes:
            yield f"Needs {self.nbytes} bytes of workspace, whatever is in them."
        if self.stack:
            yield f"Keeps arrays of {self.stack} bytes on the stack."


def comment_lines(
    inputs: Sequence[Told],
    outputs: Sequence[Told],
    titles: Sequence[Title],
    needs: Needs,
    renamed: Sequence[str] = (),
) -> list[str]:
    """The lines of a comment; `renamed` are those of results whose keys are no names."""
    lines = docstring(inputs, outputs, titles)
    lines = [line.removeprefix('"""').removesuffix('"""') for line in lines]
    lines = [line for k, line in enumerate(lines) if line or 0 < k < len(lines) - 1]
    lines = [
        "Writes" + line.removeprefix("Returns") if line.startswith("Returns") else line
        for line in lines
    ]
    more = [*renamed, *needs.lines()]
    lines += ["", *more] if more else []
    safe = [comment(line).replace("*/", "* /").replace("/*", "/ *") for line in lines]
    return [line.replace("??", "? ?") for line in safe]
