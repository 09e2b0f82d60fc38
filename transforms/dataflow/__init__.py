"""Analyses of graphs for the transforms. No analysis changes a graph."""
