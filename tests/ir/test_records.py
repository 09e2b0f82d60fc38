"""Dataclasses whose methods are generated at first use behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import field
from typing import Any

import pytest

from primgraph.base.records import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    """A point."""

    x: int
    y: float = 1.0
    tags: list[str] = field(default_factory=list, compare=False)

    @property
    def double(self) -> float:
        return 2 * self.x


@dataclass(frozen=True, slots=True)
class Near(Point):
    """A point of a derived class."""

    z: int = 3


@dataclass
class Open:
    """An object that may change."""

    a: int
    b: list[int] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.b.append(self.a)


@dataclass(frozen=True, eq=False, slots=True)
class Unique:
    """An object that is equal to itself only."""

    a: int


@dataclass(slots=True, kw_only=True)
class Named:
    """Options."""

    a: int
    b: int = field(default=2, repr=False)

    def __repr__(self) -> str:
        return f"<{self.a}>"


def standard(cls: type[Any], **options: Any) -> type[Any]:
    """Return the same class by the decorator of the standard library."""
    return dataclasses.dataclass(**options)(type("Point", (), {
        "__annotations__": {"x": int, "y": float, "tags": list},
        "y": 1.0, "tags": field(default_factory=list, compare=False), "__doc__": cls.__doc__,
    }))  # fmt: skip


def test_frozen_classes_compare_hash_print_and_pickle() -> None:
    one, other = Point(1), Point(1, 1.0, ["a"])
    assert one == other
    assert hash(one) == hash(other) == hash((1, 1.0))
    assert one != Point(2)
    assert one != Near(1)
    assert repr(one) == "Point(x=1, y=1.0, tags=[])"
    assert other.double == 2
    assert one.tags is not Point(1).tags
    for made in (pickle.loads(pickle.dumps(other)), copy.copy(other), copy.deepcopy(other)):
        assert made == other
        assert made.tags == ["a"]
    assert dataclasses.replace(one, y=3.0) == Point(1, 3.0)
    assert dataclasses.is_dataclass(Point)
    assert [f.name for f in dataclasses.fields(Near)] == ["x", "y", "tags", "z"]
    assert Near(1, z=4).z == 4
    match one:
        case Point(x, y):
            assert (x, y) == (1, 1.0)


def test_frozen_classes_refuse_assignments() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_signatures_are_those_of_the_standard_library() -> None:
    expected = inspect.signature(standard(Point, frozen=True))
    assert [*inspect.signature(Point).parameters] == [*expected.parameters]
    assert inspect.signature(Point).parameters["y"].default == 1.0
    assert [*inspect.signature(Near).parameters] == ["x", "y", "tags", "z"]
    assert "tags: 'list[str]' = <factory>" in str(inspect.signature(Point))
    for call in (lambda: Point(), lambda: Point(1, 2.0, [], 4), lambda: Named(1)):
        with pytest.raises(TypeError, match=r"__init__\(\)"):
            call()


def test_other_options() -> None:
    opened = Open(2)
    opened.a = 5
    assert opened.b == [2]
    assert repr(opened) == "Open(a=5)"
    with pytest.raises(TypeError, match="unhashable"):
        hash(opened)
    assert Unique(1) != Unique(1)
    assert len({Unique(1), Unique(1)}) == 2
    assert repr(Named(a=1)) == "<1>"
    assert Named(a=1) == Named(a=1, b=2)


def test_slots_of_fields_that_are_no_arguments_have_their_defaults() -> None:
    @dataclass(frozen=True, slots=True)
    class Counted:
        a: int
        count: int = field(default=7, init=False)

    @dataclass(frozen=True, slots=True)
    class More(Counted):
        b: int = 1

    @dataclass
    class Free:
        count: int = field(default=7, init=False)

    assert repr(Counted(1)).endswith("Counted(a=1, count=7)")
    assert (More(1, 2).count, More(1, 2).b) == (7, 2)
    assert Free().count == 7
    assert vars(Free()) == {}


def test_derived_classes_are_frozen_like_their_bases() -> None:
    for base, frozen in ((Point, False), (Open, True)):
        with pytest.raises(TypeError, match="inherit"):
            dataclass(frozen=frozen)(type("Derived", (base,), {}))


def test_classes_of_both_decorators_derive_from_each_other() -> None:
    @dataclasses.dataclass(frozen=True)
    class Derived(Unique):
        b: int

    @dataclass(frozen=True)
    class Again(Derived):
        c: int

    assert Again(1, 2, 3) == Again(1, 2, 3)
    assert repr(Derived(1, 2)).endswith("Derived(a=1, b=2)")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Again(1, 2, 3).c = 4  # type: ignore[misc]
