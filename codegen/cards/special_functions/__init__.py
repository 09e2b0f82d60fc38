"""Cards of special functions."""
