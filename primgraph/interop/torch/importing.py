"""`from_torch`: modules and functions of torch as functions whose graph needs no torch."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import FunctionType
from typing import TYPE_CHECKING, Any, final

import numpy as np

from primgraph.base.providers import late
from primgraph.base.records import dataclass
from primgraph.errors import ArgumentError, UnsupportedError
from primgraph.interop.imported import ImportedModel
from primgraph.interop.lacking import require_library
from primgraph.interop.torch.stops import keep_stops
from primgraph.ir.dims import Dim
from primgraph.ir.dims import size as named_size
from primgraph.ir.types import TensorType, as_dtype, declared_shape
from primgraph.program.trace import trace

if TYPE_CHECKING:
    import torch
    from torch.utils import _pytree as pytree

    from primgraph.interop.torch import table, walk
else:
    torch = late("torch")
    pytree = late("torch.utils._pytree")
    walk = late("primgraph.interop.torch.walk")
    table = late("primgraph.interop.torch.table")


@final
class TorchFunction(ImportedModel):
    """Function imported from torch; its graph needs nothing of torch.

    A call takes the arguments of the module, and uses `parameters` and `buffers`, arrays by the
    names that they have in the module. `apply(parameters, *args)` is the same function of
    parameters, too, so that a module can be differentiated by them, and trained. `imported` is the
    graph as a function of parameters, buffers and arguments; see `pg.interop.Imported`.
    """

    @property
    def buffers(self) -> dict[str, Any]:
        """Return the buffers, such as the running means of a batch norm, by name."""
        found: dict[str, Any] = self.fixed[0]
        return found


def from_torch(
    module: Any, /, *examples: Any, dynamic_shapes: Any = None, **named: Any
) -> TorchFunction:
    """Return a module or a function of torch as a function whose graph needs no torch.

    It is exported once by `torch.export` with the `examples`: tensors, arrays or `pg.spec`s, in
    containers of torch (pytrees). Named sizes of specs become symbolic sizes; so do those of
    `dynamic_shapes`, which is an argument of `torch.export`. An `ExportedProgram` needs no
    examples. Parameters and buffers are copied by name; see `TorchFunction`. A module is exported
    as it is: call `module.eval()` first unless it is trained.

    Raises `UnsupportedError` that lists all operators and dtypes of the program that are lacking,
    with their lines, and for modules that change their buffers; ImportError without torch. Warns
    with `VersionWarning` of a newer torch than was tried.

        f = pg.interop.from_torch(model.eval(), torch.zeros(2, 3))
        y = f(x)
        gradient = pg.grad(lambda p: pg.mean((f.apply(p, x) - target) ** 2))(f.parameters)
    """
    require_library("torch", "from_torch")
    with warnings.catch_warnings():
        # torch warns of its own use of what it has deprecated.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.filterwarnings("ignore", "The tensor attributes self._flat_weights")
        if isinstance(module, torch.export.ExportedProgram):
            program = _Program(module, {}, "model", None)
        else:
            program = _export(module, examples, named, dynamic_shapes)
        return program.function()


@final
@dataclass(frozen=True, slots=True)
class _Program:
    """An exported program, the names of its symbolic sizes, and its name and signature."""

    exported: Any
    names: Mapping[str, str]
    name: str
    signature: inspect.Signature | None

    def function(self) -> TorchFunction:
        with keep_stops(self.exported):
            program = self.exported.run_decompositions()
        module, signature = program.graph_module, program.graph_signature
        self._require_pure(signature)
        _keep_results(module, signature)
        walk.require_supported(module)
        nodes = module.graph.find_nodes(op="placeholder")
        places = dict(zip(nodes, signature.input_specs, strict=True))
        parameters, buffers = _Store(), _Store()
        constants: dict[Any, Any] = {}
        for node, spec in places.items():
            kind = spec.kind.name
            if kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
                array = _tensor_of(program, spec.target)
                store = parameters if kind == "PARAMETER" else buffers
                if kind == "CONSTANT_TENSOR" or array.dtype.kind not in "fc":
                    constants[node] = array
                else:
                    store.add(spec.target, node, array)
            elif kind == "TOKEN":
                # It orders checks of errors, which no result depends on.
                constants[node] = None
            elif kind != "USER_INPUT":
                raise UnsupportedError(f"from_torch: an input of kind {kind.lower()}")
        inputs = [node for node, spec in places.items() if spec.kind.name == "USER_INPUT"]
        types = [self._type_of(node) for node in inputs]
        graph = self._trace(
            module, program.call_spec, (parameters, buffers), constants, inputs, types
        )
        return TorchFunction(graph, parameters.arrays, (buffers.arrays,))

    def _trace(
        self,
        module: Any,
        spec: Any,
        stores: Sequence[_Store],
        constants: Mapping[Any, Any],
        inputs: Sequence[Any],
        types: Sequence[Any],
    ) -> Any:
        nodes = module.graph.find_nodes(op="placeholder")

        def recorded(parameters: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
            values = {node: walk.as_constant(array) for node, array in constants.items()}
            for store, given in zip(stores, (parameters, buffers), strict=True):
                values.update({node: given[name] for name, node in store.nodes.items()})
            leaves = pytree.tree_flatten((args, kwargs))[0]
            values.update(zip(inputs, leaves, strict=True))
            found = walk.run_graph(module, [values[node] for node in nodes])
            return pytree.tree_unflatten(found, spec.out_spec)

        self._dress(recorded)
        args, kwargs = pytree.tree_unflatten(list(types), spec.in_spec)
        first = [store.types for store in stores]
        return trace(recorded, *first, *args, rebind=False, **kwargs)

    def _type_of(self, node: Any) -> TensorType:
        """Return the type of an input; symbols of torch have the names of its sizes."""
        found = node.meta.get("val")
        if not isinstance(found, torch.Tensor):
            raise ArgumentError(
                f"from_torch: argument {node.name!r} is {found!r}, not a tensor",
                hint="export a function of the tensors alone: lambda x: module(x, 3)",
            )
        shape = tuple([n if type(n) is int else self._size(str(n)) for n in found.shape])
        return TensorType(declared_shape(shape), as_dtype(table.numpy_dtype(found.dtype)))

    def _size(self, symbol: str) -> Dim:
        if not symbol.isidentifier():
            raise UnsupportedError(f"from_torch: an argument has the size {symbol}: name it")
        return named_size(self.names.get(symbol, symbol))

    def _dress(self, recorded: Callable[..., Any]) -> None:
        """Give the function the name and the parameters of the module."""
        recorded.__name__ = self.name
        if self.signature is not None:
            kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
            first = [inspect.Parameter(n, kind) for n in ("parameters", "buffers")]
            rest = self.signature.parameters.values()
            if not {"parameters", "buffers"} & self.signature.parameters.keys():
                recorded.__signature__ = inspect.Signature([*first, *rest])  # type: ignore[attr-defined]

    def _require_pure(self, signature: Any) -> None:
        changed = [x.target for x in signature.output_specs if x.kind.name == "BUFFER_MUTATION"]
        if changed:
            raise UnsupportedError(
                f"from_torch: a call changes the buffers {', '.join(changed)}",
                hint="call module.eval() before it is exported",
            )
        others = {x.kind.name.lower() for x in signature.output_specs} - {"user_output", "token"}
        if others:
            raise UnsupportedError(f"from_torch: results of kind {', '.join(sorted(others))}")


def _keep_results(module: Any, signature: Any) -> None:
    """Return only results of the user from the graph of a module."""
    (output,) = module.graph.find_nodes(op="output")
    pairs = zip(output.args[0], signature.output_specs, strict=True)
    output.args = (tuple([x for x, spec in pairs if spec.kind.name == "USER_OUTPUT"]),)


@final
class _Store:
    """Arrays of a module by name, and their nodes."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.nodes: dict[str, Any] = {}

    def add(self, name: str, node: Any, array: np.ndarray[Any, Any]) -> None:
        self.arrays[name], self.nodes[name] = array, node

    @property
    def types(self) -> dict[str, TensorType]:
        pairs = self.arrays.items()
        return {n: TensorType(declared_shape(x.shape), as_dtype(x.dtype)) for n, x in pairs}


