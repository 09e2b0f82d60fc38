"""Graphs: a network, its loss and its optimizers as one program."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any, NoReturn

from primgraph import tree
from primgraph.compat.modules.module import Module
from primgraph.eager.derivatives.recording import no_grad
from primgraph.eager.tensor import Tensor
from primgraph.errors import ArgumentError, BuildError, MissingMethodError, OptionError

_counts: Counter[str] = Counter()
_running: ContextVar[str] = ContextVar("oneflow_graph", default="")


class GraphConfig:
    """Options of a graph. Those that only make OneFlow's programs faster have no effect.

    >>> graph = oneflow.nn.Graph()
    >>> graph.config.allow_fuse_add_to_output(True)
    """

    def enable_amp(self, mode: bool = True, *, dtype: Any = None) -> None:
        """Raise `OptionError` unless `mode` is False: dtypes are those of the program."""
        if mode:
            raise OptionError("nn.Graph: automatic mixed precision is not supported")

    def enable_zero(self, mode: bool = True, **options: Any) -> None:
        """Raise `OptionError` unless `mode` is False: there is one rank."""
        if mode:
            raise OptionError("nn.Graph: ZeRO is not supported: there is one rank")

    def set_gradient_accumulation_steps(self, value: int) -> None:
        """Raise `OptionError` unless `value` is 1."""
        if value != 1:
            raise OptionError("nn.Graph: gradient accumulation is not supported")

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(("allow_", "enable_", "prune_", "set_outputs_")):
            raise AttributeError(f"GraphConfig has no attribute {name!r}")
        return lambda *args, **kwargs: None


class Graph:
    """A computation that `build` describes, with the steps of its optimizers.

    A subclass assigns modules to attributes, adds optimizers, and defines `build`. A call runs
    `build`, then a step of each optimizer and of its schedule. What repeats is compiled as one
    program: forward pass, gradients and update.

    >>> class Twice(oneflow.nn.Graph):
    ...     def build(self, x):
    ...         return 2 * x
    >>> Twice()(oneflow.ones(2))
    tensor([2., 2.], dtype=oneflow.float32)
    """

    def __init__(self, *, debug_v_level: int = -1) -> None:
        kind = type(self).__name__
        self.__dict__.update(_blocks=OrderedDict(), _optimizers=[], _calls=0)
        self.config = GraphConfig()
        self.training = True
        self._name = f"{kind}_{_counts[kind]}"
        _counts[kind] += 1

    @property
    def name(self) -> str:
        """The class and a number."""
        return self._name

    @property
    def is_compiled(self) -> bool:
        """Whether the graph was called."""
        return bool(self._calls)

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the results; subclasses define it."""
        raise MissingMethodError(f"{type(self).__name__} does not define build()")

    def add_optimizer(self, optim: Any, *, lr_sch: Any = None, is_sparse: bool = False) -> None:
        """Let each call take a step of an optimizer, and of a schedule of its rates."""
        if not hasattr(optim, "param_groups"):
            raise ArgumentError(f"add_optimizer takes an optimizer, not {optim!r:.60}")
        if is_sparse:
            raise OptionError("nn.Graph: is_sparse=True is not supported")
        self._optimizers.append((optim, lr_sch))

    def set_grad_scaler(self, grad_scaler: Any = None) -> None:
        """Raise `OptionError`: losses are not scaled."""
        if grad_scaler is not None:
            raise OptionError("nn.Graph: gradient scalers are not supported")

    def debug(self, v_level: int = -1, **options: Any) -> None:
        """Do nothing: `pg.explain` shows what is compiled."""

    def train(self, mode: bool = True) -> Graph:
        """Set training mode for all modules; return the graph."""
        self.training = mode
        for module in self._blocks.values():
            module.train(mode)
        return self

    def eval(self) -> Graph:
        """Set evaluation mode for all modules; return the graph."""
        return self.train(False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the results of `build`, without derivatives, and take the steps."""
        if _running.get():
            raise BuildError(f"nn.Graph: {self.name} is called in {_running.get()}")
        _require_tensors(self.name, (args, kwargs))
        mark = _running.set(self.name)
        try:
            with nullcontext() if self._optimizers else no_grad():
                found = self.build(*args, **kwargs)
        finally:
            _running.reset(mark)
        for optimizer, schedule in self._optimizers:
            _step(optimizer, schedule)
        self._calls += 1
        return tree.map(_detach, found)

    # Parts.

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Module):
            self._blocks[name] = value
            self.__dict__.pop(name, None)
        elif isinstance(value, Graph):
            raise ArgumentError("nn.Graph: a graph is no part of another one")
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        blocks = self.__dict__.get("_blocks")
        if blocks is None:
            raise BuildError(f"{type(self).__name__}.__init__ has to call super().__init__() first")
        if name not in blocks:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return blocks[name]

    def state_dict(self, destination: Any = None) -> dict[str, Any]:
        """Return the state dicts of modules by name, and of optimizers and schedules by number."""
        found = OrderedDict() if destination is None else destination
        for name, module in self._blocks.items():
            found[name] = module.state_dict()
        for number, (optimizer, schedule) in enumerate(self._optimizers):
            found[f"optimizer_{number}"] = optimizer.state_dict()
            if schedule is not None:
                found[f"lr_scheduler_{number}"] = schedule.state_dict()
        return dict(found)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Load what `state_dict` returned."""
        parts = dict(self._blocks)
        for number, (optimizer, schedule) in enumerate(self._optimizers):
            parts[f"optimizer_{number}"] = optimizer
            if schedule is not None:
                parts[f"lr_scheduler_{number}"] = schedule
        missing = [name for name in parts if name not in state_dict]
        unexpected = [name for name in state_dict if name not in parts]
        if strict and (missing or unexpected):
            raise ArgumentError(f"nn.Graph: the state dict lacks {missing} and has {unexpected}")
        for name, part in parts.items():
            if name in state_dict:
                part.load_state_dict(state_dict[name])

    def __repr__(self) -> str:
        head = f"(GRAPH:{self.name}:{type(self).__name__})"
        parts = [f"({n}): {m!r}".replace("\n", "\n  ") for n, m in self._blocks.items()]
        return f"{head}: (" + "".join(f"\n  {part}" for part in parts) + ("\n)" if parts else ")")


def _step(optimizer: Any, schedule: Any) -> None:
    """Take a step of an optimizer, with its norms clipped, and of its schedule."""
    if hasattr(optimizer, "clip_grad"):
        optimizer.clip_grad()
    optimizer.step()
    optimizer.zero_grad()
    if schedule is not None:
        schedule.step()


def _require_tensors(name: str, given: Any) -> None:
    for leaf in tree.leaves(given):
        if leaf is not None and not isinstance(leaf, Tensor):
            _refuse(name, leaf)


def _refuse(name: str, leaf: Any) -> NoReturn:
    raise ArgumentError(
        f"nn.Graph: {name} takes tensors and None, in lists, tuples and dicts, not {leaf!r:.60}"
    )


def _detach(leaf: Any) -> Any:
    return leaf.detach() if isinstance(leaf, Tensor) else leaf
