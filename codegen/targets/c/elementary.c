/* Elementary functions of runs of elements, in portable C.
 *
 * A function of one element has no branches, so that compilers vectorise its loop, and what an
 * element becomes does not depend on where in a run it stands. Those that end in `_of` are for
 * double: where rounding would add up they carry numbers in two parts, of which the second is what
 * the first has lost. Those that end in `_short` are for float: they compute in double, with
 * polynomials that are as long as float asks for. Those of single.c are for float, in float.
 * Polynomials and quotients of them are interpolants at Chebyshev's nodes, found with sixty digits,
 * or have their source beside them. Errors are the largest found by `benchmarks/functions.py`, in
 * units in the last place of the true result. Without an instruction for x y + z the largest are
 * 2.0 of tanh, 1.6 of sigmoid, 1.4 of sinh and 1.2 of erf. Nothing here may be contracted or
 * reassociated by the compiler.
 *
 * What takes long is mostly that results wait for others: a processor has some 200 instructions of
 * such loops on their way. So some functions go over a run in two loops, each of which is short,
 * and what is for rare numbers is done in loops of its own where a run has some.
 *
 * Definitions are separated by empty lines, and each is after all that it uses: whoever needs a few
 * functions only can take what they name. */

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* All of a function is in its loop, or that is not vectorised. */
#ifdef __GNUC__
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

