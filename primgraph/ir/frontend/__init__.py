"""Python's side of graphs: containers, signatures, names, pictures."""
