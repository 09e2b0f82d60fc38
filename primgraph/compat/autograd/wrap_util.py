"""Operators of functions of one argument, as operators of functions of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from primgraph.errors import ArgumentError

_DOC = """\
    {op} of function {fun} with respect to argument number {argnum}. It takes
    what {fun} takes, and gives the {op}.
    """


def name_of(function: Any) -> str:
    """Return the name of a function."""
    return str(getattr(function, "__name__", "[unknown name]"))


def subvals(values: Iterable[Any], changes: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """A tuple of these values, with others at some places."""
    found = list(values)
    for place, value in changes:
        found[place] = value
    return tuple(found)


def unary_to_nary(operator: Callable[..., Any]) -> Callable[..., Any]:
    """An operator of a function and its one argument, as one that takes `(function, argnum=0)`.

    It gives a function of all arguments, of which the one at `argnum`, or a tuple of those at
    several places, is what the operator is about.
    """

    def nary(fun: Callable[..., Any], argnum: Any = 0, *rest: Any, **options: Any) -> Any:
        if type(argnum) not in (int, tuple, list):
            raise ArgumentError(f"argnum is an integer or several, not {argnum!r:.60}")
        single = isinstance(argnum, int)

        def apply_operator(*args: Any, **kwargs: Any) -> Any:
            def call_one(x: Any) -> Any:
                pairs = [(argnum, x)] if single else zip(argnum, x, strict=True)
                return fun(*subvals(args, pairs), **kwargs)

            call_one.__name__ = name_of(fun)
            x = args[argnum] if single else tuple([args[i] for i in argnum])
            return operator(call_one, x, *rest, **options)

        words = {"op": name_of(operator), "fun": name_of(fun), "argnum": argnum}
        apply_operator.__name__ = "{op}_of_{fun}_wrt_argnum_{argnum}".format(**words)
        apply_operator.__doc__ = _DOC.format(**words)
        return apply_operator

    nary.__name__, nary.__doc__ = name_of(operator), operator.__doc__
    nary.__module__ = operator.__module__
    return nary