INLINE uint64_t bits_of(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

INLINE double double_of(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* To add it rounds to a whole number, which is then in the last bits. */
#define SHIFT 0x1.8p52

INLINE double rounded(double x) { return (x + SHIFT) - SHIFT; }

/* The bits of 1. */
#define BITS_OF_ONE UINT64_C(0x3ff0000000000000)

/* 2**n for a whole n between -1022 and 1023. */
INLINE double power_of_two(double n) {
    return double_of((bits_of(n + SHIFT) << 52) + BITS_OF_ONE);
}

/* x y + z, rounded once where that is an instruction; where it is not, nothing here depends on it
 * but speed. */
#ifdef FP_FAST_FMA
#define FUSED(x, y, z) fma(x, y, z)
#else
#define FUSED(x, y, z) ((x) * (y) + (z))
#endif

/* A number that is the sum of two, the second one small. */
typedef struct { double high, low; } Pair;

/* x + y for |x| >= |y| or x = 0 (Dekker 1971). */
INLINE Pair sum_of(double x, double y) {
    const double s = x + y;
    const Pair found = {s, (x - s) + y};
    return found;
}

/* x + y for any two numbers (Knuth). */
INLINE Pair total_of(double x, double y) {
    const double s = x + y, t = s - x;
    const Pair found = {s, (x - (s - t)) + (y - t)};
    return found;
}

/* What x y is more than p, which is x y rounded. Without an instruction by Dekker's splitting, for
 * numbers below 2**995. */
INLINE double lost_of(double x, double y, double p) {
#ifdef FP_FAST_FMA
    return fma(x, y, -p);
#else
    const double a = 0x1.0000002p27 * x, b = 0x1.0000002p27 * y;
    const double xh = a - (a - x), yh = b - (b - y), xl = x - xh, yl = y - yh;
    return ((xh * yh - p) + xh * yl + xl * yh) + xl * yl;
#endif
}

INLINE Pair product_of(double x, double y) {
    const double p = x * y;
    const Pair found = {p, lost_of(x, y, p)};
    return found;
}

/* x / y in two parts. */
INLINE Pair quotient_of(Pair x, Pair y) {
    const double inverse = 1.0 / y.high, q = x.high * inverse, p = q * y.high;
    const double rest = (x.high - p) - lost_of(q, y.high, p) + (x.low - q * y.low);
    return sum_of(q, rest * inverse);
}

/* The square root of x in two parts, for x >= 0. */
INLINE Pair root_of(Pair x) {
    const double s = sqrt(x.high), p = s * s;
    const double rest = ((x.high - p) - lost_of(s, s, p) + x.low) / (s + s);
    const Pair found = {s, s > 0.0 ? rest : 0.0};
    return found;
}

/* ln 2 in two parts, the first with zeros at its end (fdlibm, e_exp.c). */
#define LN2_HIGH 6.93147180369123816490e-01

#define LN2_LOW 1.90821492927058770002e-10

#define LOG2_E 1.44269504088896338700e+00

/* x + low = n ln 2 + r + lost with |r| <= 0.3466: n + SHIFT, n and the others. */
typedef struct { double shifted, n, r, lost; } Powers;

INLINE Powers powers_of_pair(double x, double low) {
    const double shifted = FUSED(x, LOG2_E, SHIFT), n = shifted - SHIFT;
    const double high = FUSED(-n, LN2_HIGH, x), rest = FUSED(-n, LN2_LOW, low), r = high + rest;
    const Powers found = {shifted, n, r, (high - r) + rest};
    return found;
}

INLINE Powers powers_of(double x) { return powers_of_pair(x, 0.0); }

/* exp(r) - 1 - r, |r| <= 0.3466; 2e-17. */
INLINE double exp_rest(double r) {
    const double z = r * r, y = z * z;
    const double a = FUSED(FUSED(r, 0.008333333333330063, 0.04166666666662416), z,
                           FUSED(r, 0.16666666666666669, 0.5));
    const double b = FUSED(FUSED(r, 2.7557268476553695e-06, 2.4801521317484083e-05), z,
                           FUSED(r, 0.00019841269863042963, 0.0013888888917199863));
    const double c = FUSED(r, 2.5100377619606372e-08, 2.7620078203806394e-07);
    return z * FUSED(FUSED(c, y, b), y, a);
}

/* exp(r) - 1 - r - r**2 / 2, by the Taylor series. */
INLINE double exp_cubes(double r) {
    const double z = r * r, y = z * z;
    const double a = FUSED(FUSED(r, 1.0 / 720.0, 1.0 / 120.0), z, FUSED(r, 1.0 / 24.0, 1.0 / 6.0));
    const double b = FUSED(FUSED(r, 1.0 / 3628800.0, 1.0 / 362880.0), z,
                           FUSED(r, 1.0 / 40320.0, 1.0 / 5040.0));
    const double c = FUSED(z, 1.0 / 6227020800.0, FUSED(r, 1.0 / 479001600.0, 1.0 / 39916800.0));
    return r * z * FUSED(FUSED(c, y, b), y, a);
}

/* x 2**n for |n| <= 2044, in two steps, as 2**n alone may be no number. */
INLINE double scaled(double x, Powers p) {
    const uint64_t half = bits_of(FUSED(p.n, 0.5, SHIFT)), rest = bits_of(p.shifted) - half;
    const uint64_t one = UINT64_C(0x3ff0000000000000);
    return x * double_of((half << 52) + one) * double_of((rest << 52) + one);
}

/* exp(r + lost) over 1 + r rounded, and what that has lost. */
INLINE double exp_of_rest(Powers p) {
    const double h = 1.0 + p.r;
    return h + (((1.0 - h) + p.r) + (exp_rest(p.r) + p.lost));
}

/* All x; 0.90. */
INLINE double exp_of(double x) {
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    const Powers p = powers_of(x);
    return scaled(exp_of_rest(p), p);
}

/* Up to here exponentials are not denormal, nor too large. */
#define EXP_NEAR 708.0

/* The same for |x| <= EXP_NEAR. */
INLINE double exp_near(double x) {
    const Powers p = powers_of(x);
    return exp_of_rest(p) * power_of_two(p.n);
}

/* exp(r + lost) in two parts. */
INLINE Pair exp_parts(Powers p) {
    const double h = 1.0 + p.r;
    return sum_of(h, ((1.0 - h) + p.r) + (exp_rest(p.r) + p.lost));
}

/* All x; 0.95. */
INLINE double expm1_of(double x) {
    const double given = x;
    x = x > 710.0 ? 710.0 : x;
    x = x < -40.0 ? -40.0 : x;
    const Powers p = powers_of(x);
    const double w = power_of_two(p.n > 60.0 ? -60.0 : -p.n), less = 1.0 - w, h = less + p.r;
    const double low = ((less - h) + p.r) + ((1.0 - less) - w);
    /* The square is the largest of the rest. */
    const double z = p.r * p.r, half = 0.5 * z, y = h + half, rest = exp_cubes(p.r);
    const double lost = (h - y) + half + 0.5 * FUSED(p.r, p.r, -z);
    const double whole = scaled(y + (lost + (low + (rest + p.lost))), p);
    return given == 0.0 ? given : whole;
}

/* (above + above_low) / (below + below_low), where the second parts may be as large as a tenth. */
INLINE double ratio_of(double above, double above_low, double below, double below_low) {
    const double inverse = 1.0 / (below + below_low), q = (above + above_low) * inverse;
    const double rest = FUSED(-q, below, above) + FUSED(-q, below_low, above_low);
    return FUSED(rest, inverse, q);
}

/* sinh and cosh of x >= 0, each times 2**(1 - n) and in two parts, by those of r:
 * cosh(r) (1 -+ 2**-2n) + sinh(r) (1 +- 2**-2n). */
typedef struct { double sinh, sinh_low, cosh, cosh_low; } Hyperbolic;

/* By polynomials in r**2, whose relative errors are 4e-20 and 5e-17; `by` is 2**-2n. */
INLINE Hyperbolic hyperbolic_of(Powers p, double by) {
    const double r = p.r, z = r * r, y = z * z, plus = 1.0 + by, minus = 1.0 - by;
    const double c0 = FUSED(z, 0.04166666666666668, 0.5);
    const double c1 = FUSED(z, 2.480158733642519e-05, 0.001388888888887908);
    const double c2 = FUSED(z, 2.0918130986747386e-09, 2.7557263297335027e-07);
    const double s0 = FUSED(z, 0.008333333333330063, 0.16666666666666669);
    const double s1 = FUSED(z, 2.7557268476553695e-06, 0.00019841269863042963);
    const double even = z * FUSED(FUSED(c2, y, c1), y, c0);
    const double odd = FUSED(r * z, FUSED(FUSED(y, 2.5100377619606372e-08, s1), y, s0), p.lost);
    const double s = FUSED(plus, r, minus), c = FUSED(minus, r, plus);
    const Hyperbolic found = {
        s, (FUSED(plus, r, minus - s) + ((1.0 - minus) - by)) + FUSED(plus, odd, minus * even),
        c, (FUSED(minus, r, plus - c) + (by - (plus - 1.0))) + FUSED(plus, even, minus * odd),
    };
    return found;
}

/* All x; 0.90. */
INLINE double sinh_of(double x) {
    const double a = fabs(x) > 712.0 ? 712.0 : fabs(x);
    const Powers p = powers_of(a);
    const Hyperbolic h = hyperbolic_of(p, power_of_two(p.n > 60.0 ? -120.0 : -2.0 * p.n));
    return copysign(scaled(0.5 * (h.sinh + h.sinh_low), p), x);
}

/* All x; 0.83. */
INLINE double cosh_of(double x) {
    const double a = fabs(x) > 712.0 ? 712.0 : fabs(x);
    const Powers p = powers_of(a);
    const Hyperbolic h = hyperbolic_of(p, power_of_two(p.n > 60.0 ? -120.0 : -2.0 * p.n));
    return scaled(0.5 * (h.cosh + h.cosh_low), p);
}

/* A number that is n times some logarithm and r + lost, and 2**-n. */
typedef struct { double r, lost, by; } Reduced;

/* The quotient of two numbers in two parts. */
typedef struct { double over, over_low, under, under_low; } Ratio;

INLINE double value_of(Ratio q) {
    const double inverse = 1.0 / (q.under + q.under_low), z = q.over * inverse;
    const double rest = FUSED(-z, q.under, q.over) + FUSED(-z, q.under_low, q.over_low);
    return FUSED(rest, inverse, z);
}

/* |x| = n ln 2 / 2 + r + lost for an even n, and for |x| up to 20, where tanh is 1. */
INLINE Reduced tanh_reduced(double x) {
    const double a = fabs(x) > 20.0 ? 20.0 : fabs(x);
    const double shifted = FUSED(a, LOG2_E, SHIFT), n = shifted - SHIFT;
    const double high = FUSED(-n, LN2_HIGH, a), rest = n * LN2_LOW, r = high - rest;
    const double by = double_of(BITS_OF_ONE - (bits_of(shifted) << 53));
    const Reduced found = {r, (high - r) - rest, by};
    return found;
}

/* By t = tanh(r) = r (1 + z above) / (1 + z below), z = r**2, 6e-18, and 2**-n, as
 * (1 - by + (1 + by) t) / (1 + by + (1 - by) t). All x; 0.81. */
INLINE double tanh_of_reduced(Reduced p, double x) {
    const double z = p.r * p.r, plus = 1.0 + p.by, minus = 1.0 - p.by;
    /* What plus and minus lack, by 1 - t nearly. */
    const double least = p.by - (plus - 1.0), lost = FUSED(-least, p.r, least);
    const double above = FUSED(z, 0.0020181821349107344, 0.12119090177826702);
    double below = FUSED(z, 9.599834311524616e-05, 0.020192927172125275);
    below = FUSED(z, below, 0.45452423511160034);
    const double odd = FUSED(p.r * z, above, p.lost), even = z * below;
    const double over = FUSED(plus, p.r, minus), under = FUSED(minus, p.r, plus);
    const Ratio q = {
        over, FUSED(plus, odd, FUSED(minus, even, FUSED(plus, p.r, minus - over) - lost)),
        under, FUSED(minus, odd, FUSED(plus, even, FUSED(minus, p.r, plus - under) + lost)),
    };
    return copysign(value_of(q), x);
}

/* x = n ln 2 + 2 (r + lost). */
INLINE Reduced sigmoid_reduced(double x) {
    const double a = x > 38.0 ? 38.0 : x, most = SHIFT + 52.0;
    const int64_t u = (int64_t)bits_of(FUSED(a, LOG2_E, SHIFT)), end = (int64_t)bits_of(most);
    const uint64_t shifted = (uint64_t)(u < end ? u : end);
    const double n = double_of(shifted) - SHIFT;
    const double high = FUSED(-n, LN2_HIGH, a), rest = n * LN2_LOW, r = high - rest;
    const double by = double_of(BITS_OF_ONE - (shifted << 52));
    const Reduced found = {0.5 * r, 0.5 * ((high - r) - rest), by};
    return found;
}

/* By t = tanh(r) = r (1 + z above) / (1 + z below), z = r**2, 2e-17, and 2**-n, as
 * (1 + t) / (1 + by + (1 - by) t). */
INLINE double sigmoid_of_reduced(Reduced p, double x) {
    (void)x;
    const double z = p.r * p.r, plus = 1.0 + p.by, minus = 1.0 - p.by;
    const double above = FUSED(z, 0.0010575593569877527, 0.1111014804305465);
    const double below = FUSED(z, 0.01586916394563624, 0.44443481376387917);
    const double odd = FUSED(p.r * z, above, p.lost), even = z * below;
    const double over = 1.0 + p.r, under = FUSED(minus, p.r, plus), lost = 1.0 - (plus - p.by);
    const Ratio q = {
        over, ((1.0 - over) + p.r) + (odd + even),
        under, FUSED(minus, odd, FUSED(plus, even, FUSED(minus, p.r, plus - under) + lost)),
    };
    return value_of(q);
}

/* All x; 0.81. */
INLINE double sigmoid_of(double x) {
    const double far = exp_of(x), near = sigmoid_of_reduced(sigmoid_reduced(x), x);
    return x < -EXP_NEAR ? far : near;
}

#define ROOT_HALF UINT64_C(0x3fe6a09e667f3bcd)

/* The k and the f of a positive number 2**k (1 + f) that is not denormal, 1 + f between the roots
 * of a half and of two. */
INLINE double exponent_of(double x) {
    const uint64_t u = bits_of(x) + (UINT64_C(0x3ff0000000000000) - ROOT_HALF);
    return double_of((u >> 52) | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
}

INLINE double fraction_of(double x) {
    const uint64_t u = bits_of(x) + (UINT64_C(0x3ff0000000000000) - ROOT_HALF);
    return double_of((u & UINT64_C(0x000fffffffffffff)) + ROOT_HALF) - 1.0;
}

/* How much less than k ln 2, without its second part, and f the log of 2**k (1 + f) is, with a
 * correction c (fdlibm, e_log.c and s_log1p.c: 2 atanh(s), s = f / (2 + f)). */
INLINE double log_less(double k, double f, double c) {
    const double s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
    double p = 1.479819860511658591e-01;
    p = FUSED(p, z, 1.531383769920937332e-01);
    p = FUSED(p, z, 1.818357216161805012e-01);
    p = FUSED(p, z, 2.222219843214978396e-01);
    p = FUSED(p, z, 2.857142874366239149e-01);
    p = FUSED(p, z, 3.999999999940941908e-01);
    p = FUSED(p, z, 6.666666666666735130e-01);
    return h - FUSED(s, FUSED(z, p, h), FUSED(k, LN2_LOW, c));
}

INLINE double log_of_parts(double k, double f, double c) {
    return FUSED(k, LN2_HIGH, -(log_less(k, f, c) - f));
}

/* Where x is no positive number: log's z otherwise. */
INLINE double log_at_edges(double x, double z) {
    z = x == INFINITY ? x : z;
    z = x == 0.0 ? -INFINITY : z;
    z = x < 0.0 ? (double)NAN : z;
    return x != x ? x : z;
}

/* All x; 0.84. */
INLINE double log_of(double x) {
    const int tiny = x < 0x1p-1022;
    const double y = tiny ? x * 0x1p54 : x;
    const double k = exponent_of(y) - (tiny ? 54.0 : 0.0);
    return log_at_edges(x, log_of_parts(k, fraction_of(y), 0.0));
}

/* The same of numbers that are positive, not denormal, and no infinity. */
INLINE double log_near(double x) { return log_of_parts(exponent_of(x), fraction_of(x), 0.0); }

/* log(1 + x + low) + k ln 2, for x > -1. */
INLINE double log1p_parts(double x, double low, double k) {
    const double u = 1.0 + x, e = exponent_of(u);
    const double c = (e >= 2.0 ? 1.0 - (u - x) : x - (u - 1.0)) + low;
    return log_of_parts(e + k, fraction_of(u), c / u);
}

/* All x; 0.85. */
INLINE double log1p_of(double x) {
    double z = log1p_parts(x, 0.0, 0.0);
    z = x == INFINITY ? x : z;
    z = x == -1.0 ? -INFINITY : z;
    z = x < -1.0 ? (double)NAN : z;
    return x == 0.0 || x != x ? x : z;
}

/* log(1 + a + a**2 / (1 + sqrt(1 + a**2))) for a = |x|. All x; 1.00. */
INLINE double asinh_of(double x) {
    const double a = fabs(x);
    const int large = a > 0x1p300;
    const double b = large ? 1.0 : a;
    const Pair one = {1.0, 0.0}, square = product_of(b, b);
    Pair under = total_of(1.0, square.high);
    under.low += square.low;
    const Pair root = root_of(under);
    Pair below = sum_of(root.high, one.high);
    below.low += root.low;
    const Pair q = quotient_of(square, below), u = sum_of(b, q.high);
    const double z = log1p_parts(large ? a : u.high, large ? 0.0 : u.low + q.low, large ? 1.0 : 0.0);
    const double y = a == INFINITY ? a : z;
    return x == 0.0 || x != x ? x : copysign(y, x);
}

/* log(1 + t + sqrt(t (t + 2))) for t = x - 1. All x; 0.80. */
INLINE double acosh_of(double x) {
    const int large = x > 0x1p300;
    const double b = large ? 2.0 : x;
    const Pair t = total_of(b, -1.0), m = total_of(b, 1.0);
    Pair under = product_of(t.high, m.high);
    under.low += t.high * m.low + t.low * m.high;
    const Pair root = root_of(under), u = total_of(root.high, t.high);
    const double low = u.low + (root.low + t.low);
    double z = log1p_parts(large ? x : u.high, large ? 0.0 : low, large ? 1.0 : 0.0);
    z = x == INFINITY ? x : z;
    return x < 1.0 ? (double)NAN : x != x ? x : z;
}

/* log(1 + 2 a / (1 - a)) / 2 for a = |x|. All x; 1.00. */
INLINE double atanh_of(double x) {
    const double a = fabs(x), b = a < 1.0 ? a : 0.0;
    const Pair above = {b + b, 0.0}, q = quotient_of(above, sum_of(1.0, -b));
    double z = 0.5 * log1p_parts(q.high, q.low, 0.0);
    z = a == 1.0 ? INFINITY : z;
    z = a > 1.0 ? (double)NAN : z;
    return x == 0.0 || x != x ? x : copysign(z, x);
}

/* Beyond this the reduction of arguments below is no longer exact. */
#define FAR_OUT 0x1p20

/* x - n pi/2, in two parts (fdlibm, e_rem_pio2.c, its second of three steps). */
#define HALF_PI_1 1.57079632673412561417e+00

#define HALF_PI_2 6.07710050630396597660e-11

#define HALF_PI_2_REST 2.02226624879595063154e-21

typedef struct { double n, high, low; } Quarter;

INLINE Quarter quarter_of(double x) {
    const double n = rounded(x * 6.36619772367581382433e-01);
    const double t = FUSED(-n, HALF_PI_1, x);
    const double w = n * HALF_PI_2;
    const double r = t - w;
    const double v = n * HALF_PI_2_REST - ((t - r) - w);
    const double high = r - v;
    const Quarter found = {n, high, (r - high) - v};
    return found;
}

/* sin(x + low) - x for |x| <= pi / 4 (fdlibm, k_sin.c). */
INLINE double sin_less(double x, double low) {
    const double z = x * x, v = z * x;
    double p = 1.58969099521155010221e-10;
    p = FUSED(p, z, -2.50507602534068634195e-08);
    p = FUSED(p, z, 2.75573137070700676789e-06);
    p = FUSED(p, z, -1.98412698298579493134e-04);
    p = FUSED(p, z, 8.33333333332248946124e-03);
    const double t = FUSED(z, FUSED(-v, p, 0.5 * low), -low);
    return -FUSED(v, 1.66666666666666324348e-01, t);
}

/* cos(x + low) in two parts for |x| <= pi / 4 (fdlibm, k_cos.c). */
INLINE Pair cos_parts(double x, double low) {
    const double z = x * x;
    double p = -1.13596475577881948265e-11;
    p = FUSED(p, z, 2.08757232129817482790e-09);
    p = FUSED(p, z, -2.75573143513906633035e-07);
    p = FUSED(p, z, 2.48015872894767294178e-05);
    p = FUSED(p, z, -1.38888888888741095749e-03);
    p = FUSED(p, z, 4.16666666666666019037e-02);
    const double h = 0.5 * z, w = 1.0 - h;
    const Pair found = {w, ((1.0 - w) - h) + FUSED(z, z * p, -x * low)};
    return found;
}

/* |x| <= 2**20; 0.79. */
INLINE double sin_of(double x) {
    const Quarter q = quarter_of(x);
    const uint64_t n = bits_of(q.n + SHIFT);
    const Pair c = cos_parts(q.high, q.low);
    const double z = n & 1 ? c.high + c.low : q.high + sin_less(q.high, q.low);
    return x == 0.0 ? x : n & 2 ? -z : z;
}

/* |x| <= 2**20; 0.78. */
INLINE double cos_of(double x) {
    const Quarter q = quarter_of(x);
    const uint64_t n = bits_of(q.n + SHIFT);
    const Pair c = cos_parts(q.high, q.low);
    const double z = n & 1 ? q.high + sin_less(q.high, q.low) : c.high + c.low;
    return (n + 1) & 2 ? -z : z;
}

/* |x| <= 2**20; 0.90. */
INLINE double tan_of(double x) {
    const Quarter q = quarter_of(x);
    const int odd = bits_of(q.n + SHIFT) & 1;
    const Pair near = cos_parts(q.high, q.low);
    const Pair c = sum_of(near.high, near.low), s = sum_of(q.high, sin_less(q.high, q.low));
    const Pair above = {odd ? -c.high : s.high, odd ? -c.low : s.low};
    const Pair below = {odd ? s.high : c.high, odd ? s.low : c.low};
    const Pair z = quotient_of(above, below);
    return x == 0.0 ? x : z.high + z.low;
}

/* (asin(x) - x) / x**3 by z = x**2 <= 1/4; 5e-18. */
INLINE double asin_rest(double z) {
    double p = 0.02961201126495512;
    p = FUSED(p, z, -0.01924167174674304);
    p = FUSED(p, z, 0.019554513336123378);
    p = FUSED(p, z, 0.0030448799094556773);
    p = FUSED(p, z, 0.009319560794767446);
    p = FUSED(p, z, 0.009621842970100282);
    p = FUSED(p, z, 0.011566459612121669);
    p = FUSED(p, z, 0.01396378001220357);
    p = FUSED(p, z, 0.017352816540325496);
    p = FUSED(p, z, 0.02237215744350722);
    p = FUSED(p, z, 0.03038194447553234);
    p = FUSED(p, z, 0.044642857142551895);
    p = FUSED(p, z, 0.07500000000000118);
    return FUSED(p, z, 0.16666666666666666);
}

#define HALF_PI_HIGH 0x1.921fb54442d18p+0

#define HALF_PI_LOW 0x1.1a62633145c07p-54

/* Beyond 1/2 by the square root of (1 - |x|) / 2. All x; 0.65. */
INLINE double asin_of(double x) {
    const double a = fabs(x);
    const int near = a < 0.5;
    const Pair w = {near ? 0.25 : 0.5 * (1.0 - a), 0.0}, s = root_of(w);
    const double z = near ? a * a : w.high, v = near ? a : s.high;
    const double rest = v * (z * asin_rest(z));
    const Pair h = sum_of(HALF_PI_HIGH, -2.0 * s.high);
    const double far = h.high + (h.low + (HALF_PI_LOW - 2.0 * (s.low + rest)));
    return copysign(near ? a + rest : far, x);
}

/* All x; 0.64. */
INLINE double acos_of(double x) {
    const double a = fabs(x);
    const int near = a < 0.5;
    const Pair w = {near ? 0.25 : 0.5 * (1.0 - a), 0.0}, s = root_of(w);
    const double z = near ? a * a : w.high, sign = x > 0.0 ? -2.0 : 2.0;
    const double v = near ? x : sign * s.high;
    const double rest = v * (z * asin_rest(z)) + (near ? 0.0 : sign * s.low);
    const double by = near ? 1.0 : x > 0.0 ? 0.0 : 2.0;
    const Pair h = sum_of(by * HALF_PI_HIGH, -v);
    return h.high + (h.low + (by * HALF_PI_LOW - rest));
}

/* pi/4, so that four times the first part is exact. */
#define QUARTER_PI_HIGH 0x1.921fb54442d18p-1

#define QUARTER_PI_LOW 0x1.1a62633145c07p-55

/* (atan(t) - t) / t**3 by z = t**2, |t| <= 0.4143; 4e-18. */
INLINE double atan_rest(double z) {
    double p = 0.01628532732275549;
    p = FUSED(p, z, -0.034570174391823104);
    p = FUSED(p, z, 0.045515781496647055);
    p = FUSED(p, z, -0.052304509666811966);
    p = FUSED(p, z, 0.05878928549229719);
    p = FUSED(p, z, -0.06666424846721739);
    p = FUSED(p, z, 0.07692296372859808);
    p = FUSED(p, z, -0.09090908753425743);
    p = FUSED(p, z, 0.11111111105153937);
    p = FUSED(p, z, -0.14285714285659812);
    p = FUSED(p, z, 0.19999999999999804);
    return FUSED(p, z, -0.3333333333333333);
}

/* k pi/4 + atan(t), and with another sign. */
INLINE double angle_of(double k, double sign, Pair t) {
    const double z = t.high * t.high, rest = FUSED(t.high * z, atan_rest(z), t.low);
    const Pair h = sum_of(k * QUARTER_PI_HIGH, sign * t.high);
    return h.high + (h.low + FUSED(sign, rest, k * QUARTER_PI_LOW));
}

/* By x, (x - 1) / (x + 1) or -1 / x. All x; 0.67. */
INLINE double atan_of(double x) {
    const double a = fabs(x) > 0x1p60 ? 0x1p60 : fabs(x);
    const int far = a > 2.414213562373095, half = a > 0.41421356237309503;
    const Pair minus = total_of(a, -1.0), plus = total_of(a, 1.0);
    Pair above = {half ? minus.high : a, half ? minus.low : 0.0};
    Pair below = {half ? plus.high : 1.0, half ? plus.low : 0.0};
    above.high = far ? -1.0 : above.high;
    above.low = far ? 0.0 : above.low;
    below.high = far ? a : below.high;
    below.low = far ? 0.0 : below.low;
    const double k = half ? 1.0 : 0.0;
    return copysign(angle_of(far ? 2.0 : k, 1.0, quotient_of(above, below)), x);
}

/* The angle of (x, y), by the smaller of them through the larger. All x and y; 0.75. */
INLINE double atan2_of(double y, double x) {
    const double ax = fabs(x), ay = fabs(y);
    const int steep = ay > ax, level = ax == ay;
    double low = steep ? ax : ay, high = steep ? ay : ax;
    low = high == INFINITY ? (level ? 1.0 : 0.0) : low;
    high = high == INFINITY || high == 0.0 ? 1.0 : high;
    const double by = high > 0x1p900 ? 0x1p-300 : high < 0x1p-400 ? 0x1p600 : 1.0;
    low *= by;
    high *= by;
    const int half = low > 0.41421356237309503 * high;
    const Pair plus = sum_of(high, low), minus = sum_of(high, -low);
    const Pair above = {half ? -minus.high : low, half ? -minus.low : 0.0};
    const Pair below = {half ? plus.high : high, half ? plus.low : 0.0};
    const int left = copysign(1.0, x) < 0.0;
    double k = half ? 1.0 : 0.0;
    k = steep ? 2.0 - k : k;
    k = left ? 4.0 - k : k;
    const double angle = angle_of(k, steep == left ? 1.0 : -1.0, quotient_of(above, below));
    return x != x || y != y ? x + y : copysign(angle, y);
}

/* erf(x) / x - 1 for |x| < 1, by z = x**2, in two parts; 2e-18. */
INLINE Pair erf_less(double x) {
    const double z = x * x;
    double p = 6.174097221305255e-11;
    p = FUSED(p, z, -1.1500357159785296e-09);
    p = FUSED(p, z, 1.4692484859133263e-08);
    p = FUSED(p, z, -1.6355118610877705e-07);
    p = FUSED(p, z, 1.6461446656928561e-06);
    p = FUSED(p, z, -1.4925622504489842e-05);
    p = FUSED(p, z, 0.00012055332214716276);
    p = FUSED(p, z, -0.0008548327010033328);
    p = FUSED(p, z, 0.005223977625303518);
    p = FUSED(p, z, -0.026866170645123838);
    p = FUSED(p, z, 0.11283791670955111);
    const double q = FUSED(p, z, -0.37612638903183754);
    const double low = FUSED(p, z, -0.37612638903183754 - q);
    const Pair found = {FUSED(q, z, 0.12837916709551259), low * z};
    return found;
}

/* From 1 on by 1 - exp(-x**2) h(t) / (x + 3), t = (x - 3) / (x + 3), h to 7e-18. All x; 0.93. */
INLINE double erf_of(double x) {
    const double a = fabs(x) > 6.1 ? 6.1 : fabs(x);
    const double inverse = 1.0 / (a + 3.0), t = (a - 3.0) * inverse;
    double p = 1.1466337353977117e-06;
    p = FUSED(p, t, 2.6581187429666493e-06);
    p = FUSED(p, t, -4.8311965739213505e-06);
    p = FUSED(p, t, -1.74676164354395e-05);
    p = FUSED(p, t, 3.0412288079670934e-05);
    p = FUSED(p, t, 0.00010756319822448923);
    p = FUSED(p, t, -0.00027677900069429965);
    p = FUSED(p, t, -0.000548309916333304);
    p = FUSED(p, t, 0.0030340620495167146);
    p = FUSED(p, t, -0.0012124166157971093);
    p = FUSED(p, t, -0.02682723462549736);
    p = FUSED(p, t, 0.11952776128703795);
    p = FUSED(p, t, -0.31046726190055734);
    p = FUSED(p, t, 0.5902283571041038);
    p = FUSED(p, t, -0.8833944531698836);
    p = FUSED(p, t, 1.0740069070883398);
    const double square = a * a;
    const Powers e = powers_of_pair(-square, -FUSED(a, a, -square));
    const double far = (1.0 + (e.r + (exp_rest(e.r) + e.lost))) * power_of_two(e.n);
    const double b = a < 1.0 ? a : 0.0;
    const Pair less = erf_less(b);
    const double s = FUSED(b, less.high, b), near = s + (FUSED(b, less.high, b - s) + b * less.low);
    return copysign(a < 1.0 ? near : FUSED(-far, p * inverse, 1.0), x);
}

/* The next term of a polynomial by t = high + low, in two parts: p t + c. */
INLINE Pair next_term(Pair p, Pair t, double c, double low_of_c) {
    const Pair q = product_of(p.high, t.high), s = sum_of(c, q.high);
    const double low = q.low + (p.high * t.low + p.low * t.high);
    return sum_of(s.high, s.low + (low + low_of_c));
}

/* From 0.65 on as erf, with the largest terms in two parts, h to 3e-18. All x; 0.93. */
INLINE double erfc_of(double x) {
    const double a = fabs(x) > 28.0 ? 28.0 : fabs(x);
    const Pair one = {1.0, 0.0}, below = sum_of(3.0 > a ? 3.0 : a, 3.0 > a ? a : 3.0);
    const Pair inverse = quotient_of(one, below);
    /* t = 1 - 6 / (x + 3). */
    const Pair six = product_of(-6.0, inverse.high);
    Pair t = total_of(1.0, six.high);
    t.low += six.low - 6.0 * inverse.low;
    double p = -6.563371125221362e-09;
    p = FUSED(p, t.high, -2.7611654146713573e-09);
    p = FUSED(p, t.high, 4.906622310275985e-08);
    p = FUSED(p, t.high, 4.751929688857902e-08);
    p = FUSED(p, t.high, -2.331174113329978e-07);
    p = FUSED(p, t.high, -4.0846808662884234e-07);
    p = FUSED(p, t.high, 9.991385665905999e-07);
    p = FUSED(p, t.high, 2.7653525040774327e-06);
    p = FUSED(p, t.high, -4.74946981500794e-06);
    p = FUSED(p, t.high, -1.7470474170741737e-05);
    p = FUSED(p, t.high, 3.0398255491861994e-05);
    p = FUSED(p, t.high, 0.00010756145437588815);
    p = FUSED(p, t.high, -0.00027677786508161016);
    p = FUSED(p, t.high, -0.0005483096863852136);
    p = FUSED(p, t.high, 0.003034062003317502);
    p = FUSED(p, t.high, -0.001212416627664781);
    p = FUSED(p, t.high, -0.026827234624603086);
    const Pair first = {p, 0.0};
    Pair h = next_term(first, t, 0.11952776128730859, 1.5214861270856084e-18);
    h = next_term(h, t, -0.31046726190056434, 2.6038273816921865e-17);
    h = next_term(h, t, 0.5902283571041016, -3.649123585797002e-17);
    h = next_term(h, t, -0.8833944531698836, -1.8809633930687637e-17);
    h = next_term(h, t, 1.0740069070883398, -8.786166479142999e-17);
    const Pair square = product_of(a, a);
    const Powers powers = powers_of_pair(-square.high, -square.low);
    const Pair e = exp_parts(powers), g = product_of(h.high, inverse.high);
    const Pair z = product_of(e.high, g.high);
    const double low = e.low * g.high + e.high * (g.low + (h.low * inverse.high + h.high * inverse.low));
    const double far = scaled(z.high + (z.low + low), powers);
    const Pair minus = sum_of(2.0, -far), less = sum_of(1.0, -x);
    const double b = a < 0.65 ? x : 0.0;
    const double near = less.high + (less.low - b * erf_less(b).high);
    const double tail = x < 0.0 ? minus.high : far;
    return x != x ? x : a < 0.65 ? near : tail;
}

/* log(x) in two parts, the second good to 2**-65 of the whole, for a number x > 0. */
INLINE Pair log_parts(double x) {
    const int tiny = x < 0x1p-1022;
    const double y = tiny ? x * 0x1p54 : x;
    const double k = exponent_of(y) - (tiny ? 54.0 : 0.0), f = fraction_of(y);
    const Pair above = {f, 0.0}, s = quotient_of(above, sum_of(2.0, f));
    Pair z = product_of(s.high, s.high);
    z.low += 2.0 * s.high * s.low;
    Pair cube = product_of(z.high, s.high);
    cube.low += z.high * s.low + z.low * s.high;
    Pair third = product_of(cube.high, 0.6666666666666666);
    third.low += cube.low * 0.6666666666666666 + cube.high * 3.700743415417188e-17;
    /* (2 atanh(s) - 2 s - 2 s**3 / 3) / s**5 by z; 5e-18. */
    double p = 0.11723157001190189;
    p = FUSED(p, z.high, 0.11706238407260777);
    p = FUSED(p, z.high, 0.1333480461663011);
    p = FUSED(p, z.high, 0.153845949639382);
    p = FUSED(p, z.high, 0.18181818335379513);
    p = FUSED(p, z.high, 0.22222222221655943);
    p = FUSED(p, z.high, 0.28571428571429364);
    p = FUSED(p, z.high, 0.4);
    const Pair a = sum_of(k * LN2_HIGH, 2.0 * s.high), b = sum_of(a.high, third.high);
    const double low = (a.low + b.low) + (2.0 * s.low + third.low + FUSED(k, LN2_LOW, cube.high * z.high * p));
    return sum_of(b.high, low);
}

/* Where x or y is zero, infinite, or no number, and the sign: pow's z for |x| otherwise. */
INLINE double pow_at_edges(double x, double y, double z) {
    const double a = fabs(x), half = 0.5 * y;
    const int whole = floor(y) == y, odd = whole && floor(half) != half;
    const int grows = (a > 1.0) == (y > 0.0);
    z = a == 0.0 || a == INFINITY || fabs(y) == INFINITY ? (grows ? INFINITY : 0.0) : z;
    z = x < 0.0 && !whole && a != INFINITY ? (double)NAN : z;
    z = odd && fabs(y) != INFINITY ? copysign(z, x) : z;
    z = x != x || y != y ? x + y : z;
    z = a == 1.0 && (x > 0.0 || fabs(y) == INFINITY) ? 1.0 : z;
    return y == 0.0 ? 1.0 : z;
}

/* exp(y log(|x|)). All x and y; 0.94. */
INLINE double pow_of(double x, double y) {
    const Pair l = log_parts(fabs(x));
    double v = y > 1e25 ? 1e25 : y;
    v = v < -1e25 ? -1e25 : v;
    Pair p = product_of(v, l.high);
    p.low += v * l.low;
    p.low = fabs(p.high) > 750.0 ? 0.0 : p.low;
    p.high = p.high > 750.0 ? 750.0 : p.high;
    p.high = p.high < -750.0 ? -750.0 : p.high;
    const Powers powers = powers_of_pair(p.high, p.low);
    const Pair e = exp_parts(powers);
    return pow_at_edges(x, y, scaled(e.high + e.low, powers));
}

/* The greater one plus log1p of the exponential of minus the distance, in two parts each, so that
 * the last rounding is the largest. All x and y; 0.89, and 2**-55 next to where the two cancel. */
INLINE double logaddexp_of(double x, double y) {
    const double most = x > y ? x : y, least = x > y ? y : x;
    const Pair apart = total_of(least, -most);
    const int near = apart.high >= -746.0;
    const Powers p = powers_of_pair(near ? apart.high : -746.0, near ? apart.low : 0.0);
    const Pair e = exp_parts(p);
    const double v = scaled(e.high, p), low = scaled(e.low, p), u = 1.0 + v;
    const double k = exponent_of(u), f = fraction_of(u);
    const double less = log_less(k, f, ((v - (u - 1.0)) + low) / u);
    const Pair a = sum_of(k * LN2_HIGH, f);
    /* Of little ones three terms are enough. */
    const int tiny = v < 0x1p-20;
    const Pair sum = total_of(most, tiny ? v : a.high);
    const double rest = tiny ? low - v * v * (0.5 - v * (1.0 / 3.0)) : a.low - less;
    const double z = fabs(most) == INFINITY ? most : sum.high + (sum.low + rest);
    return x != x ? x : y != y ? y : z;
}

/* Functions for float. */

/* exp(r) - 1 - r, |r| <= 0.3466; 3e-9. */
INLINE double exp_rest_short(double r) {
    const double z = r * r, a = FUSED(r, 0.16666666681614256, 0.5000000013457727);
    const double b = FUSED(r, 0.008333310934448869, 0.04166646500604005);
    const double c = FUSED(r, 0.00019890980869750327, 0.0013933641031986701);
    return z * FUSED(FUSED(c, z, b), z, a);
}

INLINE double exp_short(double x) {
    x = x > 110.0 ? 110.0 : x;
    x = x < -110.0 ? -110.0 : x;
    const double shifted = FUSED(x, LOG2_E, SHIFT), n = shifted - SHIFT;
    const double r = FUSED(-n, 0.6931471805599453, x);
    const uint64_t two = (bits_of(shifted) << 52) + UINT64_C(0x3ff0000000000000);
    return (1.0 + (r + exp_rest_short(r))) * double_of(two);
}

INLINE double expm1_short(double x) {
    x = x > 110.0 ? 110.0 : x;
    x = x < -110.0 ? -110.0 : x;
    const double shifted = FUSED(x, LOG2_E, SHIFT), n = shifted - SHIFT;
    const double r = FUSED(-n, 0.6931471805599453, x);
    const double two = double_of((bits_of(shifted) << 52) + UINT64_C(0x3ff0000000000000));
    return FUSED(two, r + exp_rest_short(r), two - 1.0);
}

INLINE double expm1_of_float(double x) { return x == 0.0 ? x : expm1_short(x); }

INLINE double sinh_short(double x) {
    const double t = expm1_short(fabs(x));
    return copysign(0.5 * (t + t / (t + 1.0)), x);
}

INLINE double cosh_short(double x) {
    const double e = exp_short(fabs(x));
    return 0.5 * (e + 1.0 / e);
}

/* log(2**k (1 + f)): (log(1 + f) - f) / f**2; 1e-9. */
INLINE double log_short_parts(double k, double f) {
    const double z = f * f, y = z * z;
    const double a = FUSED(FUSED(f, 0.2000005738825762, -0.24999971698140327), z, FUSED(f, 0.33333332792999204, -0.5000000005545165));
    const double b = FUSED(FUSED(f, 0.11037689258302641, -0.1243226805928479), z, FUSED(f, 0.14285624989907217, -0.16669006307204182));
    const double c = FUSED(z, -0.06020956499496654, FUSED(f, 0.10589881969443307, -0.10769472428395056));
    return FUSED(k, 0.6931471805599453, FUSED(z, FUSED(FUSED(c, y, b), y, a), f));
}

INLINE double log_short(double x) {
    return log_at_edges(x, log_short_parts(exponent_of(x), fraction_of(x)));
}

INLINE double log1p_short(double x) {
    const double u = 1.0 + x;
    const int near = fabs(x) < 0.25;
    const double k = near ? 0.0 : exponent_of(u), f = near ? x : fraction_of(u);
    return x == 0.0 ? x : log_at_edges(u, log_short_parts(k, f));
}

/* (sin(r) / r - 1) / r**2 by r**2, |r| <= pi / 2; 2e-10. */
INLINE double sin_short_of(double r) {
    const double z = r * r, y = z * z;
    const double a = FUSED(z, 0.008333332764254275, -0.16666666663853422);
    const double b = FUSED(z, 2.7536381067442063e-06, -0.00019841085469334525);
    const double p = FUSED(FUSED(y, -2.407828263191349e-08, b), y, a);
    return FUSED(r * z, p, r);
}

/* |x| <= 2**20. */
INLINE double sin_short(double x) {
    const double n = rounded(x * 0.3183098861837907);
    const double r = FUSED(-n, 2.0 * HALF_PI_1, x) - n * (2.0 * 6.077100506506192e-11);
    const double z = sin_short_of(r);
    return x == 0.0 ? x : bits_of(n + SHIFT) & 1 ? -z : z;
}

/* |x| <= 2**20; by the sine of what is between here and the nearest zero. */
INLINE double cos_short(double x) {
    const double n = rounded(x * 0.3183098861837907 + 0.5), m = n - 0.5;
    const double r = FUSED(-m, 2.0 * HALF_PI_1, x) - m * (2.0 * 6.077100506506192e-11);
    const double z = sin_short_of(r);
    return bits_of(n + SHIFT) & 1 ? -z : z;
}

INLINE double pow_short(double x, double y) {
    const double l = log_of_parts(exponent_of(fabs(x)), fraction_of(fabs(x)), 0.0);
    double v = y * l;
    v = v > 110.0 ? 110.0 : v;
    v = v < -110.0 ? -110.0 : v;
    return pow_at_edges(x, y, exp_short(v));
}

/* How many elements of a run are worked on at a time where they are copied. */
#define BLOCK 256

#define RUN(name)                                                                      \
    void pg_##name(double *out, const double *in, long n) {                            \
        for (long i = 0; i < n; i++) out[i] = name##_of(in[i]);                        \
    }

/* By the function of another name. */
#define RUN_BY(name, function)                                                         \
    void pg_##name(double *out, const double *in, long n) {                            \
        for (long i = 0; i < n; i++) out[i] = function##_of(in[i]);                    \
    }

/* A run with a number beyond `most` is computed by the function for all numbers. */
#define NEAR_BY(function, most)                                                        \
    uint64_t far = 0;                                                                  \
    const uint64_t end = bits_of(most);                                                \
    for (long i = 0; i < n; i++) far |= end - (bits_of(in[i]) & (UINT64_MAX >> 1));    \
    if (far >> 63) {                                                                   \
        for (long i = 0; i < n; i++) out[i] = function##_of(in[i]);                    \
        return;                                                                        \
    }

#define NEAR_RUN(name, function, most)                                                 \
    void pg_##name(double *out, const double *in, long n) {                            \
        NEAR_BY(function, most)                                                        \
        for (long i = 0; i < n; i++) out[i] = function##_near(in[i]);                  \
    }

