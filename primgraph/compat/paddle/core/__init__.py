"""Parts of which functions and layers of Paddle are made: dtypes, methods, parameters."""
