"""Sparsity patterns of derivatives, and colourings for compressed products."""
