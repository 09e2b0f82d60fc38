"""The intermediate representation: types, ops, immutable graphs, and their text."""

import time

# Files that have changed since then are not those that run.
LOADED = time.time()
