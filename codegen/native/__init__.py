"""The native back end: a schedule becomes loop nests, these C, and that a function."""
