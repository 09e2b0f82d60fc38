"""Function transformations: derivatives, compilation and vectorisation, over pytrees."""
