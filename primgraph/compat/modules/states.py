"""State dicts of modules: saved and loaded as torch does."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

from primgraph.compat.modules.hooks import RemovableHandle, Table, add_hook, hooks_of
from primgraph.compat.modules.walks import join_path
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, BuildError, FeedError, UnknownKeyError


class IncompatibleKeys(NamedTuple):
    """Result of `load_state_dict`: names that the state dict lacks, and that the module lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not (self.missing_keys or self.unexpected_keys):
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class StateDicts:
    """Methods of modules that save and load state dicts."""

    _version: ClassVar[int] = 1
    _hooks: dict[str, Table]
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Return parameters and persistent buffers by dotted name, in an `OrderedDict`.

        The tensors share their elements with those of the module, and carry no derivative unless
        `keep_vars`.

        >>> list(torch.nn.Linear(2, 3).state_dict())
        ['weight', 'bias']
        """
        given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
        destination = given.get("destination", destination)
        prefix, keep_vars = given.get("prefix", prefix), given.get("keep_vars", keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local: dict[str, Any] = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook, _ in hooks_of(self, "state_dict_pre"):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook, replaces in hooks_of(self, "state_dict"):
            found = hook(self, destination, prefix, local)
            if found is not None and not replaces:
                raise BuildError("state_dict post-hook must return None")
            destination = destination if found is None else found
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Store the parameters and buffers of this module alone in `destination`."""
        for name, item in self._own_state().items():
            if item is not None:
                destination[prefix + name] = item if keep_vars else item.detach()
        extra = _overridden(self, "get_extra_state")
        if extra is not None:
            destination[f"{prefix}_extra_state"] = extra()

    def _own_state(self) -> dict[str, Any]:
        """Return parameters and persistent buffers of this module alone."""
        kept = {n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set}
        return {**self._parameters, **kept}

    def get_extra_state(self) -> Any:
        """Return what a state dict holds beside tensors; subclasses define it."""
        raise FeedError(
            "Reached a code path in Module.get_extra_state() that should never be called."
        )

    def set_extra_state(self, state: Any) -> None:
        """Load what `get_extra_state` returned; subclasses define it."""
        raise FeedError(
            "Reached a code path in Module.set_extra_state() that should never be called."
        )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy the tensors of a state dict into parameters and buffers; return unmatched names.

        With `assign` the tensors themselves become the parameters and buffers. Raises
        `RuntimeError` for other shapes, and if `strict` for missing and unexpected names.

        >>> torch.nn.Linear(1, 1).load_state_dict({"weight": torch.ones(1, 1)}, strict=False)
        _IncompatibleKeys(missing_keys=['bias'], unexpected_keys=[])
        """
        if not isinstance(state_dict, Mapping):
            raise ArgumentError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        found = IncompatibleKeys([], [])
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        values = OrderedDict(state_dict)
        with no_grad():
            _load(self, values, metadata, "", strict, assign, found, errors)
        _check_names(self, values, found)
        for hook, _ in hooks_of(self, "load_post"):
            if hook(self, found) is not None:
                raise ArgumentError("a hook after load_state_dict returns None")
        if strict:
            for kind, names in (
                ("Unexpected", found.unexpected_keys),
                ("Missing", found.missing_keys),
            ):
                if names:
                    listed = ", ".join(f'"{name}"' for name in names)
                    errors.insert(0, f"{kind} key(s) in state_dict: {listed}. ")
        if errors:
            raise FeedError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        return found

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Copy what a state dict has for this module alone, and note what it lacks."""
        assign = local_metadata.get("assign_to_params_buffers", False)
        for hook, with_module in hooks_of(self, "load_pre"):
            given = (state_dict, prefix, local_metadata, strict)
            lists = (missing_keys, unexpected_keys, error_msgs)
            hook(*((self,) if with_module else ()), *given, *lists)
        for name, item in self._own_state().items():
            key = prefix + name
            if key in state_dict:
                if item is not None:
                    _load_item(self, name, key, item, state_dict[key], assign, error_msgs)
                elif strict:
                    unexpected_keys.append(key)
            elif item is not None and strict:
                missing_keys.append(key)
        key, setter = f"{prefix}_extra_state", _overridden(self, "set_extra_state")
        if setter is not None:
            if key in state_dict:
                setter(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif key in state_dict and strict:
            unexpected_keys.append(key)

    # Hooks.

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before each `state_dict`."""
        return add_hook(self._hooks, "state_dict_pre", hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after each `state_dict`."""
        return add_hook(self._hooks, "state_dict", hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        return add_hook(self._hooks, "state_dict", hook, True)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook` before each `load_state_dict`, with the module and its seven arguments.

        These are the state dict, the prefix, metadata, `strict` and the lists of missing names,
        unexpected names and messages.
        """
        return add_hook(self._hooks, "load_pre", hook, True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return add_hook(self._hooks, "load_pre", hook, with_module)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after each `load_state_dict`."""
        return add_hook(self._hooks, "load_post", hook)


def _overridden(module: Any, name: str) -> Any:
    """Return a method of `module` if its class defines it anew, else None."""
    own = getattr(type(module), name)
    return None if own is getattr(StateDicts, name) else getattr(module, name)


def _load(
    whole: Any,
    values: Any,
    metadata: Any,
    path: str,
    strict: bool,
    assign: bool,
    found: IncompatibleKeys,
    errors: list[str],
) -> None:
    """Load a module and all within, outer ones first."""
    waiting = [(path, whole)]
    while waiting:
        path, module = waiting.pop()
        local = dict({} if metadata is None else metadata.get(path, {}))
        if assign:
            local["assign_to_params_buffers"] = True
        prefix = f"{path}." if path else ""
        module._load_from_state_dict(
            values, prefix, local, True, found.missing_keys, found.unexpected_keys, errors
        )
        inner = [(join_path(path, n), m) for n, m in module._modules.items() if m is not None]
        waiting += reversed(inner)


def _load_item(
    module: Any, name: str, key: str, item: Any, value: Any, assign: bool, errors: list[str]
) -> None:
    """Copy or assign one tensor."""
    if not hasattr(value, "shape"):
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(value)}"
        )
    elif tuple(value.shape) not in (tuple(item.shape), *([] if item.shape else [(1,)])):
        errors.append(
            f"size mismatch for {key}: copying a param with shape "
            f"{type(item.shape)(value.shape)} from checkpoint, the shape in current model is "
            f"{item.shape}."
        )
    elif assign:
        _assign(module, name, item, value)
    else:
        item.copy_(value.reshape(()) if not item.shape and value.shape else value)


def _assign(module: Any, name: str, item: Any, value: Any) -> None:
    if name in module._parameters:
        if not isinstance(value, module._parameter):
            value = module._parameter(value, requires_grad=item.requires_grad)
        module._parameters[name] = value
    else:
        module._buffers[name] = value if isinstance(value, Tensor) else module._tensor(value)


def _check_names(whole: Any, values: Mapping[str, Any], found: IncompatibleKeys) -> None:
    """Note names of `values` that no module has."""
    known: set[str] = set(found.unexpected_keys)
    waiting = [("", whole)]
    while waiting:
        prefix, module = waiting.pop()
        known.update(prefix + name for name in (*module._own_state(), "_extra_state"))
        waiting += [(f"{prefix}{n}.", m) for n, m in module._modules.items() if m is not None]
    found.unexpected_keys.extend(name for name in values if name not in known)


def require_name(module: Any, kind: str, name: Any) -> None:
    """Raise as torch does for a name that no part of a module can have."""
    if not isinstance(name, str):
        raise ArgumentError(f"{kind} name should be a string. Got {type(name).__name__}")
    if "." in name:
        raise UnknownKeyError(f'{kind} name can\'t contain ".", got: {name}')
    if not name:
        raise UnknownKeyError(f'{kind} name can\'t be empty string ""')
