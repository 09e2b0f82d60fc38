"""Operators: functions on variables, each named and typed as in NumPy."""

# These modules are loaded at once: others call their functions by name.
# ruff: noqa: F401
from primgraph.operators import name_table
from primgraph.operators.elementwise import arithmetic, elementary, logic
from primgraph.operators.index import indexing, scatter
from primgraph.operators.linear_algebra import contraction, products
from primgraph.operators.names import namespace
from primgraph.operators.reduce import reductions, statistics
from primgraph.operators.shape import creation, joining, shaping

__all__, __getattr__, __dir__ = namespace(__name__, globals())
