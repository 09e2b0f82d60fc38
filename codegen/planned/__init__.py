"""NumPy code as a plan has it: every result in a buffer, or handed out."""
