"""Names of primgraph.special, written by tests/tools/stubs.py."""

from primgraph.operators.elementwise.elementary import erf as erf, erfc as erfc
from primgraph.operators.elementwise.scipy_calls import SiciResult as SiciResult, dawsn as dawsn, ellipe as ellipe, ellipk as ellipk, erfi as erfi, exp1 as exp1, expi as expi, expn as expn, hyp2f1 as hyp2f1, i0 as i0, i0e as i0e, i1 as i1, i1e as i1e, iv as iv, ive as ive, j0 as j0, j1 as j1, jv as jv, k0 as k0, k0e as k0e, k1 as k1, k1e as k1e, kv as kv, kve as kve, lambertw as lambertw, sici as sici, spence as spence, y0 as y0, y1 as y1, yv as yv, zeta as zeta
from primgraph.operators.elementwise.special_compositions import binom as binom, boxcox as boxcox, boxcox1p as boxcox1p, comb as comb, exprel as exprel, factorial as factorial, gammasgn as gammasgn, huber as huber, poch as poch, pseudo_huber as pseudo_huber
from primgraph.operators.elementwise.special_functions import beta as beta, betainc as betainc, betaincc as betaincc, betaln as betaln, digamma as digamma, entr as entr, erfcinv as erfcinv, erfcx as erfcx, erfinv as erfinv, expit as expit, gamma as gamma, gammainc as gammainc, gammaincc as gammaincc, gammaln as gammaln, kl_div as kl_div, log_expit as log_expit, log_ndtr as log_ndtr, logit as logit, multigammaln as multigammaln, ndtr as ndtr, ndtri as ndtri, polygamma as polygamma, rel_entr as rel_entr, xlog1py as xlog1py, xlogy as xlogy
from primgraph.operators.networks.activations import log_softmax as log_softmax, softmax as softmax
from primgraph.operators.reduce.statistics import logsumexp as logsumexp
