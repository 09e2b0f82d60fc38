"""The runtime of generated code: threads, BLAS, support functions, checks of arguments."""
