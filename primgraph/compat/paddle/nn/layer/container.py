"""Containers of layers and parameters by the names that they have in Paddle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from primgraph.compat.paddle.nn.layer.layers import Layer
from primgraph.errors import ArgumentError, BoundsError


class Sequential(Layer):
    """Layers one after the other, named by their positions, or given as pairs with names.

    >>> net = paddle.nn.Sequential(("fc", paddle.nn.Linear(2, 3)), ("act", paddle.nn.ReLU()))
    >>> list(net.state_dict())
    ['fc.weight', 'fc.bias']
    """

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        if layers and isinstance(layers[0], tuple | list):
            for name, layer in layers:
                self.add_sublayer(name, layer)
        elif len(layers) == 1 and isinstance(layers[0], dict):
            for name, layer in layers[0].items():
                self.add_sublayer(name, layer)
        else:
            for number, layer in enumerate(layers):
                self.add_sublayer(str(number), layer)

    def forward(self, input: Any) -> Any:
        """Return the result of the last layer; `input` itself if there are none."""
        for layer in self._modules.values():
            input = layer(input)
        return input

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, slice):
            return type(self)(*list(self._modules.values())[name])
        if isinstance(name, str):
            return self._modules[name]
        return list(self._modules.values())[name]

    def __setitem__(self, name: Any, layer: Any) -> None:
        self._modules[str(name)] = layer

    def __delitem__(self, name: Any) -> None:
        del self._modules[str(name)]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Any) -> Self:
        """Add a layer at the end."""
        self.add_sublayer(str(len(self)), module)
        return self

    def insert(self, index: int, module: Any) -> Self:
        """Add a layer before the one at `index`."""
        listed = list(self._modules.values())
        listed.insert(index, module)
        _renumber(self, listed)
        return self

    def extend(self, sequential: Iterable[Any]) -> Self:
        """Add layers at the end."""
        for layer in sequential:
            self.append(layer)
        return self


def _renumber(owner: Layer, layers: Iterable[Any]) -> None:
    """Let a container hold these layers, named by their positions."""
    owner._modules.clear()
    for number, layer in enumerate(layers):
        owner.add_sublayer(str(number), layer)


class LayerList(Layer):
    """A list of layers, named by their positions.

    >>> layers = paddle.nn.LayerList([paddle.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), [list(p.shape) for p in layers[0].parameters()]
    (3, [[2, 2], [2]])
    """

    def __init__(self, sublayers: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend([] if sublayers is None else sublayers)

    def _position(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise BoundsError(
                f"index {index} is out of range, should be an integer in range "
                f"[{-len(self)}, {len(self)})"
            )
        return index % len(self) if len(self) else index

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(self._position(idx))]

    def __setitem__(self, idx: int, sublayer: Any) -> None:
        self._modules[str(self._position(idx))] = sublayer

    def __delitem__(self, idx: Any) -> None:
        listed = list(self._modules.values())
        del listed[idx]
        _renumber(self, listed)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self, layers: Iterable[Any]) -> Self:
        return self.extend(layers)

    def __add__(self, other: Iterable[Any]) -> LayerList:
        return LayerList([*self, *other])

    def append(self, sublayer: Any) -> Self:
        """Add a layer at the end."""
        self.add_sublayer(str(len(self)), sublayer)
        return self

    def insert(self, index: int, sublayer: Any) -> None:
        """Add a layer before the one at `index`."""
        listed = list(self._modules.values())
        if not -len(listed) <= index <= len(listed):
            raise BoundsError(f"index {index} is out of range")
        listed.insert(index, sublayer)
        _renumber(self, listed)

    def extend(self, sublayers: Iterable[Any]) -> Self:
        """Add layers at the end."""
        for layer in sublayers:
            self.append(layer)
        return self

    def pop(self, key: Any) -> Any:
        """Remove the layer at `key`, and return it."""
        found = self[key]
        del self[key]
        return found


class LayerDict(Layer):
    """A dict of layers.

    >>> layers = paddle.nn.LayerDict({"act": paddle.nn.ReLU()})
    >>> list(layers.keys()), "act" in layers
    (['act'], True)
    """

    def __init__(self, sublayers: Any = None) -> None:
        super().__init__()
        self.update({} if sublayers is None else sublayers)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, sublayer: Any) -> None:
        self.add_sublayer(key, sublayer)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all layers."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove the layer of that name, and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return names and layers."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the layers."""
        return self._modules.values()

    def update(self, sublayers: Any) -> None:
        """Add the layers of a mapping, or of pairs of a name and a layer."""
        for key, layer in _pairs(sublayers):
            self[key] = layer


def _pairs(given: Any) -> Iterable[tuple[str, Any]]:
    """Return the pairs of a mapping, or those that are given."""
    if isinstance(given, Mapping | LayerDict | ParameterDict):
        return list(given.items())
    if not isinstance(given, Iterable):
        raise ArgumentError(
            f"The type of sublayers is not iterable of key/value pairs: {type(given).__name__}"
        )
    return [(key, value) for key, value in given]


class ParameterList(Layer):
    """A list of parameters, named by their positions.

    >>> parameters = [paddle.create_parameter([2], "float32") for _ in range(2)]
    >>> len(paddle.nn.ParameterList(parameters).parameters())
    2
    """

    def __init__(self, parameters: Iterable[Any] | None = None) -> None:
        super().__init__()
        for parameter in [] if parameters is None else parameters:
            self.append(parameter)

    def __getitem__(self, idx: int) -> Any:
        listed = range(len(self))
        return getattr(self, str(listed[idx]))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(range(len(self))[idx]), param)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def append(self, parameter: Any) -> Self:
        """Add a parameter at the end."""
        self.add_parameter(str(len(self)), parameter)
        return self


class ParameterDict(Layer):
    """A dict of parameters.

    >>> weight = paddle.create_parameter([2], "float32")
    >>> list(paddle.nn.ParameterDict({"w": weight}).state_dict())
    ['w']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update({} if parameters is None else parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def __setitem__(self, key: str, param: Any) -> None:
        setattr(self, key, param)

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def keys(self) -> Any:
        """Return the names."""
        return self._parameters.keys()

    def items(self) -> Any:
        """Return names and parameters."""
        return [(key, self[key]) for key in self._parameters]

    def values(self) -> Any:
        """Return the parameters."""
        return [self[key] for key in self._parameters]

    def update(self, parameters: Any) -> None:
        """Add the parameters of a mapping, or of pairs of a name and a parameter."""
        for key, parameter in _pairs(parameters):
            self.add_parameter(key, parameter)
