"""Cards of elementwise primitives."""
