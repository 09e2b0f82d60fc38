/* Functions of runs of elements, and products of matrices: the part of native kernels that is the
 * same for all of them.
 *
 * Loops have no branches, so that compilers vectorise them. Polynomials and reductions of
 * arguments are those of the sources named; what has none here is the C library's, an element at a
 * time. Results do not depend on where in a run an element stands. */

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t bits_of(double x) {
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double double_of(uint64_t u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* To add it rounds to a whole number, which is then in the last bits. */
#define SHIFT 0x1.8p52

/* 2**n for a whole n between -1022 and 1023. */
static inline double power_of_two(double n) {
    return double_of((bits_of(n + SHIFT) << 52) + UINT64_C(0x3ff0000000000000));
}

/* ln 2 in two parts, the first with zeros at its end (fdlibm, e_exp.c). */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10
#define LOG2_E 1.44269504088896338700e+00

/* (exp(r) - 1 - r) / r**2 for |r| <= ln(2) / 2, by the Taylor series: what is left out is below
 * 2**-57 of the whole. */
static inline double exp_rest(double r) {
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    return p * r + 0.5;
}

static inline double exp_of(double x) {
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    const double n = (x * LOG2_E + SHIFT) - SHIFT;
    const double high = x - n * LN2_HIGH, low = n * LN2_LOW;
    const double r = high - low;
    const double lost = (high - r) - low;
    const double y = 1.0 + (r + (r * r * exp_rest(r) + lost));
    /* In two steps, as 2**n alone may be no number. */
    const double half = (n * 0.5 + SHIFT) - SHIFT;
    return y * power_of_two(half) * power_of_two(n - half);
}

static inline double expm1_of(double x) {
    const double given = x;
    x = x > 710.0 ? 710.0 : x;
    x = x < -40.0 ? -40.0 : x;
    const double n = (x * LOG2_E + SHIFT) - SHIFT;
    const double high = x - n * LN2_HIGH, low = n * LN2_LOW;
    const double r = high - low;
    const double lost = (high - r) - low;
    const double y = r + (r * r * exp_rest(r) + (lost + lost * r));
    const double half = (n * 0.5 + SHIFT) - SHIFT;
    const double small = n > 60.0 ? 60.0 : n;
    const double z = (y + (1.0 - power_of_two(-small))) * power_of_two(half) * power_of_two(n - half);
    return given == 0.0 ? given : z;
}

/* log(1 + f) for the k and f of x = 2**k (1 + f), and a correction c (fdlibm, e_log.c and
 * s_log1p.c: 2 atanh(s), s = f / (2 + f)). */
static inline double log_of_parts(double k, double f, double c) {
    const double s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
    double p = 1.479819860511658591e-01;
    p = p * z + 1.531383769920937332e-01;
    p = p * z + 1.818357216161805012e-01;
    p = p * z + 2.222219843214978396e-01;
    p = p * z + 2.857142874366239149e-01;
    p = p * z + 3.999999999940941908e-01;
    p = p * z + 6.666666666666735130e-01;
    return k * LN2_HIGH - ((h - (s * (h + z * p) + (k * LN2_LOW + c))) - f);
}

#define ROOT_HALF UINT64_C(0x3fe6a09e667f3bcd)

/* The k and the f of a positive number that is not denormal. */
static inline double exponent_of(double x) {
    const uint64_t u = bits_of(x) + (UINT64_C(0x3ff0000000000000) - ROOT_HALF);
    return double_of((u >> 52) | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023.0);
}

static inline double fraction_of(double x) {
    const uint64_t u = bits_of(x) + (UINT64_C(0x3ff0000000000000) - ROOT_HALF);
    return double_of((u & UINT64_C(0x000fffffffffffff)) + ROOT_HALF) - 1.0;
}

static inline double log_of(double x) {
    const int tiny = x < 0x1p-1022;
    const double y = tiny ? x * 0x1p54 : x;
    const double k = exponent_of(y) - (tiny ? 54.0 : 0.0);
    double z = log_of_parts(k, fraction_of(y), 0.0);
    z = x == INFINITY ? x : z;
    z = x == 0.0 ? -INFINITY : z;
    z = x < 0.0 ? (double)NAN : z;
    return x != x ? x : z;
}

static inline double log1p_of(double x) {
    const double u = 1.0 + x;
    const double k = exponent_of(u);
    const double c = (k >= 2.0 ? 1.0 - (u - x) : x - (u - 1.0)) / u;
    double z = log_of_parts(k, fraction_of(u), c);
    z = x == INFINITY ? x : z;
    z = x == -1.0 ? -INFINITY : z;
    z = x < -1.0 ? (double)NAN : z;
    return x == 0.0 || x != x ? x : z;
}

static inline double tanh_of(double x) {
    const double a = fabs(x), t = expm1_of(a + a);
    const double near = t / (t + 2.0), far = 1.0 - 2.0 / (t + 2.0);
    const double z = a < 0.5 ? near : far;
    return x != x ? x : copysign(z, x);
}

static inline double sigmoid_of(double x) {
    const double e = exp_of(-fabs(x)), y = 1.0 / (1.0 + e);
    return x != x ? x : x >= 0.0 ? y : e * y;
}

/* Beyond this the reduction of arguments below is no longer exact. */
#define FAR_OUT 0x1p20

/* x - n pi/2, in two parts (fdlibm, e_rem_pio2.c, its second of three steps). */
#define HALF_PI_1 1.57079632673412561417e+00
#define HALF_PI_2 6.07710050630396597660e-11
#define HALF_PI_2_REST 2.02226624879595063154e-21

typedef struct { double n, high, low; } Quarter;

static inline Quarter quarter_of(double x) {
    const double n = (x * 6.36619772367581382433e-01 + SHIFT) - SHIFT;
    const double t = x - n * HALF_PI_1;
    const double w = n * HALF_PI_2;
    const double r = t - w;
    const double v = n * HALF_PI_2_REST - ((t - r) - w);
    const double high = r - v;
    const Quarter found = {n, high, (r - high) - v};
    return found;
}

/* fdlibm, k_sin.c and k_cos.c. */
static inline double sin_near(double x, double low) {
    const double z = x * x, v = z * x;
    double p = 1.58969099521155010221e-10;
    p = p * z - 2.50507602534068634195e-08;
    p = p * z + 2.75573137070700676789e-06;
    p = p * z - 1.98412698298579493134e-04;
    p = p * z + 8.33333333332248946124e-03;
    return x - ((z * (0.5 * low - v * p) - low) + v * 1.66666666666666324348e-01);
}

static inline double cos_near(double x, double low) {
    const double z = x * x;
    double p = -1.13596475577881948265e-11;
    p = p * z + 2.08757232129817482790e-09;
    p = p * z - 2.75573143513906633035e-07;
    p = p * z + 2.48015872894767294178e-05;
    p = p * z - 1.38888888888741095749e-03;
    p = p * z + 4.16666666666666019037e-02;
    const double h = 0.5 * z, w = 1.0 - h;
    return w + (((1.0 - w) - h) + (z * (z * p) - x * low));
}

static inline double sin_of(double x) {
    const Quarter q = quarter_of(x);
    const uint64_t n = bits_of(q.n + SHIFT);
    const double s = sin_near(q.high, q.low), c = cos_near(q.high, q.low);
    const double z = n & 1 ? c : s;
    return x == 0.0 ? x : n & 2 ? -z : z;
}

static inline double cos_of(double x) {
    const Quarter q = quarter_of(x);
    const uint64_t n = bits_of(q.n + SHIFT);
    const double s = sin_near(q.high, q.low), c = cos_near(q.high, q.low);
    const double z = n & 1 ? s : c;
    return (n + 1) & 2 ? -z : z;
}

#define VECTOR(name)                                                                   \
    void pg_##name(double *out, const double *in, long n) {                            \
        for (long i = 0; i < n; i++) out[i] = name##_of(in[i]);                        \
    }                                                                                  \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        for (long i = 0; i < n; i++) out[i] = (float)name##_of((double)in[i]);         \
    }

