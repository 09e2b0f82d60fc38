"""Intermediate representation: types, ops, immutable graphs, and their text format."""

import time

# Import time: files modified later differ from the code that runs.
LOADED = time.time()
