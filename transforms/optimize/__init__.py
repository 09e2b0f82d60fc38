"""Optimization passes: semantics-preserving rewrites to smaller or faster graphs."""
