"""Switches of cuDNN, which have no effect."""

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Return False."""
    return False


def version() -> None:
    """Return None: there is no cuDNN."""
