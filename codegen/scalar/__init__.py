"""Arithmetic on Python's own floats: graphs of few numbers, without arrays."""