def _tensor_of(program: Any, name: str) -> np.ndarray[Any, Any]:
    found = program.state_dict.get(name)
    found = program.constants[name] if found is None else found
    array: np.ndarray[Any, Any] = found.detach().cpu().numpy().copy()
    return array


# Export.


def _export(
    module: Any, examples: Sequence[Any], named: Mapping[str, Any], dynamic_shapes: Any
) -> _Program:
    function = module.forward if isinstance(module, torch.nn.Module) else module
    name = getattr(module, "__name__", type(module).__name__)
    name = re.sub(r"\W", "_", name)
    name = name if name.isidentifier() else "model"
    signature = None
    with suppress(TypeError, ValueError):
        signature = inspect.signature(function)
    whole = module if isinstance(module, torch.nn.Module) else _as_module(module)
    sizes: dict[str, int] = {}
    is_leaf = _is_spec
    args, kwargs = pytree.tree_map(
        lambda x: _tensor(x, sizes), (tuple(examples), dict(named)), is_leaf=is_leaf
    )
    if sizes and dynamic_shapes is None:
        dims = {name: torch.export.Dim(name) for name in sizes}
        positional, by_name = pytree.tree_map(
            lambda x: _axes(x, dims), (tuple(examples), dict(named)), is_leaf=is_leaf
        )
        dynamic_shapes = _by_parameter(positional, by_name, signature)
    exported = torch.export.export(whole, args, kwargs, dynamic_shapes=dynamic_shapes)
    leaves = pytree.tree_flatten((tuple(examples), dict(named)), is_leaf=is_leaf)[0]
    return _Program(exported, _symbols(exported, leaves), name, signature)


