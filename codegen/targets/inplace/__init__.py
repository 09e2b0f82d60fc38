"""NumPy code of a plan: every result is in a buffer, or returned."""
