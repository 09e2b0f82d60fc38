"""Targets: the printers of NumPy, Python and C."""
