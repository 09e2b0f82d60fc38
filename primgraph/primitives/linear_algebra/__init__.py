"""Primitives of linear algebra."""