VECTOR(exp)
VECTOR(expm1)
VECTOR(log)
VECTOR(log1p)
VECTOR(tanh)
VECTOR(sigmoid)

/* Runs with an element far out, which is rare, are the C library's. */
#define PERIODIC(name)                                                                 \
    void pg_##name(double *out, const double *in, long n) {                            \
        int far = 0;                                                                   \
        for (long i = 0; i < n; i++) far |= !(fabs(in[i]) <= FAR_OUT);                 \
        if (far)                                                                       \
            for (long i = 0; i < n; i++)                                               \
                out[i] = fabs(in[i]) <= FAR_OUT ? name##_of(in[i]) : name(in[i]);      \
        else                                                                           \
            for (long i = 0; i < n; i++) out[i] = name##_of(in[i]);                    \
    }                                                                                  \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        for (long i = 0; i < n; i++)                                                   \
            out[i] = fabsf(in[i]) <= 0x1p20f ? (float)name##_of(in[i]) : name##f(in[i]); \
    }

PERIODIC(sin)
PERIODIC(cos)

#define LIBRARY(name)                                                                  \
    void pg_##name(double *out, const double *in, long n) {                            \
        for (long i = 0; i < n; i++) out[i] = name(in[i]);                             \
    }                                                                                  \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        for (long i = 0; i < n; i++) out[i] = name##f(in[i]);                          \
    }

