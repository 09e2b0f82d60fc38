"""Activations, losses, normalisation and attention."""
