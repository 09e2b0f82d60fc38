"""Shortcuts of calls of a compiled function: one generated check of the arguments, then the kernel.

A shortcut serves the calls of one cache entry. It checks the containers and the static arguments,
and the kernel checks the arrays. It returns None for other calls, and for those that are rare.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping
from types import NoneType
from typing import Any, TypeAlias, final

import numpy as np

from primgraph import defaults, tree
from primgraph.api.jit_call import Call, Static
from primgraph.api.tracing import Traced
from primgraph.codegen import Kernel
from primgraph.codegen.kernel import direct, when_settled
from primgraph.ir.params import bits
from primgraph.ir.primitive import innermost

Shortcut: TypeAlias = "Callable[[tuple[Any, ...], Mapping[str, Any]], Any]"

# Most arrays of a call with a shortcut.
_MOST = 1000
# Classes of static values that are compared by `==`.
_COMPARED = (int, str, bool, NoneType)
# Classes of numbers that shortcuts convert to arrays.
_NUMBERS = (float, int, bool)

_HEAD = """\
def call(args, kwargs):
    if len(args) != {args} or len(kwargs) != {kwargs}{modes}:
        return None
    if current[0] is not default or innermost() is not None:
        return None
"""


def no_shortcut(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Return None: the shortcut that serves no call."""


