"""Derivatives of programs and functions, composed of transforms without rules of their own."""
