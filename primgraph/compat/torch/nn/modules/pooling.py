"""Pools as layers."""

from __future__ import annotations

from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.layer_tables import FunctionLayer, define_layers
from primgraph.errors import ArgumentError


class _Pool(FunctionLayer):
    """Pool whose stride is by default the size of its windows."""

    def _complete(self) -> None:
        own = self.__dict__
        if own["stride"] is None:
            own["stride"] = own["kernel_size"]


class _Sized(_Pool):
    """Pool along one axis, whose sizes are tuples."""

    def _complete(self) -> None:
        super()._complete()
        for name in ("kernel_size", "stride", "padding"):
            value = self.__dict__[name]
            self.__dict__[name] = (value,) if isinstance(value, int) else tuple(value)


class _Unpool(_Pool):
    """Inverse of a maximum pool, whose sizes are tuples."""

    def _complete(self) -> None:
        super()._complete()
        count = int(type(self).__name__[-2])
        for name in ("kernel_size", "stride", "padding"):
            value = self.__dict__[name]
            self.__dict__[name] = (value,) * count if isinstance(value, int) else tuple(value)


def _rows(text: str, counts: tuple[int, ...] = (1, 2, 3)) -> str:
    """Return rows for pools along one, two and three axes."""
    found = []
    for n in counts:
        fours, twos = (", ".join(["1", *[size] * n]) for size in "42")
        override = "" if n == 1 else ", divisor_override=None"
        values = {"Nd": f"{n}d", "FOURS": fours, "TWOS": twos, "OVERRIDE": override}
        row = text
        for name, value in values.items():
            row = row.replace(name, str(value))
        found.append(row.strip())
    return "\n\n".join(found)


_SHOWN = "kernel_size stride padding"
_MAX = f"""
MaxPoolNd(kernel_size, stride=None, padding=0, dilation=1, return_indices=False, \
ceil_mode=False): max_poolNd(input) | {_SHOWN} dilation ceil_mode
Return the largest element of each window.
>>> torch.nn.MaxPoolNd(2)(torch.ones(FOURS)).shape
torch.Size([TWOS])
"""
_LP = """
LPPoolNd(norm_type, kernel_size, stride=None, ceil_mode=False): lp_poolNd(input) \
| norm_type kernel_size stride ceil_mode
Return the p-norm of each window.
>>> torch.nn.LPPoolNd(2, 2)(torch.ones(FOURS)).shape
torch.Size([TWOS])
"""
_AVERAGE = f"""
AvgPoolNd(kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=TrueOVERRIDE): \
avg_poolNd(input) | {_SHOWN}
Compute the mean of each window.
>>> torch.nn.AvgPoolNd(2)(torch.ones(FOURS)).shape
torch.Size([TWOS])
"""
_UNPOOL = f"""
MaxUnpoolNd(kernel_size, stride=None, padding=0): \
max_unpoolNd(input, indices, output_size=None) | {_SHOWN}
Put the maxima of windows at their positions, among zeros.
>>> y, places = torch.nn.MaxPoolNd(2, return_indices=True)(torch.ones(FOURS))
>>> torch.nn.MaxUnpoolNd(2)(y, places).shape
torch.Size([FOURS])
"""
_ADAPTIVE = """
AdaptiveAvgPoolNd(output_size): adaptive_avg_poolNd(input) | output_size
Compute the mean of each of `output_size` bins along each axis.
>>> torch.nn.AdaptiveAvgPoolNd(2)(torch.ones(FOURS)).shape
torch.Size([TWOS])

AdaptiveMaxPoolNd(output_size, return_indices=False): adaptive_max_poolNd(input) | output_size
Return the largest element of each of `output_size` bins along each axis.
>>> torch.nn.AdaptiveMaxPoolNd(2)(torch.ones(FOURS)).shape
torch.Size([TWOS])
"""

_FRACTIONAL = """
FractionalMaxPoolNd(kernel_size, output_size=None, output_ratio=None, return_indices=False, \
_random_samples=None): fractional_max_poolNd(input) | kernel_size
Return the largest elements of windows at random places.
>>> torch.nn.FractionalMaxPoolNd(2, output_size=2)(torch.ones(FOURS)).shape
torch.Size([TWOS])
"""


class _Fractional(FunctionLayer):
    """Pool whose output has a size or a share of the input's."""

    def _complete(self) -> None:
        own = self.__dict__
        if (own["output_size"] is None) == (own["output_ratio"] is None):
            raise ArgumentError(
                f"{type(self).__name__} requires specifying either an output size, or a pooling "
                "ratio"
            )
        ratios = own["output_ratio"]
        parts = ratios if isinstance(ratios, tuple | list) else (0.5 if ratios is None else ratios,)
        if not all(0 < ratio < 1 for ratio in parts):
            raise ArgumentError(f"output_ratio must be between 0 and 1 (got {ratios})")


__all__ = [
    *define_layers(globals(), _Fractional, vars(functional), _rows(_FRACTIONAL, (2, 3))),
    *define_layers(globals(), _Pool, vars(functional), _rows(_MAX)),
    *define_layers(globals(), FunctionLayer, vars(functional), _rows(_LP)),
    *define_layers(globals(), _Sized, vars(functional), _rows(_AVERAGE, (1,))),
    *define_layers(globals(), _Pool, vars(functional), _rows(_AVERAGE, (2, 3))),
    *define_layers(globals(), _Unpool, vars(functional), _rows(_UNPOOL)),
    *define_layers(globals(), FunctionLayer, vars(functional), _rows(_ADAPTIVE)),
]
