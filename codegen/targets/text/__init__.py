"""Shared parts of the printers of Python: names, titles, comments, line breaks, modules, clocks."""
