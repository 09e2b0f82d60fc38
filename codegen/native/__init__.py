"""The native back end: from a schedule to loop nests, to C, to a compiled function."""
