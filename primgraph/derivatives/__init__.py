"""Derivatives of programs and functions: compositions of transforms, with no rules of their own."""
