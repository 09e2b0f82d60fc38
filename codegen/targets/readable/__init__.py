"""Readable NumPy code in the style of a person: expressions under the user's source lines."""