/* Runs of numbers that are positive, not denormal, and no infinity. */
#define ORDINARY_RUN(name, function)                                                   \
    void pg_##name(double *out, const double *in, long n) {                            \
        uint64_t far = 0;                                                              \
        const uint64_t end = bits_of(DBL_MAX), begin = bits_of(0x1p-1022);             \
        for (long i = 0; i < n; i++) {                                                 \
            const uint64_t u = bits_of(in[i]);                                         \
            far |= u | (u - begin) | (end - u);                                        \
        }                                                                              \
        if (far >> 63)                                                                 \
            for (long i = 0; i < n; i++) out[i] = function##_of(in[i]);                \
        else                                                                           \
            for (long i = 0; i < n; i++) out[i] = function##_near(in[i]);              \
    }

/* In two loops: less has to wait for results that are on their way. */
#define REDUCED_LOOPS(name)                                                            \
    double r[BLOCK], lost[BLOCK], by[BLOCK];                                           \
    for (long s = 0; s < n; s += BLOCK) {                                              \
        const long m = n - s < BLOCK ? n - s : BLOCK;                                  \
        for (long i = 0; i < m; i++) {                                                 \
            const Reduced p = name##_reduced(in[s + i]);                               \
            r[i] = p.r, lost[i] = p.lost, by[i] = p.by;                                \
        }                                                                              \
        for (long i = 0; i < m; i++) {                                                 \
            const Reduced p = {r[i], lost[i], by[i]};                                  \
            out[s + i] = name##_of_reduced(p, in[s + i]);                              \
        }                                                                              \
    }