def _as_module(function: Callable[..., Any]) -> Any:
    """Return a module that calls a function."""
    module = torch.nn.Module()
    if isinstance(function, FunctionType):
        # torch notes the lines of functions that are called so.
        code = function.__code__.replace(co_name="forward")
        named = FunctionType(code, function.__globals__, closure=function.__closure__)
        named.__defaults__, named.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
        function = named
    module.forward = function
    return module


def _is_spec(x: Any) -> bool:
    return isinstance(x, TensorType)


def _tensor(x: Any, sizes: dict[str, int]) -> Any:
    """Return an example as a tensor; `sizes` has the sizes for names so far."""
    if isinstance(x, np.ndarray | np.generic):
        return torch.from_numpy(np.array(x))
    if not isinstance(x, TensorType):
        return x
    shape = []
    for n in x.shape:
        if type(n) is Dim and not str(n).isidentifier():
            raise ArgumentError(f"from_torch: the size {n} of an argument is not a name")
        # A prime, as torch takes equal sizes for one.
        shape.append(
            sizes.setdefault(str(n), _PRIMES[len(sizes) % len(_PRIMES)]) if type(n) is Dim else n
        )
    return torch.zeros(tuple(shape), dtype=getattr(torch, x.dtype.name))


_PRIMES = (5, 7, 11, 13, 17, 19, 23, 29)


def _axes(x: Any, dims: Mapping[str, Any]) -> Any:
    """Return the dynamic axes of an example."""
    if not isinstance(x, TensorType):
        return None
    return {a: dims[str(n)] for a, n in enumerate(x.shape) if type(n) is Dim} or None


def _by_parameter(
    args: Sequence[Any], kwargs: Mapping[str, Any], signature: inspect.Signature | None
) -> Any:
    """Return dynamic axes as torch takes them: by parameters, or in a tuple without names."""
    if not kwargs:
        return tuple(args)
    if signature is None:
        raise ArgumentError("from_torch: give arguments with symbolic sizes by position")
    return dict(signature.bind(*args, **kwargs).arguments)


def _symbols(exported: Any, leaves: Sequence[Any]) -> dict[str, str]:
    """Return the names of specs for the symbols of torch."""
    specs = exported.graph_signature.input_specs
    nodes = exported.graph.find_nodes(op="placeholder")
    pairs = zip(nodes, specs, strict=True)
    inputs = [node for node, spec in pairs if spec.kind.name == "USER_INPUT"]
    found: dict[str, str] = {}
    for node, leaf in zip(inputs, leaves, strict=False):
        if _is_spec(leaf):
            for symbol, n in zip(node.meta["val"].shape, leaf.shape, strict=True):
                if type(n) is Dim:
                    found[str(symbol)] = str(n)
    return found
