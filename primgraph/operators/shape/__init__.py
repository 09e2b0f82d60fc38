"""Operators on shapes, and array creation."""
