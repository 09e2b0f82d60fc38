"""What the back end and the tools know of primitives, a card for each; files as in primitives."""
