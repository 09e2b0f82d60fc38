"""What graphs, programs and kernels have in common to the eye: pictures, pages, trees."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from primgraph.base.array_functions import MEMBERS
from primgraph.base.providers import provider
from primgraph.errors import unknown_attribute
from primgraph.ir.frontend.signature import checked_methods

if TYPE_CHECKING:
    import networkx


class Views(Protocol):
    """How things are drawn."""

    def dot(self, drawn: Drawn) -> str: ...

    def mermaid(self, drawn: Drawn, limit: int) -> str: ...

    def networkx(self, drawn: Drawn) -> networkx.MultiDiGraph[int]: ...

    def svg(self, drawn: Drawn, limit: int) -> str: ...

    def html(self, drawn: Drawn) -> str: ...

    def save(self, drawn: Drawn, path: str | os.PathLike[str]) -> None: ...

    def tree(self, drawn: Drawn, lines: int) -> None: ...

    def notebook(self, drawn: Drawn) -> str: ...


# How the name of a file ends that a picture can be saved in.
PICTURES = (".dot", ".mmd", ".svg", ".html", ".json", ".png", ".pdf")

# The one that draws. The package of pictures, which needs all that can be drawn, puts it here; most
# programs draw nothing, so that it is loaded for the first picture.
views: list[Views] = []


def _views() -> Views:
    if not views:
        provider("pictures")
    return views[0]


@checked_methods()
class Drawn:
    """What can be drawn: a graph, a program, a kernel.

    Pictures have a box for each input, each equation and each output, and an arrow for each
    operand; uniform constants are written into the boxes that use them.
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_attribute(self, name, MEMBERS)

    def to_dot(self) -> str:
        """The picture in the DOT language of Graphviz."""
        return _views().dot(self)

    def to_mermaid(self, *, limit: int = 300) -> str:
        """The picture as a Mermaid flowchart, folded where it has more boxes than `limit`.

        It is folded, too, where Mermaid would refuse it: unless told otherwise, it draws 500 arrows
        and reads 50,000 characters. Of a `limit` above 300 it is up to you to tell it so.
        """
        return _views().mermaid(self, limit)

    def to_networkx(self) -> networkx.MultiDiGraph[int]:
        """The picture as a `networkx.MultiDiGraph` with what boxes and arrows say as attributes."""
        return _views().networkx(self)

    def to_svg(self, *, limit: int = 60) -> str:
        """The picture as SVG, folded by part and layer where it has more boxes than `limit`.

        It needs nothing else, and is readable on light and on dark ground.
        """
        return _views().svg(self, limit)

    def to_html(self) -> str:
        """The picture as an HTML page of its own, in which groups fold and unfold at a click."""
        return _views().html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, in the format that the end of its name tells.

        These are .dot, .mmd (Mermaid), .svg, .html and .json (the picture as data); and .png and
        .pdf where Graphviz is installed. Raises `ArgumentError` for another one, and for one that
        Graphviz is missing for.
        """
        _views().save(self, path)

    def show(self, *, lines: int = 60) -> None:
        """Print a tree: the lines of the user's code, and the equations that come from each.

        Where it would have more than `lines` lines, equations are only counted.
        """
        _views().tree(self, lines)

    def _repr_html_(self) -> str:
        return _views().notebook(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What notebooks show: the picture of something small, otherwise a table."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
