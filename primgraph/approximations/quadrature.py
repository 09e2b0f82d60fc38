"""Incomplete gamma and beta functions by quadrature, with their derivatives by parameters.

Values alone use series and continued fractions where these converge fast.

In the logarithm of the variable the integrand decays from the end of the interval like an
exponential or a Gaussian. So a Gauss rule, with the same nodes for every element, is accurate to
the last digits. Derivatives by parameters bring powers of logarithms under the integral. As in
`gamma`, texts of functions and constants are copied into standalone sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primgraph.approximations.beta import betaln_chunk
from primgraph.approximations.gamma import (
    digamma_chunk,
    gamma_chunk,
    gammaln_above_zero,
    in_chunks,
    less_logarithm,
    polygamma_chunk,
    polynomial,
    relative_entropy,
    stirling,
)

# Gauss's rule with sixty nodes for the interval from 0 to 1.
NODES = np.array([
    0.0003949383862819622, 0.002079737440580931, 0.005106052388889115, 0.009466399123700897,
    0.015149105617473624, 0.022138872080001926, 0.030416861941788387, 0.03996076191118625,
    0.05074484459497702, 0.06274003867655087, 0.0759140076070352, 0.0902312369189271,
    0.10565313003386795, 0.12213811234670718, 0.1396417433221348, 0.15811683630932227,
    0.1775135857552615, 0.1977797014757448, 0.21886054962302776, 0.24069929997071515,
    0.26323707911914646, 0.2864131292084608, 0.310164971711601, 0.3344285758657759,
    0.35913853128836914, 0.38422822431198533, 0.4096300175632873, 0.4352754323015275,
    0.4610953330252317, 0.4870201138493761, 0.512979886150624, 0.5389046669747682,
    0.5647245676984725, 0.5903699824367127, 0.6157717756880147, 0.6408614687116309,
    0.6655714241342241, 0.6898350282883989, 0.7135868707915392, 0.7367629208808535,
    0.7593007000292848, 0.7811394503769722, 0.8022202985242552, 0.8224864142447386,
    0.8418831636906777, 0.8603582566778651, 0.8778618876532929, 0.8943468699661321,
    0.9097687630810729, 0.9240859923929647, 0.9372599613234491, 0.949255155405023,
    0.9600392380888138, 0.9695831380582116, 0.977861127919998, 0.9848508943825264,
    0.990533600876299, 0.9948939476111109, 0.997920262559419, 0.999605061613718,
])  # fmt: skip
WEIGHTS = np.array([
    0.0010134059844368792, 0.002356364963476784, 0.003694965581672728, 0.005023778591143992,
    0.00633908323840798, 0.0076373092983923994, 0.00891495050710386, 0.010168560364728643,
    0.01139475847199891, 0.012590238810760624, 0.013751778374962395, 0.014876245750394472,
    0.015960609509648165, 0.01700194636247321, 0.01799744902554225, 0.018944433784621722,
    0.0198403477261904, 0.020682775617792377, 0.02146944641796782, 0.022198239397893556,
    0.022867189858057243, 0.0234744944244561, 0.02401851590998559, 0.024497787727878417,
    0.02491101784527509, 0.025257092266254687, 0.025535078034927813, 0.025744225750490467,
    0.025883971587455094, 0.025953938815610318, 0.025953938815610318, 0.025883971587455094,
    0.025744225750490467, 0.025535078034927813, 0.025257092266254687, 0.02491101784527509,
    0.024497787727878417, 0.02401851590998559, 0.0234744944244561, 0.022867189858057243,
    0.022198239397893556, 0.02146944641796782, 0.020682775617792377, 0.0198403477261904,
    0.018944433784621722, 0.01799744902554225, 0.01700194636247321, 0.015960609509648165,
    0.014876245750394472, 0.013751778374962395, 0.012590238810760624, 0.01139475847199891,
    0.010168560364728643, 0.00891495050710386, 0.0076373092983923994, 0.00633908323840798,
    0.005023778591143992, 0.003694965581672728, 0.002356364963476784, 0.0010134059844368792,
])  # fmt: skip


def less_line(d: Any) -> Any:
    """exp(-d) - 1 + d, without cancellation near zero."""
    small = np.clip(d, -0.6, 0.6)
    ratios = [1.0]
    for k in range(3, 17):
        ratios.append(-ratios[-1] / k)
    series = 0.5 * small * small * polynomial(small, *ratios)
    return np.where(small == d, series, np.expm1(-d) + d)


def stretched(length: Any, rate: Any) -> Any:
    """Nodes and weights for an interval from 0 on, where they are closer by a factor exp(rate)."""
    grown = rate[:, None] * NODES
    scale = (length / np.expm1(rate))[:, None]
    return scale * np.expm1(grown), scale * (WEIGHTS * rate[:, None] * np.exp(grown))


def tail_of_exponential(a: Any, middle: Any, n: int) -> Any:
    """The integral of exp(a u) (u + middle + 1/a)**n over u < 0; that of n = 1 is middle / a."""
    if n == 0:
        return 1.0 / a
    last = middle + 1.0 / a
    power, total = last, middle
    for k in range(2, n + 1):
        power = power * last
        total = power - k * total / a
    return total / a


def gamma_scale(a: Any) -> Any:
    """a log(a) - a - log(gamma(a)), for a > 0."""
    large = np.maximum(a, 8.5)
    by_series = 0.5 * np.log(large) - 0.9189385332046727 - stirling(large)
    small = np.minimum(a, 8.5)
    return np.where(
        a < 8.5, small * np.log(small) - small - gammaln_above_zero(small), by_series
    )


def gamma_tail(a: Any, x: Any, k: int, left: Any) -> Any:
    """The integral of the gamma density times (log(t) - digamma(a))**k, from x to the nearer end.

    That end is 0 where `left`. With t = x exp(-d), or x exp(d), the density loses
    exp(-a (q (exp(d) - 1 - d) + (q - 1) d)), where q = x / a.
    """
    q = x / a
    off = (x - a) / a
    before, slope, room = relative_entropy(off, q), np.where(left, -off, off), 42.0 / a
    whole = before + room
    reach = 0.5 * (whole + np.sqrt(whole * (whole + 8.0)))
    shift = np.where(np.abs(off) < 0.5, np.log1p(np.maximum(off, -0.5)), np.log(q))
    room = np.where(slope < 0.0, room + 60.0, room)
    line = room / np.maximum(slope, 1e-300)
    steps = np.sqrt(2.0 * room / q)
    right = np.minimum(np.minimum(steps, np.log1p(room / q + steps)), line)
    length = np.where(left, np.minimum(line, reach + shift), right)
    # Further to the left than this, exp(-t) is 1.
    end = np.maximum(np.log(x) + 38.0, 0.0)
    cut = left & (length > end)
    length = np.where(cut, end, length)
    d, weights = stretched(
        length, np.where(left, np.maximum(np.log1p(length), 1e-3), 1e-3)
    )
    sign = np.where(left, 1.0, -1.0)[:, None]
    lost = a[:, None] * (q[:, None] * less_line(sign * d) + slope[:, None] * d)
    middle = digamma_chunk(a)
    logarithm = np.log(x) - middle
    moments = np.exp(-lost)
    if k:
        moments *= (logarithm[:, None] - sign * d) ** k
    total = np.sum(weights * moments, axis=1)
    if cut.any():
        rest = np.exp(a * (q - length))
        # digamma(a) is digamma(a + 1) - 1/a.
        off_middle = np.log(x) - length - digamma_chunk(a + 1.0)
        total += np.where(cut, rest * tail_of_exponential(a, off_middle, k), 0.0)
    return np.exp(gamma_scale(a) - a * before) * total


def gamma_front(a: Any, x: Any) -> Any:
    """x**a exp(-x) / gamma(a), for positive operands."""
    before = relative_entropy((x - a) / a, x / a)
    near = (a < 8.5) & (x < 600.0)
    p, y = np.where(near, a, 1.0), np.where(near, x, 1.0)
    product = y**p * np.exp(-y) / gamma_chunk(p)
    return np.where(near, product, np.exp(gamma_scale(a) - a * before))


def gamma_series(a: Any, x: Any) -> Any:
    """The part of a gamma distribution below x, where that is not far above a. DLMF 8.11.4."""
    term = np.ones_like(x)
    total = np.ones_like(x)
    place = np.array(a)
    for n in range(400):
        place += 1.0
        term *= x
        term /= place
        total += term
        if n % 8 == 7 and not (term > 1e-17 * total).any():
            break
    return gamma_front(a, x) / a * total


def gamma_fraction(a: Any, x: Any) -> Any:
    """The part of a gamma distribution above x >= 1.5, where that is above a. DLMF 8.9.2."""
    steps = 72 if (x < 4.0).any() else 48
    part = x - a
    found = part + (2.0 * steps + 1.0)
    for n in range(steps, 0, -1):
        found = (part + (2.0 * n - 1.0)) - (n - a) * n / found
    return gamma_front(a, x) / found


def gamma_rest(a: Any, x: Any) -> Any:
    """The part of a gamma distribution above x < 0.1, for a <= 0.01. DLMF 8.7.3 and 5.7.3."""
    # log(gamma(1 + a)) / a
    scale = polynomial(
        a,
        -0.5772156649015329,
        0.8224670334241132,
        -0.40068563438653143,
        0.27058080842778454,
        -0.20738555102867398,
        0.1695571769974082,
        -0.14404989676884614,
        0.12550966952474304,
    )
    power = a * (np.log(x) - scale)
    term = np.ones_like(x)
    total = np.zeros_like(x)
    for n in range(1, 16):
        term = term * (-x / n)
        total += term / (a + n)
    return -np.expm1(power) - np.exp(power) * (a * total)


def in_parts(function: Any, which: Any, result: Any, *xs: Any) -> Any:
    """Write what `function` makes of some elements into `result`, as many at a time as fit."""
    places = np.flatnonzero(which)
    for i in range(0, places.size, 128):
        part = places[i : i + 128]
        result[part] = function(*[x[part] for x in xs])


def gamma_part(a: Any, x: Any, k: int, left: Any) -> Any:
    """Return `gamma_tail`; without logarithms by series and fractions where these converge soon."""
    result = np.empty_like(x)
    slow = np.full(x.shape, True)
    if k == 0:
        soon = (a < 100.0) | (np.abs(x - a) > 0.3 * a)
        below = soon & left
        above = soon & ~left & (x >= 1.5)
        result[below] = gamma_series(a[below], x[below])
        result[above] = gamma_fraction(a[above], x[above])
        least = ~left & (a <= 0.01) & (x < 0.1)
        result[least] = gamma_rest(a[least], x[least])
        slow = ~(below | above | least)
    in_parts(lambda p, q, r: gamma_tail(p, q, k, r), slow, result, a, x, left)
    return result


def gamma_moment(a: Any, k: int) -> Any:
    """The moment of log(t) - digamma(a) of order k, where t has the gamma distribution."""
    moments = [np.ones_like(a)]
    for n in range(1, k + 1):
        total = np.zeros_like(a)
        choose = 1.0
        for i in range(1, n + 1):
            if i > 1:
                total = total + choose * polygamma_chunk(a, i - 1) * moments[n - i]
            choose = choose * (n - i) / i
        moments.append(total)
    return moments[k]


def gammainc_chunk(a: Any, x: Any, k: int, upper: bool) -> Any:
    """The part of a gamma distribution below or above x, with a power of the logarithm."""
    if k == 1:
        # The limit is the exponential integral E1(x), which it is to all digits here.
        a = np.where((a == 0.0) & (x > 0.0), 1e-100, a)
    # So far to the right that the quotient may overflow.
    x = np.where((a > 0.0) & (x > 1e5) & (x > 1e250 * a), np.inf, x)
    good = (a > 0.0) & (x > 0.0) & (a < np.inf) & (x < np.inf)
    whole = gamma_moment(np.where(good, a, 1.0), k)
    # Of small a the part below x is nearly all of it.
    left = (x < a) & (a > 0.01)
    if k == 0 and not upper:
        left |= x < 1.5
    if k:
        # So small that exp(-x) is 1, and that the part above x is long.
        left |= (x < 1e-17) & (a > (1e-8 if upper and k > 1 else 0.0))
    result = np.where(left == upper, whole, 0.0)
    tail = gamma_part(a[good], x[good], k, left[good])
    result[good] = np.where(left[good] == upper, whole[good] - tail, tail)
    ends = (
        (x == 0.0) & (a > 0.0)
        | (x == np.inf) & (a > 0.0) & (a < np.inf)
        | (a == np.inf) & (x >= 0.0) & (x < np.inf)
    )
    result[ends] = np.where((x == 0.0) | (a == np.inf), float(upper), float(not upper))[
        ends
    ]
    if k:
        below = (x[ends] == 0.0) != upper
        result[ends] = np.where(below, 0.0, gamma_moment(a[ends], k))
    result[~good & ~ends] = np.nan
    zero = (a == 0.0) & (x > 0.0)
    result[zero] = np.nan if k else float(not upper)
    return result


def beta_front(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """x**a rest**b / beta(a, b), where rest = 1 - x."""
    fall = a * rest - b * x
    p, q = np.maximum(a, 8.5), np.maximum(b, 8.5)
    large = 0.5 * np.log(p / (p + q) * q) - 0.9189385332046727
    large += stirling(p + q) - stirling(p) - stirling(q)
    small = -a * np.log1p(b / a) - b * np.log1p(a / b) - betaln_chunk(a, b)
    scale = np.where((a >= 8.5) & (b >= 8.5), large, small)
    before = a * relative_entropy(-fall / a, x * (1.0 + b / a))
    before += b * relative_entropy(fall / b, rest * (1.0 + a / b))
    return np.exp(scale - before)


def beta_fraction(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """The part of a beta distribution below x, where that is below a / (a + b). DLMF 8.17.22."""
    total = a + b
    found = np.ones_like(x)
    for m in range(32, 0, -1):
        place = a + 2.0 * m
        found = 1.0 - (a + m) * (total + m) / (place * (place + 1.0)) * x / found
        found = 1.0 + (b - m) * m / (place * (place - 1.0)) * x / found
    found = 1.0 - total / (a + 1.0) * x / found
    return beta_front(a, b, x, rest) / (a * found)


def beta_part(a: Any, b: Any, x: Any, rest: Any, j: int, k: int) -> Any:
    """Return `beta_tail`; without logarithms by a fraction where that converges soon."""
    result = np.empty_like(x)
    soon = (a + b < 300.0) & ((x < 0.9) | (b >= 3.0)) & (j + k == 0)
    result[soon] = beta_fraction(a[soon], b[soon], x[soon], rest[soon])
    in_parts(
        lambda p, q, y, z: beta_tail(p, q, y, z, j, k), ~soon, result, a, b, x, rest
    )
    return result


def beta_tail(a: Any, b: Any, x: Any, rest: Any, j: int, k: int) -> Any:
    """The integral of the beta density from 0 to x, with powers of logarithms; rest = 1 - x.

    x is below a / (a + b). With logit(t) = logit(x) - d the density loses
    exp(-(a d + (a + b) log(1 - x + x exp(-d)))).
    """
    total, fall = a + b, a * rest - b * x
    length = (42.0 - total * np.log1p(-np.minimum(x, 1.0 - 1e-16))) / a
    length = np.minimum(length, 42.0 / np.maximum(fall, 1e-300))
    for _ in range(8):
        power = x * np.expm1(-length)
        excess = a * length + total * np.log1p(power) - 42.0
        slope = a - total * (power + x) / (1.0 + power)
        length = np.maximum(length - excess / np.maximum(slope, 1e-300), 0.5 * length)
    # Further than this, log(1 - t) is 0.
    end = np.maximum(40.0 + np.log(np.maximum(total, 1.0) * x / rest), 0.0)
    cut = length > end
    length = np.minimum(length, end)
    d, weights = stretched(length, np.maximum(np.log1p(length), 1e-3))
    near, far = x[:, None], rest[:, None]
    falling = near * np.expm1(-d)
    short = np.minimum(d, 1.0)
    rising = far * np.expm1(short)
    logarithm = np.where(near < 0.5, np.log1p(falling), np.log(far + near * np.exp(-d)))
    bend = np.where(
        near < 0.5,
        near * less_line(d) - less_logarithm(falling),
        np.where(
            d > 1.0,
            near * d + logarithm,
            far * less_line(-short) - less_logarithm(rising),
        ),
    )
    moments = weights * np.exp(-(fall[:, None] * d + total[:, None] * bend))
    middle = digamma_chunk(total)
    first = np.log(x) - digamma_chunk(a) + middle
    second = np.log1p(-x) - digamma_chunk(b) + middle
    if j:
        moments *= (first[:, None] - d - logarithm) ** j
    if k:
        moments *= (second[:, None] - logarithm) ** k
    found = np.sum(moments, axis=1)
    if cut.any():
        lost = -(a * length + total * np.log1p(x * np.expm1(-length)))
        last = first - length - np.log1p(x * np.expm1(-length))
        ending = (middle - digamma_chunk(b)) ** k
        found += np.where(
            cut, np.exp(lost) * tail_of_exponential(a, last, j) * ending, 0.0
        )
    return beta_front(a, b, x, rest) * found


def beta_moment(a: Any, b: Any, j: int, k: int) -> Any:
    """The joint moment of log(t) and log(1 - t) about their means, of the beta distribution."""
    total = a + b
    moments = {(0, 0): np.ones_like(a)}
    for m in range(j + 1):
        for n in range(m == 0, k + 1):
            found = np.zeros_like(a)
            # The first index is the one that loses at least one, if it has any.
            lead, other = (m, n) if m else (n, 0)
            outer = 1.0
            for i in range(1, lead + 1):
                inner = 1.0
                for h in range(other + 1):
                    if i + h > 1:
                        own = -polygamma_chunk(total, i + h - 1)
                        if h == 0:
                            own = own + polygamma_chunk(a if m else b, i - 1)
                        before = moments[(m - i, n - h) if m else (0, n - i)]
                        found = found + outer * inner * own * before
                    inner = inner * (other - h) / (h + 1)
                outer = outer * (lead - i) / i
            moments[m, n] = found
    return moments[j, k]


def betainc_chunk(a: Any, b: Any, x: Any, j: int, k: int, upper: bool) -> Any:
    """The part of a beta distribution below or above x, with powers of logarithms."""
    inside = (a > 0.0) & (b > 0.0) & (a < np.inf) & (b < np.inf)
    good = inside & (x > 0.0) & (x < 1.0)
    p, q, end = a[good], b[good], x[good]
    rest = 1.0 - end
    left = p * rest > q * end
    tail = np.empty_like(end)
    tail[left] = beta_part(p[left], q[left], end[left], rest[left], j, k)
    right = ~left
    tail[right] = beta_part(q[right], p[right], rest[right], end[right], k, j)
    result = np.full_like(x, np.nan)
    result[good] = np.where(left == upper, beta_moment(p, q, j, k) - tail, tail)
    ends = inside & ((x == 0.0) | (x == 1.0))
    whole = (x[ends] == 0.0) == upper
    result[ends] = np.where(whole, beta_moment(a[ends], b[ends], j, k), 0.0)
    return result


def gammainc(a: Any, x: Any, k: int, upper: bool, out: Any = None) -> Any:
    """The regularised incomplete gamma function, with a power of the logarithm in its integral."""
    return in_chunks(lambda p, q: gammainc_chunk(p, q, k, upper), (a, x), out)


def betainc(
    a: Any, b: Any, x: Any, j: int, k: int, upper: bool, out: Any = None
) -> Any:
    """The regularised incomplete beta function, with powers of logarithms in its integral."""
    return in_chunks(
        lambda p, q, r: betainc_chunk(p, q, r, j, k, upper), (a, b, x), out
    )
