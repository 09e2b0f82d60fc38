/* Elementary functions of runs of floats, in float: the second part of elementary.c, whose manner
 * this has. */

INLINE uint32_t bits_of_float(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

INLINE float float_of(uint32_t u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#define SHIFT_FLOAT 0x1.8p23f

/* The bits of 1. */
#define BITS_OF_ONE_FLOAT UINT32_C(0x3f800000)

#ifdef FP_FAST_FMAF
#define FUSEDF(x, y, z) fmaf(x, y, z)
#else
#define FUSEDF(x, y, z) ((x) * (y) + (z))
#endif

/* ln 2 in two parts, the first with eight zeros at its end. */
#define LN2_HIGH_FLOAT 0x1.62e4p-1f

#define LN2_LOW_FLOAT 0x1.7f7d1cp-20f

#define LOG2_E_FLOAT 1.44269504f

typedef struct { float high, low; } PairOfFloats;

typedef struct { float shifted, r, lost; } PowersOfFloat;

/* x = n ln 2 + r + lost with |r| <= 0.3466. */
INLINE PowersOfFloat float_powers(float x) {
    const float shifted = FUSEDF(x, LOG2_E_FLOAT, SHIFT_FLOAT), n = shifted - SHIFT_FLOAT;
    const float high = FUSEDF(-n, LN2_HIGH_FLOAT, x), rest = n * LN2_LOW_FLOAT, r = high - rest;
    const PowersOfFloat found = {shifted, r, (high - r) - rest};
    return found;
}

/* Up to here exponentials are not denormal, nor too large. */
#define EXP_NEAR_FLOAT 87.0f

/* exp(x + low), |x| <= EXP_NEAR_FLOAT: exp(r) - 1 - r is r**2 times a polynomial, 8e-9. */
INLINE float float_exp(float x, float low) {
    const PowersOfFloat p = float_powers(x);
    const float r = p.r, z = r * r, h = 1.0f + r;
    const float two = float_of((bits_of_float(p.shifted) << 23) + BITS_OF_ONE_FLOAT);
    const float a = FUSEDF(r, 0.16666577f, 0.5f), b = FUSEDF(r, 0.008363174f, 0.041666555f);
    const float rest = FUSEDF(z, FUSEDF(FUSEDF(z, 0.0013926178f, b), z, a), p.lost + low);
    return (h + (((1.0f - h) + r) + rest)) * two;
}

/* |x| <= EXP_NEAR_FLOAT; 0.75. */
INLINE float exp_near_float(float x) { return float_exp(x, 0.0f); }

INLINE float exp_all_float(float x) {
    const float far = (float)exp_short((double)x);
    return fabsf(x) <= EXP_NEAR_FLOAT ? exp_near_float(x) : far;
}

typedef struct { float over, over_low, under, under_low; } RatioOfFloats;

INLINE float float_value(RatioOfFloats q) {
    const float inverse = 1.0f / (q.under + q.under_low), z = q.over * inverse;
    const float rest = FUSEDF(-z, q.under, q.over) + FUSEDF(-z, q.under_low, q.over_low);
    return FUSEDF(rest, inverse, z);
}

typedef struct { float r, lost, by; } ReducedFloat;

/* As for double, and |x| up to 10. */
INLINE ReducedFloat tanh_reduced_float(float x) {
    const float a = fabsf(x) > 10.0f ? 10.0f : fabsf(x);
    const PowersOfFloat p = float_powers(a);
    const float by = float_of(BITS_OF_ONE_FLOAT - (bits_of_float(p.shifted) << 24));
    const ReducedFloat found = {p.r, p.lost, by};
    return found;
}

/* As for double; t by a rational function, 6e-11. All x; 0.78. */
INLINE float tanh_of_reduced_float(ReducedFloat p, float x) {
    const float r = p.r, z = r * r, plus = 1.0f + p.by, minus = 1.0f - p.by;
    const float plus_low = p.by - (plus - 1.0f), minus_low = (1.0f - minus) - p.by;
    const float odd = FUSEDF(r * z, 0.09515632f, p.lost);
    const float even = z * FUSEDF(z, 0.009496633f, 0.42848965f);
    const float over = FUSEDF(plus, r, minus), under = FUSEDF(minus, r, plus);
    const float over_rest = FUSEDF(plus, r, minus - over) + FUSEDF(plus_low, r, minus_low);
    const float under_rest = FUSEDF(minus, r, plus - under) + FUSEDF(minus_low, r, plus_low);
    const float over_low = FUSEDF(minus, even, over_rest);
    const float under_low = FUSEDF(plus, even, under_rest);
    const RatioOfFloats q = {over, FUSEDF(plus, odd, over_low), under,
                             FUSEDF(minus, odd, under_low)};
    return copysignf(float_value(q), x);
}

/* As for double: n up to 23, x up to 17.5. */
INLINE ReducedFloat sigmoid_reduced_float(float x) {
    const float a = x > 17.5f ? 17.5f : x, most = SHIFT_FLOAT + 23.0f;
    const int32_t u = (int32_t)bits_of_float(FUSEDF(a, LOG2_E_FLOAT, SHIFT_FLOAT));
    const int32_t end = (int32_t)bits_of_float(most);
    const uint32_t shifted = (uint32_t)(u < end ? u : end);
    const float n = float_of(shifted) - SHIFT_FLOAT;
    const float high = FUSEDF(-n, LN2_HIGH_FLOAT, a), rest = n * LN2_LOW_FLOAT, r = high - rest;
    const float lost = 0.5f * ((high - r) - rest);
    const ReducedFloat found = {0.5f * r, lost, float_of(BITS_OF_ONE_FLOAT - (shifted << 23))};
    return found;
}

/* As for double; t by a rational function, 2e-9; 0.72. */
INLINE float sigmoid_of_reduced_float(ReducedFloat p, float x) {
    const float r = p.r, z = r * r, plus = 1.0f + p.by, minus = 1.0f - p.by;
    const float odd = FUSEDF(r * z, 0.06660952f, p.lost), even = z * 0.39994278f;
    const float over = 1.0f + r, under = FUSEDF(minus, r, plus);
    const float under_low = FUSEDF(minus, r, plus - under) + (1.0f - (plus - p.by));
    const RatioOfFloats q = {over, ((1.0f - over) + r) + (odd + even), under,
                             FUSEDF(minus, odd, FUSEDF(plus, even, under_low))};
    (void)x;
    return float_value(q);
}

INLINE float sigmoid_all_float(float x) {
    const float far = (float)exp_short((double)x);
    const float near = sigmoid_of_reduced_float(sigmoid_reduced_float(x), x);
    return x < -EXP_NEAR_FLOAT ? far : near;
}

/* erf(x) / x - 1 by a polynomial in x**2, of coefficients that are as good as floats can be, up to
 * 1; 1e-9. */
INLINE float erf_near_float(float x) {
    const float z = x * x, y = z * z;
    const float a = FUSEDF(z, -0.026865171f, 0.1128378f);
    const float b = FUSEDF(z, -0.0008462355f, 0.0052198842f);
    const float t = FUSEDF(y, FUSEDF(y, FUSEDF(z, -9.08895e-06f, 0.00011081798f), b), a);
    const float p = FUSEDF(y, t, FUSEDF(z, -0.37612638f, 0.12837917f));
    return FUSEDF(x, p, x);
}

/* From there 1 - exp(-|x| p): p by a polynomial in |x| up to 4; 1e-9. */
INLINE PairOfFloats erf_exponent(float x) {
    const float c = fabsf(x) > 4.0f ? 4.0f : fabsf(x), z = c * c;
    float p = FUSEDF(c, 1.7599063e-05f, -0.0003874259f);
    p = FUSEDF(z, p, FUSEDF(c, 0.0039085665f, -0.02433131f));
    p = FUSEDF(z, p, FUSEDF(c, 0.10690425f, 0.6347445f));
    const float q = FUSEDF(c, p, 1.1287493f), lost = FUSEDF(c, p, 1.1287493f - q);
    const PairOfFloats found = {-c * q, FUSEDF(-c, lost, FUSEDF(-c, q, c * q))};
    return found;
}

/* All x; 0.94. In two loops. */
#define ERF_RUN_OF_FLOATS(name)                                                        \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        float near[BLOCK], high[BLOCK], low[BLOCK];                                    \
        for (long s = 0; s < n; s += BLOCK) {                                          \
            const long m = n - s < BLOCK ? n - s : BLOCK;                              \
            for (long i = 0; i < m; i++) {                                             \
                const PairOfFloats v = name##_exponent(in[s + i]);                     \
                high[i] = v.high, low[i] = v.low, near[i] = name##_near_float(in[s + i]); \
            }                                                                          \
            for (long i = 0; i < m; i++) {                                             \
                const float x = in[s + i], far = 1.0f - float_exp(high[i], low[i]);    \
                out[s + i] = fabsf(x) < 1.0f ? near[i] : copysignf(far, x);            \
            }                                                                          \
        }                                                                              \
    }

/* By double, as logarithms to other bases are quotients of these. 0.51. */
INLINE float log_near_float(float x) {
    const double y = (double)x;
    return (float)log_short_parts(exponent_of(y), fraction_of(y));
}

INLINE float log_all_float(float x) { return (float)log_short((double)x); }

/* Runs of numbers that are positive, not denormal, and no infinity. */
#define ORDINARY_RUN_OF_FLOATS(name, function)                                         \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        uint32_t far = 0;                                                              \
        const uint32_t end = bits_of_float(FLT_MAX), begin = bits_of_float(0x1p-126f); \
        for (long i = 0; i < n; i++) {                                                 \
            const uint32_t u = bits_of_float(in[i]);                                   \
            far |= u | (u - begin) | (end - u);                                        \
        }                                                                              \
        if (far >> 31)                                                                 \
            for (long i = 0; i < n; i++) out[i] = function##_all_float(in[i]);         \
        else                                                                           \
            for (long i = 0; i < n; i++) out[i] = function##_near_float(in[i]);        \
    }

