"""Primitives as compositions of others, for targets that have no words for them."""
