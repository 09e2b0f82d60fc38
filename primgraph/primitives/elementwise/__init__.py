"""Elementwise primitives, one declaration each."""

from primgraph.primitives.elementwise import arithmetic, functions
from primgraph.primitives.elementwise.arithmetic import *  # noqa: F403
from primgraph.primitives.elementwise.functions import *  # noqa: F403

__all__ = arithmetic.__all__ + functions.__all__
