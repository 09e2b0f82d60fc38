"""Functions that NumPy lacks, in NumPy: what primitives mean, and what generated code copies."""
