"""Special functions, named as in scipy.special."""

from primgraph.operators.names import namespace

__all__, __getattr__, __dir__ = namespace(__name__, globals())
