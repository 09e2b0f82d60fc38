"""Memory of a plan: the arena and its packing."""
