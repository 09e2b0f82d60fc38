"""`from_jax`: a function written with JAX as a graph."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.interop.imported import Imported
from primgraph.interop.jax import (  # noqa: F401
    control,
    customs,
    elementwise,
    indexing,
    linear_algebra,
    products,
    random,
    reductions,
    shapes,
    special,
    windows,
)
from primgraph.interop.jax.evaluation import Evaluation, is_key, require_supported
from primgraph.interop.lacking import require_library
from primgraph.ir.dims import Dim
from primgraph.ir.dims import size as named_size
from primgraph.ir.frontend.containers import flatten_value, unflatten_value
from primgraph.ir.types import TensorType
from primgraph.operators.variable import Variable
from primgraph.program.trace import example_type, is_example, trace

if TYPE_CHECKING:
    import jax
    from jax import export
else:
    jax = late("jax")
    export = late("jax.export")


@final
@dataclass(frozen=True, slots=True)
class _Place:
    """Stand-in of an array in containers: its number in JAX's order."""

    number: int


def from_jax(function: Callable[..., Any], /, *specs: Any, **named: Any) -> Imported:
    """Return a function written with JAX as a function whose graph needs no JAX.

    It is traced once by `jax.make_jaxpr`, so that JAX is needed for this call only; arrays that it
    uses are copied. Specs are those of `pg.trace`, or arrays and `jax.ShapeDtypeStruct`s, in the
    containers of JAX (pytrees). Classes that only JAX knows become dicts of their fields. Symbolic
    sizes are sizes of `jax.export`, too. Dtypes are those of JAX: float32, unless
    `jax_enable_x64` is set.

    The derivatives of functions with `jax.custom_jvp` and `jax.custom_vjp` are by their rules.

    Raises `UnsupportedError` that lists all primitives and dtypes of the program that are lacking,
    with their lines; ImportError without JAX. Warns with `VersionWarning` of a newer JAX than was
    tried.

        import jax.numpy as jnp
        norm = pg.interop.from_jax(lambda x: jnp.sqrt(jnp.sum(x * x)), pg.spec(3, "float32"))
        pg.grad(norm)(np.ones(3))
    """
    require_library("jax", "from_jax")
    program = _read_program(function, specs, named)
    given = [_plain(x) for x in program.args], {k: _plain(x) for k, x in program.kwargs.items()}
    order = [place.number for place in _leaves(given)]
    evaluation = Evaluation(program.sizes, program.scope)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        found: list[Any] = [None] * len(order)
        for number, x in zip(order, _leaves((list(args), kwargs)), strict=True):
            found[number] = x
        return _filled(_plain(program.results), evaluation.run(program.jaxpr, found))

    _dress(recorded, function)
    types = [evaluation.type_of(aval) for aval in program.jaxpr.in_avals]
    specs_of, named_of = _filled(given, types)
    return Imported(trace(recorded, *specs_of, rebind=False, **named_of))


@final
@dataclass(frozen=True, slots=True)
class _Program:
    """Jaxpr of a function, and its arguments and results as containers of `_Place`."""

    jaxpr: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    results: Any
    sizes: Mapping[str, Dim]
    scope: Any


def _read_program(
    function: Callable[..., Any], specs: Sequence[Any], named: Mapping[str, Any]
) -> _Program:
    flat = [_flatten_spec(spec) for spec in (*specs, *named.values())]
    types = [_type_of(leaf) for leaves, _ in flat for leaf in leaves]
    sizes, scope = _symbolic_sizes(types)
    structs = iter(_structs(types, scope))
    places = iter([_Place(i) for i in range(len(types))])

    def filled(items: Any) -> tuple[list[Any], dict[str, Any]]:
        whole = [jax.tree.unflatten(tree, [next(items) for _ in leaves]) for leaves, tree in flat]
        return whole[: len(specs)], dict(zip(named, whole[len(specs) :], strict=True))

    args, kwargs = filled(structs)
    jaxpr, found = jax.make_jaxpr(function, return_shape=True)(*args, **kwargs)
    require_supported(jaxpr.jaxpr)
    count = len(jaxpr.jaxpr.outvars)
    results = jax.tree.unflatten(jax.tree.structure(found), [_Place(i) for i in range(count)])
    return _Program(jaxpr, *filled(places), results, sizes, scope)


