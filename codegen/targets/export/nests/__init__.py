"""Loop nests, products and routines of exported C."""
