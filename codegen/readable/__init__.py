"""NumPy code as a person would write it: expressions under the user's lines."""
