"""Library that is not used."""


def is_available() -> bool:
    """Return False."""
    return False


is_built = is_available
