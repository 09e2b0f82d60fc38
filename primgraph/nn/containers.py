"""Lists and dicts of layers, and lists of parameters, that are layers themselves."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, final, overload

from primgraph.errors import ArgumentError, BoundsError, BuildError, UnknownKeyError, near_matches
from primgraph.ir.frontend.signature import checked_methods
from primgraph.nn.layer import Layer, read_parameter
from primgraph.nn.parameter import as_parameter


def _place(index: Any, count: int, what: str, *, end: bool = False) -> int:
    """`index` counted from the front, in a list of `count`; with `end`, the place behind too."""
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise ArgumentError(f"a place in a {what} is an integer, not {index!r:.60}")
    number = index.__index__()
    if not -count <= number < count + end:
        raise BoundsError(f"a {what} of {count} has no place {number}")
    return int(number + count if number < 0 else number)


def _require_layer(layer: Any, owner: Layer) -> Layer:
    if not isinstance(layer, Layer):
        raise ArgumentError(f"a {type(owner).__name__} has layers, not {layer!r:.80}")
    if layer is owner:
        raise BuildError("a layer cannot be within itself")
    return layer


@final
@checked_methods()
class LayerList(Layer):
    """Layers in a list, which may change; named '0', '1' and so on.

        self.layers = pg.nn.LayerList(pg.nn.Linear(8, 8) for _ in range(3))
        ...
        for layer in self.layers:
            x = pg.tanh(layer(x))

    It is not called itself.

    >>> layers = pg.nn.LayerList([pg.nn.Linear(2, 3), pg.nn.Linear(3, 1)])
    >>> len(layers)
    2
    """

    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        self.extend(() if sublayers is None else sublayers)

    def append(self, layer: Layer) -> LayerList:
        """Put `layer` at the end; returns the list."""
        return self._hold([*self.children(), layer])

    def extend(self, layers: Iterable[Layer]) -> LayerList:
        """Put `layers` at the end, in order; returns the list."""
        return self._hold([*self.children(), *layers])

    def insert(self, index: int, layer: Layer) -> None:
        """Put `layer` before the one at `index`."""
        layers = self.children()
        layers.insert(_place(index, len(layers), "LayerList", end=True), layer)
        self._hold(layers)

    def pop(self, index: int = -1) -> Layer:
        """Take out the layer at `index`, and return it."""
        layers = self.children()
        found = layers.pop(_place(index, len(layers), "LayerList"))
        self._hold(layers)
        return found

    def _hold(self, layers: list[Any]) -> LayerList:
        table = {str(i): _require_layer(layer, self) for i, layer in enumerate(layers)}
        self.__dict__["_sublayers"] = table
        return self

    def __len__(self) -> int:
        return len(self.children())

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.children())

    @overload
    def __getitem__(self, index: int) -> Layer: ...
    @overload
    def __getitem__(self, index: slice) -> LayerList: ...
    def __getitem__(self, index: int | slice) -> Layer | LayerList:
        layers = self.children()
        if isinstance(index, slice):
            return LayerList(layers[index])
        return layers[_place(index, len(layers), "LayerList")]

    def __setitem__(self, index: int, layer: Layer) -> None:
        layers = self.children()
        layers[_place(index, len(layers), "LayerList")] = layer
        self._hold(layers)

    def __delitem__(self, index: int | slice) -> None:
        layers = self.children()
        if isinstance(index, slice):
            del layers[index]
        else:
            del layers[_place(index, len(layers), "LayerList")]
        self._hold(layers)


@final
@checked_methods()
class LayerDict(Layer):
    """Layers by names, in the order in which they came; parameters have these names too.

    It is not called itself.

    >>> layers = pg.nn.LayerDict({"first": pg.nn.Linear(2, 3)})
    >>> list(layers)
    ['first']
    """

    def __init__(
        self, sublayers: Mapping[str, Layer] | Iterable[tuple[str, Layer]] | None = None
    ) -> None:
        super().__init__()
        self.update(() if sublayers is None else sublayers)

    def update(self, sublayers: Mapping[str, Layer] | Iterable[tuple[str, Layer]]) -> None:
        """Put in layers by their names, in place of those that have these."""
        for name, layer in dict(sublayers).items():
            self[name] = layer

    def keys(self) -> KeysView[str]:
        """The names."""
        return self._layers().keys()

    def values(self) -> ValuesView[Layer]:
        """The layers."""
        return self._layers().values()

    def items(self) -> ItemsView[str, Layer]:
        """Pairs of a name and its layer."""
        return self._layers().items()

    def pop(self, name: str) -> Layer:
        """Take out the layer of that name, and return it."""
        found = self[name]
        del self._layers()[name]
        return found

    def clear(self) -> None:
        """Take out all layers."""
        self._table("_sublayers").clear()

    def _layers(self) -> dict[str, Layer]:
        return self._table("_sublayers")

    def __len__(self) -> int:
        return len(self._layers())

    def __iter__(self) -> Iterator[str]:
        return iter(self._layers())

    def __contains__(self, name: object) -> bool:
        return name in self._layers()

    def __getitem__(self, name: str) -> Layer:
        layers = self._layers()
        if name not in layers:
            raise UnknownKeyError(
                f"the LayerDict has no layer {name!r:.60}", hint=near_matches(name, layers)
            )
        return layers[name]

    def __setitem__(self, name: str, layer: Layer) -> None:
        if not isinstance(name, str) or not name or "." in name:
            raise BuildError(f"{name!r} cannot name a part of a layer: it is empty or has a dot")
        self._layers()[name] = _require_layer(layer, self)

    def __delitem__(self, name: str) -> None:
        self.pop(name)


@final
@checked_methods()
class ParameterList(Layer):
    """Parameters in a list, which may grow; named '0', '1' and so on.

    Each is what `create_parameter` gave, of a layer or of primgraph, and reads as what it is there.
    It is not called itself.

    >>> class Polynomial(pg.nn.Layer):
    ...     def __init__(self, degree):
    ...         super().__init__()
    ...         self.terms = pg.nn.ParameterList()
    ...         for _ in range(degree + 1):
    ...             self.terms.append(self.create_parameter((1,)))
    ...
    ...     def forward(self, x):
    ...         return sum(c * x**k for k, c in enumerate(self.terms))
    ...
    >>> [name for name, _ in Polynomial(2).named_parameters()]
    ['terms.0', 'terms.1', 'terms.2']
    """

    def __init__(self, parameters: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(() if parameters is None else parameters)

    def append(self, parameter: Any) -> ParameterList:
        """Put `parameter` at the end; returns the list."""
        return self.extend([parameter])

    def extend(self, parameters: Iterable[Any]) -> ParameterList:
        """Put `parameters` at the end, in order; returns the list."""
        table = self._table("_states")
        for parameter in list(parameters):
            table[str(len(table))] = as_parameter(str(len(table)), parameter)
        return self

    def __len__(self) -> int:
        return len(self._table("_states"))

    def __iter__(self) -> Iterator[Any]:
        return (read_parameter(self, p) for p in list(self._table("_states").values()))

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return list(self)[index]
        name = str(_place(index, len(self), "ParameterList"))
        return read_parameter(self, self._table("_states")[name])

    def __setitem__(self, index: int, parameter: Any) -> None:
        name = str(_place(index, len(self), "ParameterList"))
        self._table("_states")[name] = as_parameter(name, parameter)
