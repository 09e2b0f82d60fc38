"""Training loops over batches and epochs, and objectives for SciPy's optimizers."""
