"""NumPy implementations of functions that NumPy lacks, used by primitives and copied into generated
code."""
