"""Functions made of functions: derivatives, compiled and vectorised ones, over containers."""