#define REDUCED_RUN(name)                                                              \
    void pg_##name(double *out, const double *in, long n) { REDUCED_LOOPS(name) }

#define NEAR_REDUCED_RUN(name, most)                                                   \
    void pg_##name(double *out, const double *in, long n) {                            \
        NEAR_BY(name, most)                                                            \
        REDUCED_LOOPS(name)                                                            \
    }

#define RUN_OF_FLOAT(name, function)                                                   \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        for (long i = 0; i < n; i++) out[i] = (float)function((double)in[i]);          \
    }

/* By the function for double. */
#define WIDE_RUN_OF_FLOAT(name, function)                                              \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        double x[BLOCK];                                                               \
        for (long s = 0; s < n; s += BLOCK) {                                          \
            const long m = n - s < BLOCK ? n - s : BLOCK;                              \
            for (long i = 0; i < m; i++) x[i] = (double)in[s + i];                     \
            pg_##function(x, x, m);                                                    \
            for (long i = 0; i < m; i++) out[s + i] = (float)x[i];                     \
        }                                                                              \
    }

/* Of runs with an element far out, which is rare, such elements are the C library's. */
#define PERIODIC(name, function)                                                       \
    void pg_##name(double *out, const double *in, long n) {                            \
        uint64_t far = 0;                                                              \
        const uint64_t end = bits_of(FAR_OUT);                                         \
        for (long i = 0; i < n; i++) far |= end - (bits_of(in[i]) & (UINT64_MAX >> 1)); \
        if (far >> 63)                                                                 \
            for (long i = 0; i < n; i++)                                               \
                out[i] = fabs(in[i]) <= FAR_OUT ? function##_of(in[i]) : name(in[i]);  \
        else                                                                           \
            for (long i = 0; i < n; i++) out[i] = function##_of(in[i]);                \
    }

