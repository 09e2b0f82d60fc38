"""OneFlow's API for tensors and their derivatives.

    import primgraph.compat.oneflow as flow

Use it in place of `import oneflow as flow`; the rest of the program stays as it is. OneFlow's
functions and methods are torch's: see `primgraph.compat.torch` for them and for the differences.
Modules such as `oneflow.nn.functional` have the code of torch's: see `primgraph.compat.mirror`.
There is one process: global tensors have the placement `flow.placement("cpu", ranks=[0])`.
"""

# Names come from torch's module as well.
# ruff: noqa: F401, F821

from typing import TYPE_CHECKING, Any

from primgraph.compat.mirror import mirror
from primgraph.compat.oneflow import env, extras, global_tensors, sbp
from primgraph.compat.oneflow.global_tensors import placement, with_placement

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

else:
    # OneFlow has no transforms of functions.
    mirror(globals(), without=("func", "vmap"))
    globals().update({name: getattr(extras, name) for name in extras.__all__})

    # Functions of networks that OneFlow has at its root, too.
    _FUNCTIONS = (
        "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "celu",
        "elu", "gelu", "glu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish",
        "one_hot", "pad", "prelu", "relu6", "selu", "silu", "softplus", "softsign",
    )  # fmt: skip
    _FUNCTIONS = [n for n in _FUNCTIONS if n not in globals() and n in nn.functional.__all__]
    globals().update({name: getattr(nn.functional, name) for name in _FUNCTIONS})
    # Functions that make tensors take a placement.
    _CREATORS = (
        "arange", "empty", "eye", "full", "linspace", "normal", "ones", "rand", "randint", "randn",
        "randperm", "tensor", "zeros",
    )  # fmt: skip
    globals().update({n: with_placement(globals()[n]) for n in _CREATORS if n in globals()})

    for _owner in (Tensor, nn.Module):
        _owner.to_global = _owner.to_consistent = global_tensors.to_global
        _owner.to_local = global_tensors.to_local
    Tensor.placement = property(global_tensors.placement_of)
    Tensor.sbp = property(global_tensors.sbp_of)
    Tensor.is_global = Tensor.is_consistent = property(global_tensors.is_global)
    Tensor.is_local = property(lambda self: not self.is_global)

    globals()["__all__"] += [*_FUNCTIONS, *extras.__all__, "env", "placement", "sbp"]
