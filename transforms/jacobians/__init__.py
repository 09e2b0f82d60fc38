"""Entries of Jacobians, and sums over samples."""