/* Functions of two runs, whose elements are `by` apart: a number has zero. */
#define BLOCKS_OF_TWO(type, wide, text)                                                \
    wide a[BLOCK], b[BLOCK];                                                           \
    for (long s = 0; s < n; s += BLOCK) {                                              \
        const long m = n - s < BLOCK ? n - s : BLOCK;                                  \
        for (long i = 0; i < m; i++) a[i] = x[(s + i) * x_by];                         \
        for (long i = 0; i < m; i++) b[i] = y[(s + i) * y_by];                         \
        for (long i = 0; i < m; i++) out[s + i] = (type)text;                          \
    }

#define RUN_OF_TWO(name)                                                               \
    void pg_##name(double *out, const double *x, long x_by, const double *y, long y_by, \
                   long n) {                                                           \
        BLOCKS_OF_TWO(double, double, name##_of(a[i], b[i]))                           \
    }

#define RUN_OF_TWO_FLOATS(name, function)                                              \
    void pg_##name##f(float *out, const float *x, long x_by, const float *y, long y_by, \
                      long n) {                                                        \
        BLOCKS_OF_TWO(float, double, function(a[i], b[i]))                             \
    }

/* By the function for double. */
#define WIDE_RUN_OF_TWO_FLOATS(name, function)                                         \
    void pg_##name##f(float *out, const float *x, long x_by, const float *y, long y_by, \
                      long n) {                                                        \
        double a[BLOCK], b[BLOCK];                                                     \
        for (long s = 0; s < n; s += BLOCK) {                                          \
            const long m = n - s < BLOCK ? n - s : BLOCK;                              \
            for (long i = 0; i < m; i++) a[i] = (double)x[(s + i) * x_by];             \
            for (long i = 0; i < m; i++) b[i] = (double)y[(s + i) * y_by];             \
            pg_##function(a, a, 1, b, 1, m);                                           \
            for (long i = 0; i < m; i++) out[s + i] = (float)a[i];                     \
        }                                                                              \
    }

