"""Containers (pytrees) around the arrays that a traced function takes and returns.

A graph has flat lists of inputs and outputs. Its form records the dicts, lists, tuples, named
tuples, dataclasses and registered containers around them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from types import NoneType
from typing import Any, TypeAlias, final

from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError, FeedError, near_matches

Key: TypeAlias = "str | int"
Flatten: TypeAlias = "Callable[[Any], tuple[Mapping[Any, Any] | Sequence[Any], Hashable]]"
Unflatten: TypeAlias = "Callable[[Any, list[Any]], Any]"

# Flatten and unflatten functions of registered container classes.
registered: dict[type[Any], tuple[Flatten, Unflatten]] = {}

# A container nested deeper than this most likely contains itself.
_DEEPEST = 100


@final
@dataclass(frozen=True, slots=True)
class Leaf:
    """Leaf: one array."""


@final
@dataclass(frozen=True, slots=True)
class Branch:
    """Container: `kind` is its class, `keys` are the positions of its `parts`.

    Keys are the indices of a list or tuple, the keys of a dict in insertion order, or the fields of
    a named tuple or dataclass; None has none. All mappings count as dicts. For registered classes,
    `flatten` returned the keys and the static data `rest`.
    """

    kind: type[Any]
    keys: tuple[Key, ...]
    parts: tuple[Tree, ...]
    rest: Hashable = None


Tree: TypeAlias = Leaf | Branch
LEAF = Leaf()


@final
@dataclass(frozen=True, slots=True)
class Form:
    """Containers of a function whose arrays are the inputs and outputs of its graph.

    `arguments` has a tree for each parameter, by name; `results` is the tree of the return value.
    """

    arguments: tuple[tuple[str, Tree], ...]
    results: Tree

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.arguments)

    @property
    def plain_form(self) -> Form:
        """Return the form with dicts and lists in place of registered containers, as in generated
        code."""
        arguments = tuple([(name, _plain_tree(tree)) for name, tree in self.arguments])
        return Form(arguments, _plain_tree(self.results))

    @property
    def is_plain(self) -> bool:
        """Return whether each argument is an array."""
        return all(tree is LEAF or tree == LEAF for _, tree in self.arguments)


def _plain_tree(tree: Tree) -> Tree:
    if isinstance(tree, Leaf):
        return tree
    kind = tree.kind
    if kind in registered:
        kind = list if tree.keys == tuple(range(len(tree.keys))) else dict
    return Branch(kind, tree.keys, tuple([_plain_tree(part) for part in tree.parts]))


def open_container(value: Any) -> tuple[type[Any], tuple[Key, ...], list[Any], Hashable] | None:
    """Return class, keys, parts and static data of a container; None for anything else.

    Raises `ArgumentError` for keys that are neither strings nor integers, and for a dataclass that
    cannot be rebuilt from its fields.
    """
    if value is None:
        return NoneType, (), [], None
    known = registered.get(type(value))
    if known is not None:
        parts, rest = known[0](value)
        if not isinstance(parts, Mapping):
            return type(value), tuple(range(len(parts))), list(parts), rest
        return type(value), tuple(parts), list(parts.values()), rest
    if isinstance(value, Mapping):
        keys = tuple(value)
        strange = [k for k in keys if type(k) not in (str, int)]
        if strange:
            raise ArgumentError(f"keys of a dict are strings or integers, not {strange[0]!r:.60}")
        return dict, keys, list(value.values()), None
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        if isinstance(fields, tuple):
            return type(value), fields, list(value), None
        return tuple, tuple(range(len(value))), list(value), None
    if isinstance(value, list):
        return list, tuple(range(len(value))), list(value), None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        listed = dataclasses.fields(value)
        if not all(field.init for field in listed):
            raise ArgumentError(
                f"{type(value).__name__} has fields that its constructor does not take"
            )
        names = tuple(field.name for field in listed)
        return type(value), names, [getattr(value, name) for name in names], None
    return None


def flatten_value(
    value: Any, is_leaf: Callable[[Any], bool], depth: int = 0
) -> tuple[Tree, list[Any]]:
    """Flatten `value`: return its tree and its leaves, in order.

    Leaves are all objects for which `is_leaf` is true, and all that are not containers.
    """
    if depth > _DEEPEST:
        raise ArgumentError(f"containers are nested deeper than {_DEEPEST}, or in themselves")
    found = None if is_leaf(value) else open_container(value)
    if found is None:
        return LEAF, [value]
    kind, keys, items, rest = found
    parts, leaves = [], []
    for item in items:
        tree, below = flatten_value(item, is_leaf, depth + 1)
        parts.append(tree)
        leaves += below
    return Branch(kind, keys, tuple(parts), rest), leaves


def unflatten_value(tree: Tree, leaves: Iterator[Any]) -> Any:
    """Unflatten: build the value of `tree` from the next `leaves`."""
    if isinstance(tree, Leaf):
        return next(leaves)
    items = [unflatten_value(part, leaves) for part in tree.parts]
    if tree.kind is list:
        return items
    if tree.kind is tuple:
        return tuple(items)
    if tree.kind is dict:
        return dict(zip(tree.keys, items, strict=True))
    if tree.kind is NoneType:
        return None
    if tree.kind in registered:
        return registered[tree.kind][1](tree.rest, items)
    if issubclass(tree.kind, tuple):
        return tree.kind(*items)
    return tree.kind(**{str(k): v for k, v in zip(tree.keys, items, strict=True)})


def packer(tree: Tree) -> Callable[[list[Any]], Any] | None:
    """Return a function that builds the value of `tree` from its leaves; None if it is their
    list."""
    if isinstance(tree, Leaf):
        return itemgetter(0)
    if all(part == LEAF for part in tree.parts):
        kind, keys = tree.kind, tree.keys
        if kind is list:
            return None
        if kind is tuple:
            return tuple
        if kind is dict:
            return lambda leaves: dict(zip(keys, leaves, strict=True))
    return lambda leaves: unflatten_value(tree, iter(leaves))


def count(tree: Tree) -> int:
    """Return the number of leaves."""
    return 1 if isinstance(tree, Leaf) else sum(map(count, tree.parts))


def names(tree: Tree, root: str = "") -> list[str]:
    """Return a name for each leaf: the keys on its path, joined by dots, after `root`."""
    if isinstance(tree, Leaf):
        return [root]
    lead = f"{root}." if root else ""
    pairs = zip(tree.keys, tree.parts, strict=True)
    return [name for key, part in pairs for name in names(part, f"{lead}{key}")]


def result_names(form: Form | None, count: int) -> list[str]:
    """Return a name for each of `count` results; empty if only its position identifies it."""
    if form is None:
        return [""] * count
    return [
        name if not all(part.isdigit() for part in name.split(".")) else ""
        for name in names(form.results)
    ]


def keyed_names(form: Form) -> list[str]:
    """The name of each result that a key leads to; empty where there are positions alone."""
    return _leaf_names(form.results, "", False)


def _leaf_names(tree: Tree, root: str, has_key: bool) -> list[str]:
    if isinstance(tree, Leaf):
        return [root if has_key else ""]
    keyed = has_key or tree.kind not in (list, tuple)
    lead = f"{root}." if root else ""
    pairs = zip(tree.keys, tree.parts, strict=True)
    return [name for key, part in pairs for name in _leaf_names(part, f"{lead}{key}", keyed)]


def leaves_of(tree: Tree, value: Any, name: str, *, absent: bool = False) -> list[Any]:
    """Flatten `value`, which must have the containers of `tree`; None is a leaf if `absent`.

    Keys of a dict may come in any order. With `absent`, None may stand for any part, and for all of
    its leaves. Raises `FeedError`, with the path under `name`, if the containers differ.
    """
    if isinstance(tree, Leaf):
        return [value]
    if absent and value is None:
        return [None] * count(tree)
    if tree.kind is NoneType and value is None:
        return []
    items = _items(tree, value, name)
    return [
        leaf
        for key, part, item in zip(tree.keys, tree.parts, items, strict=True)
        for leaf in leaves_of(part, item, f"{name}.{key}" if name else str(key), absent=absent)
    ]


def leaves_for(tree: Tree, out: Any) -> list[Any]:
    """Return the arrays in `out` for results of the form `tree`: in its containers, or in a list.

    None, also for a whole container, stands for missing arrays. Raises `ArgumentError` if neither
    form fits.
    """
    listed = isinstance(out, list | tuple) and len(out) == count(tree)
    if listed and not any(item is not None and open_container(item) for item in out):
        return list(out)
    try:
        return leaves_of(tree, out, "out", absent=True)
    except FeedError as error:
        raise ArgumentError(error.message, hint=error.hint) from None


def _items(tree: Branch, value: Any, name: str) -> Sequence[Any]:
    """Return the parts of a container, in the order of the keys of `tree`."""
    kind, keys = tree.kind, tree.keys
    if kind is dict and isinstance(value, Mapping):
        _require_keys(name, keys, value)
        return [value[key] for key in keys]
    if kind in (list, tuple) and isinstance(value, list | tuple):
        if len(value) != len(keys):
            raise FeedError(f"{name!r} has {len(keys)} entries, {len(value)} given")
        return value
    if kind in registered and type(value) is kind:
        return _registered_items(tree, value, name)
    if kind is not NoneType and kind not in registered and isinstance(value, kind):
        return [getattr(value, str(key)) for key in keys]
    raise FeedError(
        f"{name!r} is {_describe_container(tree)}: {type(value).__name__} {value!r:.60} is given"
    )


def _registered_items(tree: Branch, value: Any, name: str) -> Sequence[Any]:
    found = open_container(value)
    assert found is not None
    _, keys, items, rest = found
    if keys != tree.keys or rest != tree.rest:
        raise FeedError(
            f"{name!r} has parts {', '.join(map(repr, keys))} and is built with {rest!r:.60}; it "
            f"was traced with {', '.join(map(repr, tree.keys))} and {tree.rest!r:.60}"
        )
    return items


def _require_keys(name: str, keys: Sequence[Key], value: Mapping[Any, Any]) -> None:
    unknown = [k for k in value if k not in keys]
    missing = [k for k in keys if k not in value]
    if unknown:
        near = near_matches(unknown[0], map(str, missing or keys))
        raise FeedError(
            f"{name!r} has no {unknown[0]!r:.60}",
            hint=f"{near} it has {', '.join(map(repr, keys))}".strip(),
        )
    if missing:
        raise FeedError(f"{name!r}: missing {', '.join(map(repr, missing))}")


def _describe_container(tree: Branch) -> str:
    if tree.kind is NoneType:
        return "None"
    if tree.kind is dict:
        return f"a dict with {', '.join(map(repr, tree.keys)) or 'nothing in it'}"
    if tree.kind in (list, tuple):
        return f"a {tree.kind.__name__} of {len(tree.keys)}"
    return f"a {tree.kind.__name__}"


def bind_arguments(
    title: str, parameters: Sequence[str], given: Sequence[Any], named: Mapping[str, Any]
) -> list[Any]:
    """Bind arguments, given by position or by name, to parameters.

    Raises `FeedError` with the name of a missing, unknown or repeated one; `title` names the
    callee.
    """
    total = len(parameters)
    if not named:
        if len(given) != total:
            lacking = ", ".join(map(repr, parameters[len(given) :]))
            raise FeedError(
                f"{title} takes {total} arrays, {len(given)} given",
                hint=f"missing: {lacking}" if lacking else f"it takes {_list_names(parameters)}",
            )
        return list(given)
    for name in named:
        if name not in parameters:
            raise FeedError(
                f"{title} has no input {name!r}",
                hint=f"{near_matches(name, parameters)} it takes {_list_names(parameters)}".strip(),
            )
        if name in parameters[: len(given)]:
            raise FeedError(f"{title}: input {name!r} is given twice, by position and by name")
    missing = [name for name in parameters[len(given) :] if name not in named]
    if missing:
        raise FeedError(f"{title}: missing {', '.join(map(repr, missing))}")
    if len(given) + len(named) != total:
        raise FeedError(f"{title} takes {total} arrays, {len(given) + len(named)} given")
    return [*given, *(named[name] for name in parameters[len(given) :])]


def _list_names(parameters: Iterable[str]) -> str:
    return ", ".join(map(repr, parameters)) or "nothing"
