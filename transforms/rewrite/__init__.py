"""Rewrite rules of `simplify` and `clean_up`, one file per family of equations."""
