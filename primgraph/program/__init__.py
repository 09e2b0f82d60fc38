"""Programs: construction, compilation, runs and state."""
