"""Formats that pictures are written in."""
