"""The base class of modules: parts are found in attributes, in the order of their names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from primgraph.compat.megengine.tensor import Parameter, Tensor
from primgraph.compat.modules import module as core
from primgraph.compat.modules.walks import join_path
from primgraph.eager.tensor import Tensor as _Tensor
from primgraph.errors import ArgumentError, ShapeError, UnknownKeyError
from primgraph.operators.variable import Variable

_TABLES = ("_parameters", "_buffers", "_modules")
_INTERNAL = {*_TABLES, "_states", "_hooks", "_non_persistent_buffers_set"}
Predicate: TypeAlias = Callable[[Any], bool]


class Module(core.Module):
    """Part of a network: its parameters, buffers and modules, and a `forward` that computes.

    Parameters, tensors and modules in attributes are its parts, also those in lists, tuples and
    dicts, as `layers.0.weight`. They come in the order of their names, outer ones first.

    >>> class Twice(megengine.module.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = megengine.module.Linear(3, 3)
    ...     def forward(self, x):
    ...         return self.inner(self.inner(x))
    >>> [name for name, parameter in Twice().named_parameters()]
    ['inner.bias', 'inner.weight']
    """

    _parameter: ClassVar[type[_Tensor]] = Parameter
    _tensor: ClassVar[type[_Tensor]] = Tensor
    _library: ClassVar[str] = "megengine"
    _searches_containers: ClassVar[bool] = True
    # Whether state dicts have its tensors as vectors.
    _has_flat_state: ClassVar[bool] = False
    name: str | None = None
    quantize_disabled: bool = False

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        if name is not None:
            self.name = name

    def __setattr__(self, name: str, value: Any) -> None:
        table = _table_of(value)
        own = self.__dict__
        if table is not None:
            self._require_tables(table.strip("_"))
        if isinstance(value, Variable) and name in own.get("_buffers", ()):
            super().__setattr__(name, value)
            return
        for other in _TABLES:
            if other != table:
                own.get(other, {}).pop(name, None)
        if table is None:
            object.__setattr__(self, name, value)
        else:
            own.pop(name, None)
            own[table][name] = value

    # What it consists of.

    def _flatten(
        self,
        predicate: Predicate,
        recursive: bool = True,
        prefix: str | None = None,
        with_parent: bool = False,
    ) -> Iterator[tuple[Any, ...]]:
        """Yield names and parts that satisfy `predicate`, each once; and their modules if asked."""
        seen = {id(self)}
        waiting = [iter(_parts(self, prefix or ""))]
        while waiting:
            found = next(waiting[-1], None)
            if found is None:
                waiting.pop()
                continue
            name, part, _ = found
            if id(part) in seen:
                continue
            seen.add(id(part))
            if predicate(part):
                yield found if with_parent else (name, part)
            if recursive and isinstance(part, Module):
                waiting.append(iter(_parts(part, name)))

    def named_parameters(  # type: ignore[override]
        self, prefix: str | None = None, recursive: bool = True, **options: Any
    ) -> Iterator[tuple[Any, ...]]:
        """Yield dotted names and parameters, of all modules within if `recursive`."""
        return self._flatten(_is_parameter, recursive, prefix, **_known(options))

    def parameters(self, recursive: bool = True, **options: Any) -> Iterator[Any]:  # type: ignore[override]
        """Yield the parameters, of all modules within if `recursive`, each once."""
        return _without_names(self.named_parameters(None, recursive, **options))

    def named_buffers(  # type: ignore[override]
        self, prefix: str | None = None, recursive: bool = True, **options: Any
    ) -> Iterator[tuple[Any, ...]]:
        """Yield dotted names and tensors that are no parameters."""
        return self._flatten(_is_buffer, recursive, prefix, **_known(options))

    def buffers(self, recursive: bool = True, **options: Any) -> Iterator[Any]:  # type: ignore[override]
        """Yield the tensors that are no parameters, each once."""
        return _without_names(self.named_buffers(None, recursive, **options))

    def named_tensors(
        self, prefix: str | None = None, recursive: bool = True, **options: Any
    ) -> Iterator[tuple[Any, ...]]:
        """Yield dotted names, parameters and other tensors."""
        return self._flatten(_is_state, recursive, prefix, **_known(options))

    def tensors(self, recursive: bool = True, **options: Any) -> Iterator[Any]:
        """Yield parameters and other tensors, each once."""
        return _without_names(self.named_tensors(None, recursive, **options))

    def named_children(self, **options: Any) -> Iterator[tuple[Any, ...]]:
        """Yield names and modules directly within."""
        return self._flatten(_is_module, False, **_known(options))

    def children(self, **options: Any) -> Iterator[Any]:  # type: ignore[override]
        """Yield the modules directly within."""
        return _without_names(self.named_children(**options))

    def named_modules(  # type: ignore[override]
        self, prefix: str | None = None, **options: Any
    ) -> Iterator[tuple[Any, ...]]:
        """Yield dotted names and modules: this one by the name "", and all within."""
        known = _known(options)
        yield (prefix or "", self, None) if known.get("with_parent") else (prefix or "", self)
        yield from self._flatten(_is_module, True, prefix, **known)

    def modules(self, **options: Any) -> Iterator[Any]:
        """Yield this module and all within, each once."""
        return _without_names(self.named_modules(**options))

    # What changes all of it.

    def apply(self, fn: Callable[[Any], Any]) -> None:  # type: ignore[override]
        """Call `fn` on this module and on every one within, outer ones first."""
        for module in [*self.modules()]:
            fn(module)

    def train(self, mode: bool = True, recursive: bool = True) -> Self:
        """Set training mode, for all modules within if `recursive`."""
        for module in [*self.modules()] if recursive else [self]:
            object.__setattr__(module, "training", mode)
        return self

    def disable_quantize(self, value: bool = True) -> None:
        """Set a flag that nothing reads: there is no quantization."""
        for module in [*self.modules()]:
            module.quantize_disabled = value

    def zero_grad(self) -> None:  # type: ignore[override]
        """Set the gradients of all parameters to zero."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                parameter.grad = Tensor(np.zeros(parameter.shape, parameter.dtype))

    def replace_param(self, params: Mapping[int, Any], start_pos: int, seen: Any = None) -> int:
        """Replace parameters by their numbers in the order of `parameters`; return their count."""
        found = [*self._flatten(_is_parameter, with_parent=True)]
        for place, (name, parameter, module) in enumerate(found, start_pos):
            if place in params:
                if params[place].shape != parameter.shape:
                    raise ShapeError(f"{name} is of shape {parameter.shape}")
                setattr(module, name.rpartition(".")[2], params[place])
        return len(found)

    # State dicts.

    def state_dict(  # type: ignore[override]
        self, rst: Any = None, prefix: str = "", keep_var: bool = False
    ) -> Any:
        """Return arrays of parameters and other tensors by dotted name, or the tensors themselves.

        Those of normalizations are vectors.

        >>> {n: x.shape for n, x in megengine.module.BatchNorm2d(3).state_dict().items()}
        {'bias': (3,), 'running_mean': (3,), 'running_var': (3,), 'weight': (3,)}
        """
        found = OrderedDict() if rst is None else rst
        for name, item, module in self._flatten(_is_state, with_parent=True):
            value = item if keep_var else item.numpy()
            found[prefix + name] = value.reshape(-1) if module._has_flat_state else value
        return found

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> None:  # type: ignore[override]
        """Copy arrays by dotted name, or what a function of name and tensor returns.

        Raises `KeyError` for names that are missing or unused, if `strict`, and `ValueError` for
        other shapes.

        >>> megengine.module.Linear(1, 1).load_state_dict({"weight": np.ones((1, 1))}, strict=False)
        """
        if not isinstance(state_dict, Mapping) and not callable(state_dict):
            raise ArgumentError(f"a state dict is a dict or a function, not {state_dict!r:.60}")
        unused = set(state_dict) if isinstance(state_dict, Mapping) else set()
        missing, loaded = [], []
        for name, item, module in self._flatten(_is_state, with_parent=True):
            unused.discard(name)
            is_mapping = isinstance(state_dict, Mapping)
            given = state_dict.get(name) if is_mapping else state_dict(name, item)
            if given is None:
                missing.append(name)
            else:
                loaded.append((item, _fit(name, item, given, module._has_flat_state)))
        for kind, names in (("Unused", sorted(unused)), ("Missing", missing)):
            if names and strict:
                raise UnknownKeyError(
                    f"{kind} params violate `strict=True`, {kind.lower()}={names}"
                )
        for item, array in loaded:
            item._reset(array)

    # Text.

    def _module_info_string(self) -> str:
        return ""

    def extra_repr(self) -> str:
        """Return what the text of the module says beside its parts."""
        return self._module_info_string()

    def __repr__(self) -> str:
        own = self.extra_repr()
        extra = own.split("\n") if own else []
        inner = []
        for name, part in _in_order(self):
            first, *rest = repr(part).split("\n")
            inner.append("\n".join([f"({name}): {first}", *(f"  {line}" for line in rest)]))
        lines = [*extra, *inner]
        if len(extra) == 1 and not inner:
            return f"{type(self).__name__}({extra[0]})"
        body = "".join(f"\n  {line}" for line in lines)
        return f"{type(self).__name__}({body}" + ("\n)" if lines else ")")


def _parts(module: Module, prefix: str) -> Iterator[tuple[str, Any, Module]]:
    """Yield names and parts directly within, those in containers included, by name."""
    own = module.__dict__
    found = {n: x for n, x in own.items() if n not in _INTERNAL and _is_container(x)}
    for table in _TABLES:
        found |= own[table]
    for name in sorted(found):
        for path, part in _expand(name, found[name]):
            yield join_path(prefix, path), part, module


def _in_order(module: Module) -> Iterator[tuple[str, Any]]:
    """Yield names and modules directly within as they were assigned, containers last."""
    yield from module._modules.items()
    for name, value in module.__dict__.items():
        if name not in _INTERNAL and _is_container(value):
            yield from ((path, part) for path, part in _expand(name, value) if _is_module(part))


def _expand(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a container holds, at any depth, with its place in the name."""
    waiting = [(name, value)]
    while waiting:
        path, item = waiting.pop()
        if isinstance(item, Tensor | Module):
            yield path, item
        elif isinstance(item, dict):
            waiting += [(f"{path}.{key}", item[key]) for key in sorted(item, reverse=True)]
        elif isinstance(item, list | tuple):
            waiting += [(f"{path}.{i}", x) for i, x in reversed([*enumerate(item)])]


def _fit(name: str, item: Any, given: Any, is_flat: bool) -> np.ndarray[Any, Any]:
    """The array for a tensor, in its shape and dtype."""
    array = np.asarray(given.numpy() if isinstance(given, _Tensor) else given)
    if array.shape != item.shape:
        if not (is_flat and array.size == item.size):
            raise ShapeError(
                f"param `{name}` shape mismatch, should be {item.shape}, get {array.shape}"
            )
        array = array.reshape(item.shape)
    return array.astype(item.dtype)


def _table_of(value: Any) -> str | None:
    if isinstance(value, Parameter):
        return "_parameters"
    if isinstance(value, _Tensor):
        return "_buffers"
    return "_modules" if isinstance(value, core.Module) else None


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """Options of the walks; `requires_grad` has no effect, as in MegEngine."""
    unknown = options.keys() - {"with_parent", "requires_grad"}
    if unknown:
        raise ArgumentError(f"there is no option {min(unknown)!r}")
    return {name: options[name] for name in options if name == "with_parent"}


def _without_names(found: Iterator[tuple[Any, ...]]) -> Iterator[Any]:
    return (item[1] if len(item) == 2 else item[1:] for item in found)


def _is_container(value: Any) -> bool:
    return isinstance(value, list | tuple | dict)


def _is_parameter(part: Any) -> bool:
    return isinstance(part, Parameter)


def _is_state(part: Any) -> bool:
    return isinstance(part, Tensor)


def _is_buffer(part: Any) -> bool:
    return isinstance(part, Tensor) and not isinstance(part, Parameter)


def _is_module(part: Any) -> bool:
    return isinstance(part, Module)
