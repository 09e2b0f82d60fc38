"""Layers that hold the arguments of a function: activations, losses, pools, pads and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from primgraph.compat.modules.layer_tables import define_layers
from primgraph.compat.paddle import functions
from primgraph.compat.paddle.nn import functional
from primgraph.compat.paddle.nn.layer.layers import Layer

_FORMATS = {1: "NCL", 2: "NCHW", 3: "NCDHW"}


class FunctionLayer(Layer):
    """Layer that calls a function with its attributes as arguments."""

    _shown: ClassVar[str] = ""

    def _complete(self) -> None:
        """Change attributes after they are set."""

    def extra_repr(self) -> str:
        """Return the attributes that Paddle shows, and the name if one was given."""
        shown = []
        for token in self._shown.split():
            label, _, attribute = token.lstrip("~").partition(":")
            value = getattr(self, attribute or label)
            # `~` leaves out what is None.
            if not (token.startswith("~") and value is None):
                shown.append(f"{label}={value}")
        name = self.__dict__.get("name")
        return ", ".join([*shown, *([f"name={name}"] if name else [])])


_ACTIVATIONS = """
CELU(alpha=1.0, name=None): celu(x) | alpha
ELU(alpha=1.0, name=None): elu(x) | alpha
GELU(approximate=False, name=None): gelu(x) | approximate
GLU(axis=-1, name=None): glu(x) | axis
Hardshrink(threshold=0.5, name=None): hardshrink(x) | threshold
Hardsigmoid(name=None): hardsigmoid(x)
Hardswish(name=None): hardswish(x)
Hardtanh(min=-1.0, max=1.0, name=None): hardtanh(x) | min max
LeakyReLU(negative_slope=0.01, name=None): leaky_relu(x) | negative_slope
LogSigmoid(name=None): log_sigmoid(x)
LogSoftmax(axis=-1, name=None): log_softmax(x) | axis
Maxout(groups, axis=1, name=None): maxout(x) | groups axis
Mish(name=None): mish(x)
ReLU(name=None): relu(x)
ReLU6(name=None): relu6(x)
RReLU(lower=0.125, upper=0.3333333333333333, name=None): rrelu(x) | lower upper training
SELU(scale=1.0507009873554805, alpha=1.6732632423543772, name=None): selu(x) | scale alpha
Sigmoid(name=None): sigmoid(x)
Silu(inplace=False, name=None): silu(x) | inplace
SiLU(inplace=False, name=None): silu(x) | inplace
Softmax(axis=-1, name=None): softmax(x) | axis
Softplus(beta=1, threshold=20, name=None): softplus(x) | beta threshold
Softshrink(threshold=0.5, name=None): softshrink(x) | threshold
Softsign(name=None): softsign(x)
Swish(name=None): swish(x)
Tanh(name=None): tanh(x)
Tanhshrink(name=None): tanhshrink(x)
ThresholdedReLU(threshold=1.0, value=0.0, name=None): thresholded_relu(x) | threshold value
"""
_OTHERS = """
AlphaDropout(p=0.5, name=None): alpha_dropout(x) | p
ChannelShuffle(groups, data_format='NCHW', name=None): channel_shuffle(x) | groups
CosineSimilarity(axis=1, eps=1e-08): cosine_similarity(x1, x2) | axis eps
Dropout(p=0.5, inplace=False, axis=None, mode='upscale_in_train', name=None): dropout(x) | p axis mode inplace
Dropout2D(p=0.5, data_format='NCHW', name=None): dropout2d(x) | p data_format
Dropout3D(p=0.5, data_format='NCDHW', name=None): dropout3d(x) | p data_format
FeatureAlphaDropout(p=0.5, name=None): feature_alpha_dropout(x) | p
Flatten(start_axis=1, stop_axis=-1): flatten(x)
Fold(output_sizes, kernel_sizes, dilations=1, paddings=0, strides=1, name=None): fold(x) | kernel_size:kernel_sizes dilation:dilations padding:paddings stride:strides
LocalResponseNorm(size, alpha=0.0001, beta=0.75, k=1.0, data_format='NCHW', name=None): local_response_norm(x) | size alpha beta k
PairwiseDistance(p=2.0, epsilon=1e-06, keepdim=False, name=None): pairwise_distance(x, y) | p
PixelShuffle(upscale_factor, data_format='NCHW', name=None): pixel_shuffle(x) | upscale_factor
PixelUnshuffle(downscale_factor, data_format='NCHW', name=None): pixel_unshuffle(x) | downscale_factor
Unfold(kernel_sizes, dilations=1, paddings=0, strides=1, name=None): unfold(x) | kernel_size:kernel_sizes dilation:dilations padding:paddings stride:strides
Unflatten(axis, shape, name=None): unflatten(x) | axis shape
Upsample(size=None, scale_factor=None, mode='nearest', align_corners=False, align_mode=0, data_format=None, recompute_scale_factor=None, name=None): interpolate(x) | ~scale_factor ~size mode align_corners align_mode data_format
"""  # noqa: E501
_LOSSES = """
BCELoss(weight=None, reduction='mean', name=None): binary_cross_entropy(input, label)
BCEWithLogitsLoss(weight=None, reduction='mean', pos_weight=None, name=None): binary_cross_entropy_with_logits(logit, label)
CosineEmbeddingLoss(margin=0, reduction='mean', name=None): cosine_embedding_loss(input1, input2, label)
CrossEntropyLoss(weight=None, ignore_index=-100, reduction='mean', soft_label=False, axis=-1, use_softmax=True, label_smoothing=0.0, name=None): cross_entropy(input, label)
CTCLoss(blank=0, reduction='mean', zero_infinity=False): ctc_loss(log_probs, labels, input_lengths, label_lengths)
GaussianNLLLoss(full=False, epsilon=1e-06, reduction='mean', name=None): gaussian_nll_loss(input, label, variance)
HingeEmbeddingLoss(margin=1.0, reduction='mean', name=None): hinge_embedding_loss(input, label)
KLDivLoss(reduction='mean', log_target=False): kl_div(input, label)
L1Loss(reduction='mean', name=None): l1_loss(input, label)
MSELoss(reduction='mean'): mse_loss(input, label)
MarginRankingLoss(margin=0.0, reduction='mean', name=None): margin_ranking_loss(input, other, label)
MultiLabelMarginLoss(reduction='mean', name=None): multi_label_margin_loss(input, label)
MultiLabelSoftMarginLoss(weight=None, reduction='mean', name=None): multi_label_soft_margin_loss(input, label)
MultiMarginLoss(p=1, margin=1.0, weight=None, reduction='mean', name=None): multi_margin_loss(input, label)
NLLLoss(weight=None, ignore_index=-100, reduction='mean', name=None): nll_loss(input, label)
PoissonNLLLoss(log_input=True, full=False, epsilon=1e-08, reduction='mean', name=None): poisson_nll_loss(input, label)
SmoothL1Loss(reduction='mean', delta=1.0, is_huber=True, name=None): smooth_l1_loss(input, label)
SoftMarginLoss(reduction='mean', name=None): soft_margin_loss(input, label)
TripletMarginLoss(margin=1.0, p=2.0, epsilon=1e-06, swap=False, reduction='mean', name=None): triplet_margin_loss(input, positive, negative)
TripletMarginWithDistanceLoss(distance_function=None, margin=1.0, swap=False, reduction='mean', name=None): triplet_margin_with_distance_loss(input, positive, negative)
"""  # noqa: E501
_POOLS = """
AdaptiveAvgPool{n}D(output_size{layout}, name=None): adaptive_avg_pool{n}d(x) | output_size
AdaptiveMaxPool{n}D(output_size, return_mask=False, name=None): adaptive_max_pool{n}d(x) | output_size return_mask
AvgPool{n}D(kernel_size, stride=None, padding=0, {means}{layout}, name=None): avg_pool{n}d(x) | kernel_size stride padding
MaxPool{n}D(kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False{layout}, name=None): max_pool{n}d(x) | kernel_size stride padding
MaxUnPool{n}D(kernel_size, stride=None, padding=0, data_format='{format}', output_size=None, name=None): max_unpool{n}d(x, indices)
"""  # noqa: E501
_NORM_POOL = """
LPPool{n}D(norm_type, kernel_size, stride=None, padding=0, ceil_mode=False, data_format='{format}', name=None): lp_pool{n}d(x) | norm_type kernel_size stride padding
"""  # noqa: E501
_PADS = """
Pad{n}D(padding, mode='constant', value=0.0, data_format='{format}', name=None): pad(x) | padding mode value data_format
ConstantPad{n}D(padding, value, data_format='{format}', name=None): pad_constant(x) | padding mode value data_format
CircularPad{n}D(padding, data_format='{format}', name=None): pad_circular(x) | padding mode value data_format
ReflectionPad{n}D(padding, data_format='{format}', name=None): pad_reflect(x) | padding mode value data_format
ReplicationPad{n}D(padding, data_format='{format}', name=None): pad_replicate(x) | padding mode value data_format
ZeroPad{n}D(padding, data_format='{format}', name=None): pad_zeros(x) | padding mode value data_format
"""  # noqa: E501


class PadLayer(FunctionLayer):
    """Layer that adds elements around the axes of images."""

    _shown = "padding mode value data_format"

    def _complete(self) -> None:
        own = self.__dict__
        count = 2 * (len(own["data_format"]) - 2)
        given, kind = own["padding"], type(self).__name__.partition("Pad")[0]
        own["padding"] = [given] * count if isinstance(given, int) else given
        own.setdefault("mode", _MODES.get(kind, "constant"))
        own.setdefault("value", 0.0)


_MODES = {"Circular": "circular", "Reflection": "reflect", "Replication": "replicate"}


def _pad(x: Any, padding: Any, mode: str, value: Any, data_format: str) -> Any:
    """Return images with pads around them"""
    count = 2 * (len(data_format) - 2)
    listed = [padding] * count if isinstance(padding, int) else padding
    return functional.pad(x, listed, mode, value, data_format, False)


def _pad_as(mode: str) -> Callable[..., Any]:
    """Return the function of pads of one mode."""

    def call(x: Any, padding: Any, data_format: str, mode: str = mode, value: Any = 0.0) -> Any:
        return _pad(x, padding, mode, value, data_format)

    call.__doc__ = _pad.__doc__
    return call


def _for_axes(text: str, n: int) -> str:
    """Return rows of layers along `n` axes."""
    format = _FORMATS[n]
    means = "exclusive=True, ceil_mode=False" if n == 1 else "ceil_mode=False, exclusive=True"
    return text.format(
        n=n,
        format=format,
        layout="" if n == 1 else f", data_format='{format}'",
        means=means if n == 1 else f"{means}, divisor_override=None",
    )


def _with_docstrings(text: str) -> str:
    """Return the rows with the first lines of the docstrings of their functions."""
    rows = []
    for line in text.strip().split("\n"):
        short = line.partition("): ")[2].partition("(")[0]
        doc = str(_FUNCTIONS[short].__doc__).partition("\n")[0].rstrip(".")
        rows.append(f"{line}\n{doc}: the layer of `functional.{short}`.")
    return "\n\n".join(rows)


_FUNCTIONS = {
    **{name: getattr(functional, name) for name in functional.__all__},
    "flatten": functions.flatten,
    "pad": _pad,
    **{f"pad_{mode}": _pad_as(mode) for mode in _MODES.values()},
    "pad_constant": _pad_as("constant"),
    "pad_zeros": _pad_as("constant"),
    "unflatten": functions.unflatten,
}


def _define(base: type[Any], text: str) -> list[str]:
    return define_layers(globals(), base, _FUNCTIONS, _with_docstrings(text))


__all__ = [
    *_define(FunctionLayer, _ACTIVATIONS),
    *_define(FunctionLayer, _OTHERS),
    *_define(FunctionLayer, _LOSSES),
    *(n for i in _FORMATS for n in _define(FunctionLayer, _for_axes(_POOLS, i))),
    *(n for i in (1, 2) for n in _define(FunctionLayer, _for_axes(_NORM_POOL, i))),
    *(n for i in _FORMATS for n in _define(PadLayer, _for_axes(_PADS, i))),
]
