"""Branches and loops of functions: what users write, as equations with graphs in them."""
