"""How primitives are written in NumPy's terms, a row for each."""
