"""What generated code calls while it runs: threads, BLAS, support functions, checks of feeds."""