LIBRARY(tan)
LIBRARY(sinh)
LIBRARY(cosh)
LIBRARY(asin)
LIBRARY(acos)
LIBRARY(atan)
LIBRARY(asinh)
LIBRARY(acosh)
LIBRARY(atanh)
LIBRARY(erf)
LIBRARY(erfc)

/* Reductions of n elements that are `by` apart; in eight runs beside each other, which are
 * combined in pairs. */
#define REDUCTION(kind, type, name, first, combine)                                    \
    type pg_##kind##_##name(const type *in, long by, long n) {                         \
        type a[8];                                                                     \
        for (int k = 0; k < 8; k++) a[k] = first;                                      \
        long i = 0;                                                                    \
        if (by == 1)                                                                   \
            for (; i + 8 <= n; i += 8)                                                 \
                for (int k = 0; k < 8; k++) a[k] = combine(a[k], in[i + k]);           \
        for (; i < n; i++) a[i & 7] = combine(a[i & 7], in[i * by]);                   \
        for (int k = 0; k < 8; k += 2) a[k] = combine(a[k], a[k + 1]);                 \
        a[0] = combine(a[0], a[2]);                                                    \
        a[4] = combine(a[4], a[6]);                                                    \
        return combine(a[0], a[4]);                                                    \
    }

#define SUM(x, y) ((x) + (y))
/* A NaN wins, and stays. */
#define GREATER(x, y) ((y) > (x) || (y) != (y) ? (y) : (x))
#define SMALLER(x, y) ((y) < (x) || (y) != (y) ? (y) : (x))

/* `first` times n elements, in order: what parts of a product are may overflow where it does not. */
#define PRODUCT_IN_ORDER(type, name)                                                   \
    type pg_prod_##name(const type *in, long by, long n, type first) {                 \
        for (long i = 0; i < n; i++) first *= in[i * by];                              \
        return first;                                                                  \
    }

#define REDUCTIONS(type, name, least, most)                                            \
    REDUCTION(sum, type, name, 0, SUM)                                                 \
    PRODUCT_IN_ORDER(type, name)                                                       \
    REDUCTION(max, type, name, least, GREATER)                                         \
    REDUCTION(min, type, name, most, SMALLER)

REDUCTIONS(double, f64, -INFINITY, INFINITY)
REDUCTIONS(float, f32, -INFINITY, INFINITY)

/* The order does not matter to whole numbers. */
#undef REDUCTION
#define REDUCTION(kind, type, name, first, combine)                                    \
    type pg_##kind##_##name(const type *in, long by, long n) {                         \
        type a = first;                                                                \
        for (long i = 0; i < n; i++) a = combine(a, in[i * by]);                       \
        return a;                                                                      \
    }

REDUCTIONS(int64_t, i64, INT64_MIN, INT64_MAX)
REDUCTIONS(int32_t, i32, INT32_MIN, INT32_MAX)
REDUCTIONS(int16_t, i16, INT16_MIN, INT16_MAX)
REDUCTIONS(int8_t, i8, INT8_MIN, INT8_MAX)
REDUCTIONS(uint64_t, u64, 0, UINT64_MAX)
REDUCTIONS(uint32_t, u32, 0, UINT32_MAX)
REDUCTIONS(uint16_t, u16, 0, UINT16_MAX)
REDUCTIONS(uint8_t, u8, 0, UINT8_MAX)

/* Whether a loop that may be long is to end, where somebody can tell. */
int (*pg_stop)(void);
