/* Elementary functions of runs of floats, in float: the second part of elementary.c, whose manner
 * this has. Errors are the largest of all floats, in units in the last place. */

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
#define FUSED_FLOAT(x, y, z) fmaf(x, y, z)
#else
#define FUSED_FLOAT(x, y, z) ((x) * (y) + (z))
#endif

/* ln 2 in two parts, the first with eight zeros at its end. */
#define LN2_HIGH_FLOAT 0x1.62e4p-1f

#define LN2_LOW_FLOAT 0x1.7f7d1cp-20f

#define LOG2_E_FLOAT 1.44269504f

typedef struct { float high, low; } PairOfFloats;

typedef struct { float shifted, r, lost; } PowersOfFloat;

/* x = n ln 2 + r + lost with |r| <= 0.3466. */
INLINE PowersOfFloat float_powers(float x) {
    const float shifted = FUSED_FLOAT(x, LOG2_E_FLOAT, SHIFT_FLOAT), n = shifted - SHIFT_FLOAT;
    const float high = FUSED_FLOAT(-n, LN2_HIGH_FLOAT, x), rest = n * LN2_LOW_FLOAT, r = high - rest;
    const PowersOfFloat found = {shifted, r, (high - r) - rest};
    return found;
}

/* Up to here exponentials are not denormal, nor too large. */
#define EXP_NEAR_FLOAT 87.0f

/* exp(r) - 1 - r is r**2 times a polynomial, 8e-9. |x| <= EXP_NEAR_FLOAT; 0.87. */
INLINE float exp_near_float(float x) {
    const PowersOfFloat p = float_powers(x);
    const float r = p.r, z = r * r, h = 1.0f + r;
    const float a = FUSED_FLOAT(r, 0.16666577f, 0.5f), b = FUSED_FLOAT(r, 0.008363174f, 0.041666555f);
    const float rest = FUSED_FLOAT(z, FUSED_FLOAT(FUSED_FLOAT(z, 0.0013926178f, b), z, a), p.lost);
    return (h + (((1.0f - h) + r) + rest)) * float_of((bits_of_float(p.shifted) << 23) + BITS_OF_ONE_FLOAT);
}

INLINE float exp_all_float(float x) {
    const float far = (float)exp_short((double)x);
    return fabsf(x) <= EXP_NEAR_FLOAT ? exp_near_float(x) : far;
}

typedef struct { float over, over_low, under, under_low; } RatioOfFloats;

INLINE float float_value(RatioOfFloats q) {
    const float inverse = 1.0f / (q.under + q.under_low), z = q.over * inverse;
    const float rest = FUSED_FLOAT(-z, q.under, q.over) + FUSED_FLOAT(-z, q.under_low, q.over_low);
    return FUSED_FLOAT(rest, inverse, z);
}

typedef struct { float r, lost, by; } ReducedFloat;

/* As for double, and |x| up to 10. */
INLINE ReducedFloat tanh_reduced_float(float x) {
    const float a = fabsf(x) > 10.0f ? 10.0f : fabsf(x);
    const PowersOfFloat p = float_powers(a);
    const ReducedFloat found = {p.r, p.lost, float_of(BITS_OF_ONE_FLOAT - (bits_of_float(p.shifted) << 24))};
    return found;
}

/* As for double; t by a rational function, 6e-11. */
INLINE float tanh_of_reduced_float(ReducedFloat p, float x) {
    const float r = p.r, z = r * r, plus = 1.0f + p.by, minus = 1.0f - p.by;
    const float plus_low = p.by - (plus - 1.0f), minus_low = (1.0f - minus) - p.by;
    const float odd = FUSED_FLOAT(r * z, 0.09515632f, p.lost);
    const float even = z * FUSED_FLOAT(z, 0.009496633f, 0.42848965f);
    const float over = FUSED_FLOAT(plus, r, minus), under = FUSED_FLOAT(minus, r, plus);
    const float over_low = FUSED_FLOAT(minus, even, FUSED_FLOAT(plus, r, minus - over) + FUSED_FLOAT(plus_low, r, minus_low));
    const float under_low = FUSED_FLOAT(plus, even, FUSED_FLOAT(minus, r, plus - under) + FUSED_FLOAT(minus_low, r, plus_low));
    const RatioOfFloats q = {over, FUSED_FLOAT(plus, odd, over_low), under,
                             FUSED_FLOAT(minus, odd, under_low)};
    return copysignf(float_value(q), x);
}

/* As for double: n up to 23, x up to 17.5. */
INLINE ReducedFloat sigmoid_reduced_float(float x) {
    const float a = x > 17.5f ? 17.5f : x, most = SHIFT_FLOAT + 23.0f;
    const int32_t u = (int32_t)bits_of_float(FUSED_FLOAT(a, LOG2_E_FLOAT, SHIFT_FLOAT));
    const int32_t end = (int32_t)bits_of_float(most);
    const uint32_t shifted = (uint32_t)(u < end ? u : end);
    const float n = float_of(shifted) - SHIFT_FLOAT;
    const float high = FUSED_FLOAT(-n, LN2_HIGH_FLOAT, a), rest = n * LN2_LOW_FLOAT, r = high - rest;
    const float lost = 0.5f * ((high - r) - rest);
    const ReducedFloat found = {0.5f * r, lost, float_of(BITS_OF_ONE_FLOAT - (shifted << 23))};
    return found;
}

/* As for double; t by a rational function, 2e-9. */
INLINE float sigmoid_of_reduced_float(ReducedFloat p, float x) {
    const float r = p.r, z = r * r, plus = 1.0f + p.by, minus = 1.0f - p.by;
    const float odd = FUSED_FLOAT(r * z, 0.06660952f, p.lost), even = z * 0.39994278f;
    const float over = 1.0f + r, under = FUSED_FLOAT(minus, r, plus);
    const float under_low = FUSED_FLOAT(minus, r, plus - under) + (1.0f - (plus - p.by));
    const RatioOfFloats q = {over, ((1.0f - over) + r) + (odd + even), under,
                             FUSED_FLOAT(minus, odd, FUSED_FLOAT(plus, even, under_low))};
    (void)x;
    return float_value(q);
}

INLINE float sigmoid_all_float(float x) {
    const float far = (float)exp_short((double)x);
    const float near = sigmoid_of_reduced_float(sigmoid_reduced_float(x), x);
    return x < -EXP_NEAR_FLOAT ? far : near;
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
