"""Places of values in memory."""
