"""Readable code for libraries that have NumPy's functions."""
