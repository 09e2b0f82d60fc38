"""Layers that change shapes, resample, drop elements and compare vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from primgraph.compat.torch import functions
from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.layer_tables import FunctionLayer, define_layers
from primgraph.compat.torch.nn.modules.module import Module
from primgraph.errors import ArgumentError

_ROWS = """
Flatten(start_dim=1, end_dim=-1): flatten(input) | start_dim end_dim
Make one axis of the axes from `start_dim` to `end_dim`.
>>> torch.nn.Flatten()(torch.ones(2, 3, 4)).shape
torch.Size([2, 12])

Fold(output_size, kernel_size, dilation=1, padding=0, stride=1): fold(input) \
| output_size kernel_size dilation padding stride
Add up patches, given as columns, in images.
>>> torch.nn.Fold((3, 3), 2)(torch.ones(1, 4, 4)).shape
torch.Size([1, 1, 3, 3])

Unfold(kernel_size, dilation=1, padding=0, stride=1): unfold(input) \
| kernel_size dilation padding stride
Return the patches of images as columns.
>>> torch.nn.Unfold(2)(torch.ones(1, 1, 3, 3)).shape
torch.Size([1, 4, 4])

PixelShuffle(upscale_factor): pixel_shuffle(input) | upscale_factor
Turn channels into pixels.
>>> torch.nn.PixelShuffle(2)(torch.ones(1, 4, 1, 1)).shape
torch.Size([1, 1, 2, 2])

PixelUnshuffle(downscale_factor): pixel_unshuffle(input) | downscale_factor
Turn pixels into channels.
>>> torch.nn.PixelUnshuffle(2)(torch.ones(1, 1, 2, 2)).shape
torch.Size([1, 4, 1, 1])

ChannelShuffle(groups): channel_shuffle(input) | groups
Deal channels out to groups.
>>> torch.nn.ChannelShuffle(2)(torch.ones(1, 4, 1)).shape
torch.Size([1, 4, 1])

CosineSimilarity(dim=1, eps=1e-8): cosine_similarity(x1, x2)
Compute the cosine of the angle between vectors along an axis.
>>> torch.nn.CosineSimilarity()(torch.ones(1, 2), torch.tensor([[0.0, 2.0]]))
tensor([0.7071])

PairwiseDistance(p=2.0, eps=1e-6, keepdim=False): pairwise_distance(x1, x2)
Compute the p-norm of differences along the last axis.
>>> torch.nn.PairwiseDistance()(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
tensor([5.0000])
"""


class _Dropout(FunctionLayer):
    """Layer that drops elements in training."""

    p: float

    def _complete(self) -> None:
        if not 0 <= self.p <= 1:
            raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {self.p}")


_DROPOUTS = """
Dropout(p=0.5, inplace=False): dropout(input) | p inplace
Set elements to zero with probability `p`, and divide the others by `1 - p`, in training.
>>> torch.nn.Dropout().eval()(torch.ones(2))
tensor([1., 1.])

Dropout1d(p=0.5, inplace=False): dropout1d(input) | p inplace
Set whole channels of sequences to zero, in training.
>>> torch.nn.Dropout1d().eval()(torch.ones(1, 1, 2))
tensor([[[1., 1.]]])

Dropout2d(p=0.5, inplace=False): dropout2d(input) | p inplace
Set whole channels of images to zero, in training.
>>> torch.nn.Dropout2d().eval()(torch.ones(1, 1, 1, 2))
tensor([[[[1., 1.]]]])

Dropout3d(p=0.5, inplace=False): dropout3d(input) | p inplace
Set whole channels of volumes to zero, in training.
>>> torch.nn.Dropout3d().eval()(torch.ones(1, 1, 1, 1, 2)).shape
torch.Size([1, 1, 1, 1, 2])

AlphaDropout(p=0.5, inplace=False): alpha_dropout(input) | p inplace
Drop elements to the limit of `SELU`, and keep mean and variance, in training.
>>> torch.nn.AlphaDropout().eval()(torch.ones(2))
tensor([1., 1.])

FeatureAlphaDropout(p=0.5, inplace=False): feature_alpha_dropout(input) | p inplace
Apply `AlphaDropout` to whole channels.
>>> torch.nn.FeatureAlphaDropout().eval()(torch.ones(1, 2, 1)).shape
torch.Size([1, 2, 1])
"""


class Unflatten(Module):
    """Split one axis into several.

    >>> torch.nn.Unflatten(1, (2, 3))(torch.ones(2, 6)).shape
    torch.Size([2, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim = dim
        if unflattened_size and isinstance(unflattened_size[0], tuple):
            unflattened_size = tuple(size for _, size in unflattened_size)
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:
        """Return `input` in another shape."""
        axis = self.dim % input.ndim
        sizes = (*input.shape[:axis], *self.unflattened_size, *input.shape[axis + 1 :])
        return functions.reshape(input, sizes)

    def extra_repr(self) -> str:
        """Return the axis and the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class Upsample(Module):
    """Resample the axes behind samples and channels to a size, or by a factor.

    >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        if isinstance(scale_factor, tuple | list):
            scale_factor = tuple(float(f) for f in scale_factor)
        elif scale_factor is not None:
            scale_factor = float(scale_factor)
        self.size, self.scale_factor, self.mode = size, scale_factor, mode
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Any) -> Any:
        """Return `input`, resampled."""
        return functional.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """Return the size or the factor, and the mode."""
        size = (
            f"size={self.size}"
            if self.scale_factor is None
            else (f"scale_factor={self.scale_factor}")
        )
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """`Upsample` of images by repeating pixels.

    >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.ones(1, 1, 1, 1)).shape
    torch.Size([1, 1, 2, 2])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """`Upsample` of images by linear interpolation, with corners that stay.

    >>> torch.nn.UpsamplingBilinear2d(scale_factor=2)(torch.ones(1, 1, 1, 1)).shape
    torch.Size([1, 1, 2, 2])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


_FUNCTIONS = {**vars(functional), "flatten": functions.flatten}
__all__ = [
    *define_layers(globals(), FunctionLayer, _FUNCTIONS, _ROWS),
    *define_layers(globals(), _Dropout, _FUNCTIONS, _DROPOUTS),
    "Unflatten",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]
