"""Objects of the user's vector spaces in functions that derivatives are taken of.

A box has a token, a tensor without elements that matter: primitives that take the box depend on
it, so reverse mode calls their rules in order. The rules' cotangents, which are objects, are added
up in the box.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from primgraph.compat.autograd.spaces import VSpace, vspace
from primgraph.eager.tensor import Tensor, tensor
from primgraph.errors import NotDifferentiable


class Box:
    """Base class of boxes: a subclass has the methods of the values of a class of the user.

    `register` names that class, whose vector space `VSpace.register` names.
    """

    types: ClassVar[set[type[Any]]] = set()
    type_mappings: ClassVar[dict[type[Any], Callable[..., Box]]] = {}

    _value: Any
    _token: Tensor
    _cotangent: Any

    def __init__(self, value: Any, token: Tensor) -> None:
        self._value, self._token, self._cotangent = value, token, None

    @classmethod
    def register(cls, value_type: type[Any]) -> None:
        """Let boxes of this class stand for values of that class."""
        Box.types.add(cls)
        Box.type_mappings[value_type] = Box.type_mappings[cls] = cls
        VSpace.register(cls, lambda box: vspace(box._value))


def is_element(value: Any) -> bool:
    """Return whether an object is an element of a vector space of the user, or its box."""
    return type(value) in VSpace.mappings


def new_box(value: Any, token: Any) -> Box:
    """Return the box of an object.

    Raises `NotDifferentiable` in programs, and for a class without boxes.
    """
    maker, name = Box.type_mappings.get(type(value)), type(value).__name__
    if maker is None:
        raise NotDifferentiable(
            f"there is no derivative by a {name}, which has no boxes",
            hint=f"define class {name}Box(Box, {name}), and call {name}Box.register({name})",
        )
    if isinstance(value, Box) or not isinstance(token, Tensor):
        raise NotDifferentiable(f"there is no derivative of higher order or in a program by {name}")
    return maker(value, token)


def new_token() -> Tensor:
    """Return the token of an object."""
    return tensor(np.zeros(()))


def add_cotangent(box: Box, part: Any) -> None:
    """Add an object to the cotangent of a box; None is zero."""
    if part is not None:
        before = box._cotangent
        box._cotangent = part if before is None else vspace(box._value).add(before, part)


def take_cotangent(box: Box) -> Any:
    """Return the cotangent of a box, which is zero again afterwards."""
    found, box._cotangent = box._cotangent, None
    return vspace(box._value).zeros() if found is None else found
