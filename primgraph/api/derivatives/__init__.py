"""Derivatives of functions and of computed values."""
