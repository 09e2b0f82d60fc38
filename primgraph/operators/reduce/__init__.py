"""Reductions, statistics and cumulative operations."""
