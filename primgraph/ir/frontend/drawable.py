"""Pictures, HTML pages and trees of graphs, programs and kernels."""

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
    """Interface of the drawing functions."""

    def dot(self, drawn: Drawn) -> str: ...

    def mermaid(self, drawn: Drawn, limit: int) -> str: ...

    def networkx(self, drawn: Drawn) -> networkx.MultiDiGraph[int]: ...

    def svg(self, drawn: Drawn, limit: int, loops: bool | None, operators: bool) -> str: ...

    def html(self, drawn: Drawn) -> str: ...

    def save(self, drawn: Drawn, path: str | os.PathLike[str]) -> None: ...

    def tree(self, drawn: Drawn, lines: int) -> None: ...

    def notebook(self, drawn: Drawn) -> str: ...


# File name extensions of pictures.
PICTURES = (".dot", ".mmd", ".svg", ".html", ".json", ".png", ".pdf")

# The implementation. The package of pictures imports everything that it draws, so it registers
# itself here, and is loaded for the first picture only.
views: list[Views] = []


def _views() -> Views:
    if not views:
        provider("pictures")
    return views[0]


@checked_methods()
class Drawn:
    """Base class of graphs, programs and kernels, which can be drawn.

    A picture has a box for each input, equation and output, and an arrow for each operand. Uniform
    constants are written into the boxes that use them.
    """

    __slots__ = ()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise unknown_attribute(self, name, MEMBERS)

    def to_dot(self) -> str:
        """Return the picture in the DOT language of Graphviz."""
        return _views().dot(self)

    def to_mermaid(self, *, limit: int = 300) -> str:
        """Return the picture as a Mermaid flowchart, folded if it has more boxes than `limit`.

        It is also folded if it exceeds the default limits of Mermaid: 500 arrows and 50,000
        characters. With a `limit` above 300, configure Mermaid accordingly.
        """
        return _views().mermaid(self, limit)

    def to_networkx(self) -> networkx.MultiDiGraph[int]:
        """Return the picture as a `networkx.MultiDiGraph` with labels as attributes."""
        return _views().networkx(self)

    def to_svg(self, *, limit: int = 60, loops: bool | None = None, operators: bool = False) -> str:
        """The picture as SVG, folded by part and layer where it has more boxes than `limit`.

        With `loops` True the bodies of loops and branches are drawn, with False each loop is one
        box; by default `limit` decides. The primitives of an operator such as `cross_entropy` are
        one box, unless `operators` is True. The file needs nothing else, and is readable on light
        and on dark ground.
        """
        return _views().svg(self, limit, loops, operators)

    def to_html(self) -> str:
        """Return the picture as a standalone HTML page, in which groups fold and unfold on
        click."""
        return _views().html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, in the format of its extension.

        Formats are .dot, .mmd (Mermaid), .svg, .html and .json (the picture as data); with Graphviz
        installed also .png and .pdf. Raises `ArgumentError` for other formats, and if Graphviz is
        missing.
        """
        _views().save(self, path)

    def show(self, *, lines: int = 60) -> None:
        """Print a tree: the lines of the user's code, and the equations that come from each.

        Above `lines` lines, equations are only counted.
        """
        _views().tree(self, lines)

    def _repr_html_(self) -> str:
        return _views().notebook(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """MIME bundle for notebooks: a picture of a small object, otherwise a table."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}
