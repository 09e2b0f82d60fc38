"""Data sets, samplers, collation and loading of batches, which the systems share."""