#define RUN_OF_FLOATS(name, function)                                                  \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        for (long i = 0; i < n; i++) out[i] = function##_float(in[i]);                 \
    }

/* A run with a number beyond `most` is computed by the function for all numbers. */
#define NEAR_FLOATS_BY(function, most)                                                 \
    uint32_t far = 0;                                                                  \
    const uint32_t end = bits_of_float(most);                                          \
    for (long i = 0; i < n; i++) far |= end - (bits_of_float(in[i]) & (UINT32_MAX >> 1)); \
    if (far >> 31) {                                                                   \
        for (long i = 0; i < n; i++) out[i] = function##_all_float(in[i]);             \
        return;                                                                        \
    }

#define NEAR_RUN_OF_FLOATS(name, function, most)                                       \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        NEAR_FLOATS_BY(function, most)                                                 \
        for (long i = 0; i < n; i++) out[i] = function##_near_float(in[i]);            \
    }

/* Of runs with an element far out such elements are the C library's; the others go by double. */
#define PERIODIC_OF_FLOATS(name, function)                                             \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        uint32_t far = 0;                                                              \
        const uint32_t end = bits_of_float(0x1p20f);                                   \
        for (long i = 0; i < n; i++) far |= end - (bits_of_float(in[i]) & (UINT32_MAX >> 1)); \
        if (far >> 31)                                                                 \
            for (long i = 0; i < n; i++)                                               \
                out[i] = fabsf(in[i]) <= 0x1p20f ? (float)function((double)in[i])      \
                                                 : name##f(in[i]);                     \
        else                                                                           \
            for (long i = 0; i < n; i++) out[i] = (float)function((double)in[i]);      \
    }

