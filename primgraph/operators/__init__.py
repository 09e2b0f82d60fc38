"""Operators: functions on variables, each named and typed as in NumPy."""

from primgraph.operators import name_table  # noqa: F401
from primgraph.operators.names import namespace

__all__, __getattr__, __dir__ = namespace(__name__, globals())
