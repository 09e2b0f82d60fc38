"""Distributions, their transforms and divergences, as in torch.

Densities and samples have derivatives of any order, also in traced functions. Parameters and values
are checked where their elements are known.
"""

from typing import TYPE_CHECKING

from primgraph.compat.absent import absent
from primgraph.compat.torch.distributions import constraint_registry, constraints, kl, transforms
from primgraph.compat.torch.distributions.bounded import (
    ContinuousBernoulli,
    GeneralizedPareto,
    VonMises,
)
from primgraph.compat.torch.distributions.categorical import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from primgraph.compat.torch.distributions.composite import (
    Independent,
    MixtureSameFamily,
    TransformedDistribution,
)
from primgraph.compat.torch.distributions.constraint_registry import biject_to, transform_to
from primgraph.compat.torch.distributions.continuous import (
    Beta,
    Cauchy,
    Chi2,
    Exponential,
    FisherSnedecor,
    Gamma,
    Laplace,
    Normal,
    StudentT,
    Uniform,
)
from primgraph.compat.torch.distributions.discrete import (
    Bernoulli,
    Binomial,
    Geometric,
    NegativeBinomial,
    Poisson,
)
from primgraph.compat.torch.distributions.distribution import Distribution, ExponentialFamily
from primgraph.compat.torch.distributions.kl import kl_divergence, register_kl
from primgraph.compat.torch.distributions.multivariate import (
    Dirichlet,
    LKJCholesky,
    LowRankMultivariateNormal,
    MultivariateNormal,
    Wishart,
)
from primgraph.compat.torch.distributions.relaxed import (
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
)
from primgraph.compat.torch.distributions.transformed import (
    Gumbel,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    Weibull,
)
from primgraph.compat.torch.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "constraint_registry",
    "constraints",
    "identity_transform",
    "kl",
    "kl_divergence",
    "register_kl",
    "transform_to",
    "transforms",
]

if not TYPE_CHECKING:
    __getattr__ = absent(__name__)
