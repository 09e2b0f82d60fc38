"""Pictures of graphs, programs and kernels: as data, text, SVG and HTML.

`scene` computes the layout once for all formats. Two modules draw it as shapes, because neither can
replace the other: `svg` for files, which notebooks, mail and repositories show without scripts;
`assets/drawing.js` for pages, in which groups open and close. A page contains the numbers of a
scene instead of its shapes, which would be many times as long, and stretches them around open
groups. A test compares the two.
"""

from primgraph.ir.frontend.drawable import views
from primgraph.view.drawing_methods import Faces

views.append(Faces())

# Pictures are methods of the objects that they show.
__all__: list[str] = []


def __dir__() -> list[str]:
    return sorted(__all__)
