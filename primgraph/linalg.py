"""Linear algebra, named as in numpy.linalg, with further functions of scipy.linalg."""

from primgraph.operators.names import namespace

__all__, __getattr__, __dir__ = namespace(__name__, globals())
