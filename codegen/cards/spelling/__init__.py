"""How cards write primitives."""