NEAR_RUN(exp, exp, EXP_NEAR)
RUN(expm1)
ORDINARY_RUN(log, log)
RUN(log1p)
NEAR_REDUCED_RUN(sigmoid, EXP_NEAR)
RUN(sinh)
RUN(cosh)
REDUCED_RUN(tanh)
RUN(asin)
RUN(acos)
RUN(atan)
RUN(asinh)
RUN(acosh)
RUN(atanh)
RUN(erf)
RUN(erfc)
PERIODIC(sin, sin)
PERIODIC(cos, cos)
PERIODIC(tan, tan)
RUN_OF_FLOAT(expm1, expm1_of_float)
RUN_OF_FLOAT(log1p, log1p_short)
RUN_OF_FLOAT(sinh, sinh_short)
RUN_OF_FLOAT(cosh, cosh_short)
WIDE_RUN_OF_FLOAT(asin, asin)
WIDE_RUN_OF_FLOAT(acos, acos)
WIDE_RUN_OF_FLOAT(atan, atan)
WIDE_RUN_OF_FLOAT(asinh, asinh)
WIDE_RUN_OF_FLOAT(acosh, acosh)
WIDE_RUN_OF_FLOAT(atanh, atanh)
WIDE_RUN_OF_FLOAT(erfc, erfc)
WIDE_RUN_OF_FLOAT(tan, tan)
RUN_OF_TWO(pow)
RUN_OF_TWO(atan2)
RUN_OF_TWO(logaddexp)
RUN_OF_TWO_FLOATS(pow, pow_short)
WIDE_RUN_OF_TWO_FLOATS(atan2, atan2)
WIDE_RUN_OF_TWO_FLOATS(logaddexp, logaddexp)
