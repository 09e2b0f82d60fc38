"""Layouts of pictures."""
