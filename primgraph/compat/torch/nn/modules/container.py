"""Lists and dicts of modules and parameters, and modules in sequence."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from primgraph.compat.torch.nn.modules.module import Module
from primgraph.compat.torch.tensor import Parameter, Tensor
from primgraph.errors import ArgumentError, BoundsError, UnknownKeyError

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _place(index: Any, count: int, end: bool = False) -> int:
    """Return `index` counted from the front, or raise `IndexError`."""
    number = operator.index(index)
    if not -count <= number < count + end:
        raise BoundsError(f"index {number} is out of range")
    return number + count if number < 0 else number


class _Modules(Module):
    """Modules in a list, named '0', '1' and so on unless they have names."""

    def _hold(self, modules: Iterable[Any]) -> None:
        """Hold exactly these modules, by their numbers."""
        self._modules.clear()
        for number, module in enumerate(modules):
            self.add_module(str(number), module)

    def _key(self, index: Any) -> str:
        return list(self._modules)[_place(index, len(self))]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __contains__(self, module: object) -> bool:
        return module in self._modules.values()

    def __setitem__(self, index: Any, module: Any) -> None:
        key = self._key(index)
        if not isinstance(module, Module):
            raise ArgumentError(f"{type(module).__name__} is not a Module subclass")
        self._modules[key] = module

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)
        chosen = keys[index] if isinstance(index, slice) else [self._key(index)]
        for key in chosen:
            del self._modules[key]
        if all(key.isdigit() for key in keys):
            self._hold(list(self))

    def insert(self, index: int, module: Any) -> Any:
        """Put a module before the one at `index`."""
        modules = list(self)
        modules.insert(_place(index, len(modules), end=True), module)
        self._hold(modules)
        return self

    def append(self, module: Any) -> Self:
        """Put a module at the end; return the container."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Take out the module at an index, and return it."""
        found = self._modules[self._key(key)]
        del self[key]
        return found


class Sequential(_Modules):
    """Modules that are called one after the other; given one by one, or named in a dict.

    >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> net(torch.ones(4, 2)).shape
    torch.Size([4, 3])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for number, module in enumerate(args):
                self.add_module(str(number), module)

    def forward(self, input: Any) -> Any:
        """Return the result of the last module."""
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def extend(self, sequential: Iterable[Any]) -> Self:
        """Put modules at the end; return the container."""
        for module in sequential:
            self.append(module)
        return self

    def __add__(self, other: Any) -> Sequential:
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        return self.extend(other)

    def __mul__(self, times: int) -> Sequential:
        return Sequential(*list(self) * times)

    __rmul__ = __mul__


class ModuleList(_Modules):
    """Modules in a list, which may change.

    >>> layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), list(layers.state_dict())[:2]
    (3, ['0.weight', '0.bias'])
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[self._key(index)]

    def extend(self, modules: Iterable[Any]) -> Self:
        """Put modules at the end; return the list."""
        if not isinstance(modules, Iterable):
            raise ArgumentError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        for module in list(modules):
            self.append(module)
        return self

    def __add__(self, other: Iterable[Any]) -> ModuleList:
        return ModuleList([*self, *other])

    def __iadd__(self, other: Iterable[Any]) -> Self:
        return self.extend(other)

    def __repr__(self) -> str:
        texts = [repr(module).replace("\n", "\n  ") for module in self]
        if not texts:
            return f"{self._get_name()}()"
        lines, first = [], 0
        for number, text in enumerate(texts):
            if number + 1 == len(texts) or texts[number + 1] != text:
                count = number - first + 1
                place = f"({first})" if count == 1 else f"({first}-{number})"
                lines.append(f"  {place}: {text if count == 1 else f'{count} x {text}'}")
                first = number + 1
        return "\n".join([f"{self._get_name()}(", *lines, ")"])


class ModuleDict(Module):
    """Modules by names, in the order in which they came.

    >>> layers = torch.nn.ModuleDict({"first": torch.nn.ReLU()})
    >>> list(layers)
    ['first']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take out all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take out the module of that name, and return it."""
        return self._modules.pop(key)

    def keys(self) -> Any:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return pairs of a name and its module."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Put in modules by their names."""
        for name, module in dict(modules).items():
            self[name] = module


def _as_parameter(value: Any) -> Any:
    is_plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
    return Parameter(value) if is_plain else value


def _describe(entries: Iterable[tuple[str, Any]], type_name: Callable[[Tensor], str]) -> str:
    """Return lines for the entries of a container of parameters."""
    lines = []
    for name, value in entries:
        kind = "Parameter" if isinstance(value, Parameter) else type(value).__name__
        text = f"Object of type: {kind}"
        if isinstance(value, Tensor):
            size = "x".join(map(str, value.shape))
            text = f"{kind} containing: [{type_name(value)} of size {size}]"
        lines.append(f"  ({name}): {text}")
    return "\n".join(lines)


def _dtype_name(value: Tensor) -> str:
    return str(value.dtype)


def _class_name(value: Tensor) -> str:
    """Return the name of the class that tensors of the dtype had."""
    names = {"float32": "Float", "float64": "Double", "float16": "Half", "int64": "Long"}
    kind = str(value.dtype).rpartition(".")[2]
    return f"{value._library}.{names.get(kind, kind.capitalize())}Tensor"


class ParameterList(Module):
    """Parameters in a list, which may change; tensors become parameters.

    >>> weights = torch.nn.ParameterList([torch.ones(2), torch.zeros(1)])
    >>> [weight.shape for weight in weights]
    [torch.Size([2]), torch.Size([1])]
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(_place(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_place(index, len(self))), _as_parameter(value))

    def append(self, value: Any) -> Self:
        """Put a parameter at the end; return the list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Put parameters at the end; return the list."""
        for value in list(values):
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def extra_repr(self) -> str:
        """Return a line for each parameter."""
        return _describe([(str(i), value) for i, value in enumerate(self)], _dtype_name)


class ParameterDict(Module):
    """Parameters by names, in the order in which they came; tensors become parameters.

    >>> weights = torch.nn.ParameterDict({"scale": torch.ones(2)})
    >>> list(weights.state_dict())
    ['scale']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise UnknownKeyError(f"the ParameterDict has no parameter {key!r:.60}")
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def clear(self) -> None:
        """Take out all parameters."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take out the parameter of that name, and return it."""
        found = self[key]
        del self[key]
        return found

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter of that name, or `default`."""
        return getattr(self, key) if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of that name, which is `default` if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def keys(self) -> Any:
        """Return the names."""
        return self._keys.keys()

    def values(self) -> Any:
        """Return the parameters."""
        return [self[key] for key in self._keys]

    def items(self) -> Any:
        """Return pairs of a name and its parameter."""
        return [(key, self[key]) for key in self._keys]

    def update(self, parameters: Any) -> None:
        """Put in parameters by their names, those of a plain dict in the order of their names."""
        known = dict(parameters.items() if hasattr(parameters, "items") else parameters)
        is_ordered = not isinstance(parameters, Mapping) or isinstance(parameters, OrderedDict)
        for key in known if is_ordered else sorted(known):
            self[key] = known[key]

    def extra_repr(self) -> str:
        """Return a line for each parameter."""
        return _describe(self.items(), _class_name)
