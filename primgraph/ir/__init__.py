"""The intermediate representation: types, ops, immutable graphs, and their text."""
