"""Random arrays as functions of keys."""
