"""Pictures of graphs, programs and kernels: as data, text, SVG and HTML."""

from primgraph.ir.drawn import views
from primgraph.view.faces import Faces

views.append(Faces())
