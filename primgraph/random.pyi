"""Names of primgraph.random, written by tests/tools/stubs.py."""

from primgraph.operators.sampling.distributions import categorical as categorical, choice as choice, multivariate_normal as multivariate_normal, permutation as permutation, truncated_normal as truncated_normal
from primgraph.operators.sampling.random_arrays import bernoulli as bernoulli, normal as normal, uniform as uniform
from primgraph.operators.sampling.rejection import beta as beta, binomial as binomial, cauchy as cauchy, chisquare as chisquare, dirichlet as dirichlet, exponential as exponential, gamma as gamma, gumbel as gumbel, laplace as laplace, loggamma as loggamma, logistic as logistic, lognormal as lognormal, poisson as poisson, rademacher as rademacher, randint as randint, split as split, t as t
