"""Planning: order, blocking and memory of a graph's computation."""
