"""Scalar mode: arithmetic on Python floats, without arrays, for graphs of few numbers."""
