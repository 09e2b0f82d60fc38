"""Compilation of C, and its cache."""
