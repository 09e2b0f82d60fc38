"""Other systems' names for what primgraph does, so that their programs run with another import."""
