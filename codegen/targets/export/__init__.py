"""Export to C files that need only the C library, for machines without Python."""
