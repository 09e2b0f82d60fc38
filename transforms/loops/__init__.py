"""Derivative and batching rules of branches and loops, built by transforming their bodies."""
