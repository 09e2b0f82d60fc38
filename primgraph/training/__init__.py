"""Training: runs over batches and epochs, and losses as SciPy's optimizers take them."""
