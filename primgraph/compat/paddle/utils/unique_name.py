"""Unique names of layers and parameters, as `paddle.utils.unique_name` numbers them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, final

__all__ = ["generate", "guard", "switch"]


@final
class UniqueNameGenerator:
    """Counters by key: the first name of `fc` is `fc_0`, the next one `fc_1`.

    >>> generator = paddle.utils.unique_name.UniqueNameGenerator("net_")
    >>> generator("fc"), generator("fc")
    ('net_fc_0', 'net_fc_1')
    """

    def __init__(self, prefix: str | None = None) -> None:
        self.prefix = prefix or ""
        self.ids: Counter[str] = Counter()

    def __call__(self, key: str) -> str:
        self.ids[key] += 1
        return f"{self.prefix}{key}_{self.ids[key] - 1}"


_current: list[UniqueNameGenerator] = [UniqueNameGenerator()]


def generate(key: str) -> str:
    """Return a new name that begins with `key` and ends in a number.

    >>> with paddle.utils.unique_name.guard():
    ...     paddle.utils.unique_name.generate("fc")
    'fc_0'
    """
    return _current[0](key)


def switch(
    new_generator: UniqueNameGenerator | None = None, new_para_name_checker: Any = None
) -> tuple[UniqueNameGenerator, Any]:
    """Use another generator, a new one by default; return the one before.

    The second element of the result is the second argument, which has no effect.

    >>> before, _ = paddle.utils.unique_name.switch()
    >>> paddle.utils.unique_name.generate("fc")
    'fc_0'
    >>> _ = paddle.utils.unique_name.switch(before)
    """
    before, _current[0] = _current[0], new_generator or UniqueNameGenerator()
    return before, new_para_name_checker


@contextmanager
def guard(new_generator: UniqueNameGenerator | str | bytes | None = None) -> Iterator[None]:
    """Use another generator, or a new one with a prefix, within this context.

    >>> with paddle.utils.unique_name.guard("net_"):
    ...     paddle.utils.unique_name.generate("fc")
    'net_fc_0'
    """
    given = new_generator.decode() if isinstance(new_generator, bytes) else new_generator
    chosen = UniqueNameGenerator(given) if isinstance(given, str) else given
    before, _ = switch(chosen)
    try:
        yield
    finally:
        switch(before)
