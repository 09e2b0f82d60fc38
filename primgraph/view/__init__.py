"""Pictures of graphs, programs and kernels: as data, text, SVG and HTML.

Where things stand is worked out once, by `scene`, for all of them. Two write that down as shapes,
because neither can do what the other does: `svg` for files, which notebooks, mail and repositories
show without running any script; `assets/drawing.js` for pages, in which groups open and close. A
page has the numbers of a scene and not its shapes, which would be many times as long, and stretches
them around what is open. A test compares the two.
"""

from primgraph.ir.frontend.drawable import views
from primgraph.view.drawing_methods import Faces

views.append(Faces())

# Pictures are methods of what they show.
__all__: list[str] = []


def __dir__() -> list[str]:
    return sorted(__all__)
