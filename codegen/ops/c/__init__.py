"""The words of C for operations: expressions, calls of functions, formulas."""
