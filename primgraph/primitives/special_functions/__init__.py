"""Primitives of special functions."""
