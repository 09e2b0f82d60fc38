"""Cards: the properties of primitives for the back end and tools; files as in `primitives`."""
