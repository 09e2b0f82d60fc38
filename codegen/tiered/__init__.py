"""Tiered kernels: NumPy at once, and C from a background process if it is faster."""
