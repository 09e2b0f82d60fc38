"""Pictures of graphs, programs and kernels: as data, text, SVG and HTML."""

from primgraph.view.faces import Faces
from primgraph.view.growth import Growth, growth
from primgraph.view.spy import Spy, spy
from primgraph.view.steps import Steps, steps

__all__ = ["Faces", "Growth", "Spy", "Steps", "growth", "spy", "steps"]
