"""Rules for first values by the names that they and their arguments have in Paddle."""

from primgraph.initializers import Assign, Constant, Initializer, Kaiming, Normal, Uniform, Xavier

__all__ = [
    "Assign",
    "Constant",
    "Initializer",
    "KaimingNormal",
    "KaimingUniform",
    "Normal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
]


def XavierUniform() -> Xavier:
    """Uniform numbers of variance `2 / (fan_in + fan_out)`."""
    return Xavier(uniform=True)


def XavierNormal() -> Xavier:
    """Normal numbers of variance `2 / (fan_in + fan_out)`."""
    return Xavier(uniform=False)


def KaimingUniform() -> Kaiming:
    """Uniform numbers of variance `2 / fan_in`."""
    return Kaiming(uniform=True)


def KaimingNormal() -> Kaiming:
    """Normal numbers of variance `2 / fan_in`."""
    return Kaiming(uniform=False)
