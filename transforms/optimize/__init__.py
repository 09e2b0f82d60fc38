"""Passes that keep the meaning of a graph and make it smaller or faster."""
