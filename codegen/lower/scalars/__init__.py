"""Programs of a few numbers: graphs as arithmetic of their elements."""
