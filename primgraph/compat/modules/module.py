"""Module: a part of a network that holds parameters, buffers and modules in tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

from primgraph.compat.modules.conversions import Conversions
from primgraph.compat.modules.hooks import (
    Hooked,
    call_with_hooks,
    everywhere,
)
from primgraph.compat.modules.states import StateDicts, require_name
from primgraph.compat.modules.walks import (
    describe,
    find_path,
    require_module,
    walk_members,
    walk_modules,
)
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, MissingMethodError, UnknownKeyError, UnknownNameError
from primgraph.nn.layer import Layer, read_parameter
from primgraph.nn.parameter import Parameter, as_parameter, state_around
from primgraph.nn.scopes import EAGERLY, world
from primgraph.operators.handle import Handle
from primgraph.operators.variable import Variable
from primgraph.program.program import belongs_to_program, program_of

_TABLES = ("_parameters", "_buffers", "_modules")


class Module(Conversions, StateDicts, Hooked, Layer):
    """Part of a network, with tables of parameters, buffers and modules, and hooks.

    The tables hold the tensors themselves. Where a module is called on variables of a program, they
    read as states of the program, as in `pg.nn.Layer`.
    """

    # The classes of parameters and of other tensors, and the library's name in messages.
    _parameter: ClassVar[type[Tensor]] = Tensor
    _tensor: ClassVar[type[Tensor]] = Tensor
    # Classes of tensors that are buffers where they are assigned.
    _buffer: ClassVar[tuple[type[Any], ...]] = ()
    _library: ClassVar[str] = "torch"
    _has_tables: ClassVar[bool] = True

    def __init__(self) -> None:
        own = self.__dict__
        for table in _TABLES:
            own[table] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_hooks"] = {}
        own["_states"] = {}
        own["training"] = True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of `forward`, with hooks around it."""
        if self._hooks or everywhere:
            return call_with_hooks(self, super().__call__, args, kwargs)
        return super().__call__(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the module; subclasses define it."""
        raise MissingMethodError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # Registration.

    def register_parameter(self, name: str, param: Any) -> None:
        """Register a parameter, or None, by a name that is free."""
        self._require_tables("parameter")
        require_name(self, "parameter", name)
        if name not in self._parameters and hasattr(self, name):
            raise UnknownKeyError(f"attribute '{name}' already exists")
        if param is not None and not isinstance(param, self._parameter):
            raise ArgumentError(
                f"cannot assign {type(param).__name__!r} object to parameter '{name}' "
                f"({self._library}.nn.Parameter or None required)"
            )
        if param is not None and not param.is_leaf:
            raise ArgumentError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Keep a tensor, or None, beside the parameters; state dicts have it if `persistent`."""
        self._require_tables("buffer")
        require_name(self, "buffer", name)
        if name not in self._buffers and hasattr(self, name):
            raise UnknownKeyError(f"attribute '{name}' already exists")
        if tensor is not None and not isinstance(tensor, Handle):
            raise ArgumentError(
                f"cannot assign {type(tensor).__name__!r} object to buffer '{name}' "
                f"({self._library} Tensor or None required)"
            )
        self._buffers[name] = tensor
        keep = self._non_persistent_buffers_set
        keep.discard(name) if persistent else keep.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Register a module, or None, by a name that is free."""
        if module is not None and not isinstance(module, Module):
            raise ArgumentError(f"{type(module).__name__} is not a Module subclass")
        require_name(self, "module", name)
        if name not in self._modules and hasattr(self, name):
            raise UnknownKeyError(f"attribute '{name}' already exists")
        self._modules[name] = module

    def register_module(self, name: str, module: Any) -> None:
        """Register a module, as `add_module` does."""
        self.add_module(name, module)

    def _require_tables(self, kind: str) -> None:
        if "_parameters" not in self.__dict__:
            raise UnknownNameError(f"cannot assign {kind} before Module.__init__() call")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, self._parameter) and _is_parameter(self, value):
            self._require_tables("parameters")
            _discard(own, name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            self._require_tables("module")
            _discard(own, name, "_modules")
            own["_modules"][name] = value
        elif isinstance(value, self._buffer):
            self._require_tables("buffer")
            _discard(own, name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif not _set_entry(self, name, value):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in _TABLES:
            found = own.get(table)
            if found is not None and name in found:
                item = found[name]
                current = world.get()
                if current is None or not isinstance(item, Handle):
                    return item
                if current is EAGERLY and isinstance(item, Tensor):
                    return item
                if isinstance(item, Variable) and not belongs_to_program(item):
                    # A call with other parameters, while a function is traced.
                    return item
                return read_parameter(self, self._table("_states")[name])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in _TABLES:
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        parts = [name for table in _TABLES for name in self.__dict__.get(table, ())]
        return sorted({*object.__dir__(self), *parts})

    def _table(self, name: str) -> dict[str, Any]:
        """Return the states, or the modules, as `pg.nn.Layer` keeps them."""
        if name == "_sublayers":
            return {n: m for n, m in self._modules.items() if m is not None}
        known: dict[str, Parameter] = self.__dict__["_states"]
        found = {}
        for table in _TABLES[:2]:
            for key, item in self.__dict__[table].items():
                state = known.get(key)
                if isinstance(item, Tensor):
                    if state is None or not state.is_around(item):
                        state = known[key] = state_around(item, table == "_parameters")
                    found[key] = state
                elif isinstance(item, Variable) and belongs_to_program(item):
                    if state is None or state.state_in(program_of(item)) is not item:
                        state = known[key] = as_parameter(key, item)
                    found[key] = state
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_states": {}}

    # What is registered.

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield dotted names and modules: this one by the name "", and all within."""
        return walk_modules(self, prefix, remove_duplicate, memo)

    def modules(self) -> Iterator[Any]:
        """Yield this module and all within, each once."""
        return (module for _, module in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield names and modules directly within, each module once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:  # type: ignore[override]
        """Yield the modules directly within, each once."""
        return (module for _, module in self.named_children())

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield dotted names and parameters, of all modules within if `recurse`."""
        return walk_members(self, "_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Any:
        """Yield the parameters, of all modules within if `recurse`, each once."""
        return (parameter for _, parameter in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield dotted names and buffers, of all modules within if `recurse`."""
        return walk_members(self, "_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Any:
        """Yield the buffers, of all modules within if `recurse`, each once."""
        return (buffer for _, buffer in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Any:
        """Return the module that a dotted name leads to; this one for ""."""
        return find_path(self, target, require_module) if target else self

    def get_parameter(self, target: str) -> Any:
        """Return the parameter that a dotted name leads to."""
        return find_path(self, target, lambda m, name: _entry(m, name, "_parameters"))

    def get_buffer(self, target: str) -> Any:
        """Return the buffer that a dotted name leads to."""
        return find_path(self, target, lambda m, name: _entry(m, name, "_buffers"))

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call `fn` on every module within, inner ones first, and on this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # Text.

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what the text of the module says beside its parts."""
        return ""

    def __repr__(self) -> str:
        return describe(self)


def _is_parameter(module: Module, value: Any) -> bool:
    """Return whether a tensor is a parameter, where their class is that of all tensors."""
    is_same = module._parameter is module._tensor
    return not is_same or (value.is_leaf and value.requires_grad)


def _discard(own: dict[str, Any], name: str, table: str) -> None:
    """Remove an attribute from all places but the entry of one table."""
    own.pop(name, None)
    for other in _TABLES:
        if other != table:
            own[other].pop(name, None)
    own["_non_persistent_buffers_set"].discard(name)


def _set_entry(module: Module, name: str, value: Any) -> bool:
    """Set an entry of a table by its name, and return whether there is one."""
    own = module.__dict__
    for table, kind in zip(_TABLES, ("parameter", "buffer", "child module"), strict=True):
        entries = own.get(table)
        if entries is None or name not in entries:
            continue
        fits = value is None or (table == "_buffers" and isinstance(value, Handle))
        if not fits:
            wanted = {"parameter": "nn.Parameter", "buffer": "Tensor"}.get(kind, "nn.Module")
            raise ArgumentError(
                f"cannot assign {type(value).__name__!r} as {kind} '{name}' "
                f"({module._library}.{wanted} or None expected)"
            )
        if isinstance(value, Variable) and isinstance(entries[name], Tensor):
            _refuse_traced(module, name, value)
        entries[name] = value
        return True
    return False


def _refuse_traced(module: Module, name: str, value: Variable) -> None:
    if not belongs_to_program(value):
        raise ArgumentError(
            f"{type(module).__name__} changes {name!r} when it is called, and a function that is "
            "traced or compiled changes nothing",
            hint="call module.eval() before",
        )


def _entry(module: Module, name: str, table: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
    if name not in module.__dict__[table]:
        kind = "an nn.Parameter" if table == "_parameters" else "a buffer"
        raise AttributeError(f"`{name}` is not {kind}")
    return getattr(module, name)
