"""Taylor series of values, and the coefficients that rules of primitives give them."""
