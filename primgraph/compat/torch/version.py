"""Version of torch whose names and meanings these are."""

__version__ = "2.13.0+primgraph"
cuda = hip = None
debug = False
git_version = ""
