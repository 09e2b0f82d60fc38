"""Functions of ATen's operators, by topic."""
