"""The rules of `simplify` and `clean_up`, a file for each kind of equation."""
