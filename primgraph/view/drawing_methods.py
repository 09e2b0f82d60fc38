"""Drawing methods of graphs, programs and kernels."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, final

from primgraph.errors import ArgumentError
from primgraph.ir.frontend.drawable import PICTURES, Drawn
from primgraph.view.folding import LIMIT, fold_groups, groups_to_fold
from primgraph.view.formats.dot import render_graphviz, to_dot
from primgraph.view.formats.mermaid import to_mermaid
from primgraph.view.formats.networkx_graph import to_networkx
from primgraph.view.formats.notebook import to_notebook
from primgraph.view.formats.page import page
from primgraph.view.formats.svg import to_svg
from primgraph.view.formats.tree import tree_text
from primgraph.view.picture import Picture, graph_of, picture_of
from primgraph.view.steps import single_step

if TYPE_CHECKING:
    import networkx

_NARROWEST = 40


@final
class Faces:
    """Implementation of the drawing methods."""

    def dot(self, drawn: Drawn) -> str:
        return to_dot(picture_of(drawn))

    def mermaid(self, drawn: Drawn, limit: int) -> str:
        return to_mermaid(picture_of(drawn), limit=limit)

    def networkx(self, drawn: Drawn) -> networkx.MultiDiGraph[int]:
        return to_networkx(picture_of(drawn))

    def svg(self, drawn: Drawn, limit: int, loops: bool | None, operators: bool) -> str:
        return to_svg(picture_of(drawn), limit=limit, loops=loops, operators=operators)

    def html(self, drawn: Drawn) -> str:
        return page([single_step(drawn)])

    def save(self, drawn: Drawn, path: str | os.PathLike[str]) -> None:
        form = Path(path).suffix.lower()
        if form not in PICTURES:
            raise ArgumentError(
                f"there is no format {form!r} to save a picture in",
                hint=f"the name of the file ends in one of {', '.join(PICTURES)}",
            )
        Path(path).write_bytes(self._file(drawn, form))

    def _file(self, drawn: Drawn, form: str) -> bytes:
        if form == ".html":
            return self.html(drawn).encode()
        picture = picture_of(drawn)
        if form in (".png", ".pdf"):
            return render_graphviz(fold_groups(picture, groups_to_fold(picture, LIMIT)), form[1:])
        write = {".dot": to_dot, ".mmd": to_mermaid, ".svg": to_svg, ".json": _to_json}[form]
        return write(picture).encode()

    def tree(self, drawn: Drawn, lines: int) -> None:
        width = max(shutil.get_terminal_size((100, 24)).columns, _NARROWEST)
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        print(tree_text(graph_of(drawn), lines, width, encoding))

    def notebook(self, drawn: Drawn) -> str:
        return to_notebook(drawn)


def _to_json(picture: Picture) -> str:
    return json.dumps(picture.data(), allow_nan=False, separators=(",", ":")) + "\n"
