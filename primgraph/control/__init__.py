"""Branches and loops of functions, recorded as equations with bodies."""