#define REDUCED_FLOATS(name)                                                           \
    float r[BLOCK], lost[BLOCK], by[BLOCK];                                            \
    for (long s = 0; s < n; s += BLOCK) {                                              \
        const long m = n - s < BLOCK ? n - s : BLOCK;                                  \
        for (long i = 0; i < m; i++) {                                                 \
            const ReducedFloat p = name##_reduced_float(in[s + i]);                    \
            r[i] = p.r, lost[i] = p.lost, by[i] = p.by;                                \
        }                                                                              \
        for (long i = 0; i < m; i++) {                                                 \
            const ReducedFloat p = {r[i], lost[i], by[i]};                             \
            out[s + i] = name##_of_reduced_float(p, in[s + i]);                        \
        }                                                                              \
    }

#define REDUCED_RUN_OF_FLOATS(name)                                                    \
    void pg_##name##f(float *out, const float *in, long n) { REDUCED_FLOATS(name) }

#define NEAR_REDUCED_RUN_OF_FLOATS(name, most)                                         \
    void pg_##name##f(float *out, const float *in, long n) {                           \
        NEAR_FLOATS_BY(name, most)                                                     \
        REDUCED_FLOATS(name)                                                           \
    }

NEAR_RUN_OF_FLOATS(exp, exp, EXP_NEAR_FLOAT)
REDUCED_RUN_OF_FLOATS(tanh)
NEAR_REDUCED_RUN_OF_FLOATS(sigmoid, EXP_NEAR_FLOAT)
ERF_RUN_OF_FLOATS(erf)
ORDINARY_RUN_OF_FLOATS(log, log)
PERIODIC_OF_FLOATS(sin, sin_short)
PERIODIC_OF_FLOATS(cos, cos_short)
