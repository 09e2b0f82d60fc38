"""Data of the back end: plans, loop nests, places, and their verifiers."""
