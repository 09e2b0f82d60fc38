"""Where derivatives may be other than zero, and how few directions tell them all."""
