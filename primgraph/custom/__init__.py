"""Functions with user-defined derivatives."""