def _flatten_spec(spec: Any) -> tuple[list[Any], Any]:
    if is_example(spec, 1):
        return [spec], jax.tree.structure(0)
    leaves, tree = jax.tree.flatten(spec, is_leaf=is_example)
    return leaves, tree


def _type_of(leaf: Any) -> Any:
    """Return the type of an argument that is one array; an array of keys as JAX describes it."""
    if type(leaf) in (bool, int, float, complex):
        # Numbers take part in JAX's promotion as in its own calls.
        return jax.ShapeDtypeStruct((), example_type(leaf).dtype, weak_type=True)
    if isinstance(leaf, TensorType) or not hasattr(leaf, "dtype"):
        return example_type(leaf)
    if is_key(leaf) or any(not isinstance(n, int) for n in leaf.shape):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    return TensorType(tuple(leaf.shape), np.dtype(leaf.dtype))


# Symbolic sizes.


def symbolic_structs(types: Sequence[TensorType]) -> list[Any]:
    """Return arguments of these types as JAX describes them."""
    return _structs(types, _symbolic_sizes(types)[1])


def _structs(types: Sequence[Any], scope: Any) -> list[Any]:
    return [
        jax.ShapeDtypeStruct(_jax_shape(t, scope), t.dtype) if isinstance(t, TensorType) else t
        for t in types
    ]


def _symbolic_sizes(types: Sequence[Any]) -> tuple[dict[str, Dim], Any]:
    """Return symbolic sizes by name, and their scope in JAX; None without any."""
    names: dict[str, None] = {}
    scope = None
    for type in types:
        if isinstance(type, TensorType):
            names.update(dict.fromkeys(sorted(type.names)))
            continue
        for n in type.shape:
            if not isinstance(n, int):
                names.update(dict.fromkeys(sorted(n._get_vars())))
                scope = n.scope
    if names and scope is None:
        scope = export.SymbolicScope()
    return {name: named_size(name) for name in names}, scope


def _jax_shape(type: TensorType, scope: Any) -> Any:
    if not type.names:
        return type.shape
    return export.symbolic_shape(", ".join(map(str, type.shape)) + ",", scope=scope)


# Containers.


def _plain(value: Any) -> Any:
    """Return containers of `_Place` without classes that only JAX knows, which become dicts."""
    if value is None or isinstance(value, _Place):
        return value
    parts = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda x: x is not value)[0]
    children = {_key_name(path[-1]): _plain(part) for path, part in parts}
    kind = type(value)
    if kind in (list, tuple):
        return kind(children.values())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*children.values())
    if isinstance(value, Mapping):
        return {key: children[str(key)] for key in value}
    if dataclasses.is_dataclass(kind) and _is_of_fields(kind, children):
        return kind(**children)
    return children


def _key_name(key: Any) -> str:
    """Return the name of a key in a path of JAX."""
    for field in ("name", "key", "idx"):
        if hasattr(key, field):
            return str(getattr(key, field))
    return str(key)


def _is_of_fields(kind: Any, children: Mapping[str, Any]) -> bool:
    """Return whether a dataclass is made of these children alone."""
    fields = dataclasses.fields(kind)
    parameters = kind.__dataclass_params__
    return (
        parameters.init and all(f.init for f in fields) and {f.name for f in fields} == {*children}
    )


def _leaves(value: Any) -> list[Any]:
    return flatten_value(value, lambda x: isinstance(x, _Place | Variable))[1]


def _filled(value: Any, items: Sequence[Any]) -> Any:
    """Return containers with items in place of their numbers."""
    tree, places = flatten_value(value, lambda x: isinstance(x, _Place))
    return unflatten_value(tree, iter([items[place.number] for place in places]))


def _dress(recorded: Callable[..., Any], function: Callable[..., Any]) -> None:
    """Give a function the name and the parameters of another one."""
    name = getattr(function, "__name__", "")
    recorded.__name__ = name if name.isidentifier() else "f"
    with suppress(TypeError, ValueError):
        recorded.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
