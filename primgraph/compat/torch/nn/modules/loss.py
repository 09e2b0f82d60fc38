"""Losses as layers."""

from __future__ import annotations

from typing import Any

from primgraph.compat.torch.nn import functional
from primgraph.compat.torch.nn.layer_tables import ReducedLoss, define_layers


class _Loss(ReducedLoss):
    """Base class of losses, also of those of the user: it has a `reduction`."""

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.size_average, self.reduce, self.reduction = size_average, reduce, reduction
        self._complete()


class _WeightedLoss(_Loss):
    """Base class of losses with a weight of each class."""

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


_OLD = 'size_average=None, reduce=None, reduction="mean"'
_ROWS = f"""
L1Loss({_OLD}): l1_loss(input, target)
Compute the absolute difference.
>>> torch.nn.L1Loss()(torch.zeros(2), torch.ones(2))
tensor(1.)

MSELoss({_OLD}): mse_loss(input, target)
Compute the squared difference.
>>> torch.nn.MSELoss()(torch.zeros(2), torch.full((2,), 3.0))
tensor(9.)

SmoothL1Loss({_OLD}, beta=1.0): smooth_l1_loss(input, target)
Compute half the squared difference up to the distance `beta`, by `beta`, and linear from there.
>>> torch.nn.SmoothL1Loss()(torch.zeros(2), torch.full((2,), 3.0))
tensor(2.5000)

HuberLoss(reduction="mean", delta=1.0): huber_loss(input, target)
Compute half the squared difference up to the distance `delta`, linear from there on.
>>> torch.nn.HuberLoss()(torch.zeros(2), torch.full((2,), 3.0))
tensor(2.5000)

CrossEntropyLoss(weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", \
label_smoothing=0.0): cross_entropy(input, target)
Compute the cross entropy of logits, with classes along axis 1, and classes or probabilities.
>>> torch.nn.CrossEntropyLoss()(torch.zeros(1, 2), torch.tensor([1]))
tensor(0.6931)

NLLLoss(weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"): \
nll_loss(input, target)
Compute minus the logarithms of probabilities of the classes.
>>> torch.nn.NLLLoss()(torch.tensor([[-0.5, -2.0]]), torch.tensor([1]))
tensor(2.)

BCELoss(weight=None, {_OLD}): binary_cross_entropy(input, target)
Compute the cross entropy of probabilities and targets between 0 and 1.
>>> torch.nn.BCELoss()(torch.full((2,), 0.5), torch.ones(2))
tensor(0.6931)

BCEWithLogitsLoss(weight=None, {_OLD}, pos_weight=None): \
binary_cross_entropy_with_logits(input, target)
Compute the cross entropy of logits and targets between 0 and 1.
>>> torch.nn.BCEWithLogitsLoss()(torch.zeros(2), torch.ones(2))
tensor(0.6931)

KLDivLoss({_OLD}, log_target=False): kl_div(input, target)
Compute `target * (log(target) - input)` of probabilities and logarithms of others.
>>> torch.nn.KLDivLoss(reduction="sum")(torch.zeros(2), torch.ones(2))
tensor(0.)

PoissonNLLLoss(log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, \
reduction="mean"): poisson_nll_loss(input, target)
Compute minus the log-likelihood of counts by a Poisson distribution.
>>> torch.nn.PoissonNLLLoss()(torch.zeros(2), torch.ones(2))
tensor(1.)

GaussianNLLLoss(*, full=False, eps=1e-6, reduction="mean"): gaussian_nll_loss(input, target, var)
Compute minus the log-likelihood by normal distributions of given variance.
>>> torch.nn.GaussianNLLLoss()(torch.zeros(2), torch.ones(2), torch.ones(2))
tensor(0.5000)

MarginRankingLoss(margin=0.0, {_OLD}): margin_ranking_loss(input1, input2, target)
Compute `max(0, margin - target * (input1 - input2))`.
>>> torch.nn.MarginRankingLoss(0.5)(torch.ones(2), torch.ones(2), torch.ones(2))
tensor(0.5000)

HingeEmbeddingLoss(margin=1.0, {_OLD}): hinge_embedding_loss(input, target)
Compute the distance of pairs with target 1, `max(0, margin - input)` of others.
>>> torch.nn.HingeEmbeddingLoss()(torch.ones(2), torch.tensor([1.0, -1.0]))
tensor(0.5000)

CosineEmbeddingLoss(margin=0.0, {_OLD}): cosine_embedding_loss(input1, input2, target)
Compute `1 - cos` of pairs with target 1, `max(0, cos - margin)` of those with -1.
>>> torch.nn.CosineEmbeddingLoss()(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([-1]))
tensor(1.)

TripletMarginLoss(margin=1.0, p=2.0, eps=1e-6, swap=False, {_OLD}): \
triplet_margin_loss(anchor, positive, negative)
Compute `max(0, margin + |anchor - positive| - |anchor - negative|)`.
>>> torch.nn.TripletMarginLoss()(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2))
tensor(1.)

TripletMarginWithDistanceLoss(*, distance_function=None, margin=1.0, swap=False, \
reduction="mean"): triplet_margin_with_distance_loss(anchor, positive, negative)
Compute `TripletMarginLoss` with another distance.
>>> one = torch.ones(1, 2)
>>> torch.nn.TripletMarginWithDistanceLoss()(one, one, one)
tensor(1.)

SoftMarginLoss({_OLD}): soft_margin_loss(input, target)
Compute `log(1 + exp(-target * input))`.
>>> torch.nn.SoftMarginLoss()(torch.zeros(2), torch.ones(2))
tensor(0.6931)

MultiMarginLoss(p=1, margin=1.0, weight=None, {_OLD}): multi_margin_loss(input, target)
Compute the mean over other classes of `max(0, margin - x[target] + x[i]) ** p`.
>>> torch.nn.MultiMarginLoss()(torch.zeros(1, 2), torch.tensor([1]))
tensor(0.5000)

MultiLabelMarginLoss({_OLD}): multilabel_margin_loss(input, target)
Compute the sum of `max(0, 1 - x[t] + x[i])` over targets and other classes.
>>> torch.nn.MultiLabelMarginLoss()(torch.zeros(1, 2), torch.tensor([[1, -1]]))
tensor(0.5000)

MultiLabelSoftMarginLoss(weight=None, {_OLD}): multilabel_soft_margin_loss(input, target)
Compute the mean over classes of the cross entropy with logits.
>>> torch.nn.MultiLabelSoftMarginLoss()(torch.zeros(1, 2), torch.ones(1, 2))
tensor(0.6931)

CTCLoss(blank=0, reduction="mean", zero_infinity=False): \
ctc_loss(log_probs, targets, input_lengths, target_lengths)
Compute minus the log-likelihood of sequences without alignment.
>>> logs = torch.zeros(2, 1, 2).log_softmax(2)
>>> torch.nn.CTCLoss()(logs, torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))
tensor(0.2877)
"""

__all__ = define_layers(globals(), _Loss, vars(functional), _ROWS)
