"""Fourier transforms, named as in numpy.fft."""

from primgraph.operators.names import namespace

__all__, __getattr__, __dir__ = namespace(__name__, globals())