def fingerprint(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Hashable:
    """Return a key of a call that is equal for all calls that one shortcut serves."""
    found: list[Hashable] = [len(args), *kwargs]
    for value in (*args, *kwargs.values()):
        kind = value.__class__
        found.append((value.shape, value.dtype) if kind is np.ndarray else kind)
    return tuple(found)


def shortcut_of(
    call: Call, args: tuple[Any, ...], kwargs: Mapping[str, Any], traced: Traced, kernel: Kernel
) -> Shortcut:
    """Return the shortcut of calls like this one; `no_shortcut` if it would not be faster.

    `kernel` computes the arrays of `traced` from those of the call.
    """
    if len(call.found) > _MOST or traced.structure.kind is NoneType:
        return no_shortcut
    return _Writer(call, kernel).write(args, kwargs, traced) or no_shortcut


@final
class _Writer:
    """Writer of the text of a shortcut, and of the names that it uses."""

    def __init__(self, call: Call, kernel: Kernel) -> None:
        self.call = call
        self.kernel = kernel
        self.lines: list[str] = []
        self.leaves: list[str] = []
        self.names: dict[str, Any] = {
            "array": np.array,
            "bits": bits,
            "current": defaults.current,
            "default": call.signature.default,
            "innermost": innermost.get,
            "is_": operator.is_,
            "kernel": kernel,
            "run": direct(kernel),
            "ndarray": np.ndarray,
            "unflatten": tree.unflatten,
        }

    def write(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], traced: Traced
    ) -> Shortcut | None:
        signature = self.call.signature
        keywords = _keywords(self.call, len(args))
        if len(keywords) != len(kwargs):
            return None
        inputs = [f"x{k}" for k in range(len(signature.arguments))]
        if args:
            self.line(f"{', '.join(inputs[: len(args)])}, = args")
        if kwargs:
            # A function can tell the order of keywords that it has no parameters for.
            self.reject(f"[*kwargs] != {self.bind([*kwargs])}")
            named = dict(zip(keywords, inputs[len(args) :], strict=True))
            self.line(f"{', '.join([named[keyword] for keyword in kwargs])}, = kwargs.values()")
        pairs = zip(signature.arguments, signature.parts, inputs, strict=True)
        for (_, part), key, name in pairs:
            if isinstance(part, Static):
                self.check_static(part.value, key, name)
            elif not self.open(part, name):
                return None
        self.run()
        self.line(f"return {self.result(traced.structure)}")
        modes = [f" or {self.bind(x)}.training is not {training}" for x, training in traced.modes]
        head = _HEAD.format(args=len(args), kwargs=len(kwargs), modes="".join(modes))
        text = head + "".join([f"    {line}\n" for line in self.lines])
        exec(compile(text, "<shortcut of jit>", "exec"), self.names)
        if self.names["run"] is not None:
            when_settled(self.kernel, self.run_directly)
        found: Shortcut = self.names["call"]
        return found

    def run_directly(self, kernel: Kernel) -> None:
        """Run the kernel that a kernel has chosen, without asking it in each call."""
        run = direct(kernel)
        if run is not None:
            self.names["run"] = run

    def run(self) -> None:
        """Run the kernel: directly, or by a call that converts arrays of the same types."""
        leaves, begin = ", ".join(self.leaves), len(self.lines)
        for name, (shape, dtype) in zip(self.leaves, self.call.signature.types, strict=True):
            of = f"{name}.__class__ is not ndarray or {name}.dtype is not {self.bind(dtype)}"
            self.reject(f"{of} or {name}.shape != {shape!r}")
        self.line(f"found = kernel({leaves})")
        if self.names["run"] is not None:
            otherwise = [f"    {line}" for line in self.lines[begin:]]
            self.lines[begin:] = [f"found = run({leaves})", "if found is None:", *otherwise]

    def line(self, text: str) -> None:
        self.lines.append(text)

    def reject(self, condition: str) -> None:
        """Return None for calls with this condition."""
        self.lines += [f"if {condition}:", "    return None"]

    def bind(self, value: Any) -> str:
        """Return a name for a value."""
        name = f"v{len(self.names)}"
        self.names[name] = value
        return name

    def check_static(self, value: Any, key: Hashable, name: str) -> None:
        kind = value.__class__
        if kind in _COMPARED:
            self.reject(
                f"{name}.__class__ is not {self.bind(kind)} or {name} != {self.bind(value)}"
            )
        else:
            self.reject(f"bits({name}) != {self.bind(key)}")

    def open(self, part: tree.Structure, name: str) -> bool:
        """Check the containers of an argument, and name its leaves; False if it has other kinds."""
        kind = part.kind
        if kind is None:
            return self.take(name)
        if kind is NoneType:
            self.reject(f"{name} is not None")
            return True
        if kind not in (dict, list, tuple):
            return False
        count = len(part.parts)
        self.reject(f"{name}.__class__ is not {kind.__name__} or len({name}) != {count}")
        inner = [f"{name}_{k}" for k in range(count)]
        if kind is dict and inner and not self.check_keys(part.keys, name):
            return False
        if inner:
            self.line(f"{', '.join(inner)}, = {name}{'.values()' if kind is dict else ''}")
        return all(map(self.open, part.parts, inner))

    def check_keys(self, keys: tuple[Hashable, ...], name: str) -> bool:
        """Check the keys of a dict, which are all strings, and their order."""
        if any(key.__class__ is not str for key in keys):
            return False
        known = self.bind([*keys])
        is_other = f"[*{name}] != {known} or {{*map(type, {name})}} != {{str}}"
        # Most keys are literals of the source, which are the same objects in every call.
        self.reject(f"not all(map(is_, {name}, {known})) and ({is_other})")
        return True

    def take(self, name: str) -> bool:
        """Name a leaf; numbers become arrays."""
        leaf = self.call.found[len(self.leaves)]
        converted = self.call.leaves[len(self.leaves)]
        self.leaves.append(name)
        kind = leaf.__class__
        if kind is np.ndarray:
            return True
        if kind not in _NUMBERS or np.array(leaf).dtype != converted.dtype:
            return False
        self.reject(f"{name}.__class__ is not {kind.__name__}")
        self.line(f"{name} = array({name})")
        return True

    def result(self, structure: tree.Structure) -> str:
        """Return the expression of the containers of the results, which are the list `found`."""
        if structure.kind is None:
            return "found[0]"
        items = iter(range(tree.count(structure)))
        text = self.build(structure, items)
        return text or f"unflatten({self.bind(structure)}, found)"

    def build(self, structure: tree.Structure, items: Any) -> str:
        kind = structure.kind
        if kind is None:
            return f"found[{next(items)}]"
        if kind is NoneType:
            return "None"
        parts = [self.build(part, items) for part in structure.parts]
        if not all(parts):
            return ""
        if kind is dict:
            pairs = zip(structure.keys, parts, strict=True)
            return "{" + ", ".join([f"{self.bind(key)}: {part}" for key, part in pairs]) + "}"
        if kind is list:
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})" if kind is tuple else ""


def _keywords(call: Call, count: int) -> list[str]:
    """Return the keywords of the arguments after the first `count`."""
    places = [place for place, _ in call.signature.arguments][count:]
    return [p if isinstance(p, str) else call.parameters.ordered[p] for p in places]
