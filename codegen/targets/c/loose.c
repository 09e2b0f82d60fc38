/* Elementary functions within four units in the last place: the last part of elementary.c, whose
 * manner this has. They take the place of those of the same name where they are not to be exact,
 * and save what carries numbers in two parts; a function is here where that takes 1.2 times less
 * time at the least. NaNs, infinities and zeros are as there. */

/* As tanh_reduced and tanh_of_reduced, with numbers in one part. All x; 3.6. */
INLINE double loose_tanh_of(double x) {
    const double a = fabs(x) > 20.0 ? 20.0 : fabs(x);
    const double shifted = FUSED(a, LOG2_E, SHIFT), n = shifted - SHIFT;
    const double r = FUSED(-n, LN2_LOW, FUSED(-n, LN2_HIGH, a)), z = r * r;
    const double by = double_of(BITS_OF_ONE - (bits_of(shifted) << 53));
    const double above = FUSED(z, FUSED(z, 0.0020181821349107344, 0.12119090177826702), 1.0);
    double below = FUSED(z, 9.599834311524616e-05, 0.020192927172125275);
    below = FUSED(z, FUSED(z, below, 0.45452423511160034), 1.0);
    const double odd = r * above, up = FUSED(r, above, below), down = FUSED(-r, above, below);
    const double over = by == 1.0 ? odd + odd : FUSED(-by, down, up);
    return copysign(over / FUSED(by, down, up), x);
}

/* As sigmoid_reduced and sigmoid_of_reduced, likewise; 2.5. */
INLINE double loose_sigmoid_near(double x) {
    const double a = x > 40.0 ? 40.0 : x;
    const double shifted = FUSED(a, LOG2_E, SHIFT), n = shifted - SHIFT;
    const double r = 0.5 * FUSED(-n, LN2_LOW, FUSED(-n, LN2_HIGH, a)), z = r * r;
    const double by = double_of(BITS_OF_ONE - (bits_of(shifted) << 52));
    const double above = FUSED(z, FUSED(z, 0.0010575593569877527, 0.1111014804305465), 1.0);
    const double below = FUSED(z, FUSED(z, 0.01586916394563624, 0.44443481376387917), 1.0);
    const double up = FUSED(r, above, below), down = FUSED(-r, above, below);
    return up / FUSED(by, down, up);
}

INLINE double loose_sigmoid_of(double x) {
    const double far = exp_of(x), near = loose_sigmoid_near(x);
    return x < -EXP_NEAR ? far : near;
}

/* sin(r) for |r| <= pi / 2; 4e-17. */
INLINE double loose_sine(double r) {
    const double z = r * r, y = z * z;
    const double a = FUSED(z, 0.008333333333333316, -0.16666666666666666);
    const double b = FUSED(z, 2.7557319219163205e-06, -0.00019841269841254974);
    const double c = FUSED(z, 1.605897731221174e-10, -2.505210761699229e-08);
    const double d = FUSED(z, 2.7314446665270123e-15, -7.643970288741763e-13);
    return FUSED(r * z, FUSED(FUSED(FUSED(y, d, c), y, b), y, a), r);
}

/* x - n pi. */
INLINE double loose_rest(double x, double n) {
    const double r = FUSED(-n, 2.0 * HALF_PI_2, FUSED(-n, 2.0 * HALF_PI_1, x));
    return FUSED(-n, 2.0 * HALF_PI_2_REST, r);
}

/* |x| <= 2**20; 2.5, and 3.4 next to the zeros. */
INLINE double loose_sin_of(double x) {
    const double shifted = FUSED(x, 0.3183098861837907, SHIFT);
    const double z = loose_sine(loose_rest(x, shifted - SHIFT));
    return x == 0.0 ? x : double_of(bits_of(z) ^ (bits_of(shifted) << 63));
}

/* By the sine of what is between here and the nearest zero. |x| <= 2**20; as for the
 * sine. */
INLINE double loose_cos_of(double x) {
    const double shifted = FUSED(x, 0.3183098861837907, 0.5) + SHIFT;
    const double z = loose_sine(loose_rest(x, (shifted - SHIFT) - 0.5));
    return double_of(bits_of(z) ^ (bits_of(shifted) << 63));
}

/* |x| <= EXP_NEAR_FLOAT; 1.1. */
INLINE float loose_exp_near_float(float x) {
    const float shifted = FUSEDF(x, LOG2_E_FLOAT, SHIFT_FLOAT), n = shifted - SHIFT_FLOAT;
    const float r = FUSEDF(-n, LN2_LOW_FLOAT, FUSEDF(-n, LN2_HIGH_FLOAT, x)), z = r * r;
    const float a = FUSEDF(r, 0.16666577f, 0.5f), b = FUSEDF(r, 0.008363174f, 0.041666555f);
    const float rest = FUSEDF(FUSEDF(z, 0.0013926178f, b), z, a);
    const float two = float_of((bits_of_float(shifted) << 23) + BITS_OF_ONE_FLOAT);
    return (1.0f + FUSEDF(z, rest, r)) * two;
}

INLINE float loose_exp_all_float(float x) {
    const float far = (float)exp_short((double)x);
    return fabsf(x) <= EXP_NEAR_FLOAT ? loose_exp_near_float(x) : far;
}

/* All x; 3.2. */
INLINE float loose_tanh_float(float x) {
    const float c = fabsf(x) > 10.0f ? 10.0f : fabsf(x);
    const float shifted = FUSEDF(c, LOG2_E_FLOAT, SHIFT_FLOAT), n = shifted - SHIFT_FLOAT;
    const float r = FUSEDF(-n, LN2_LOW_FLOAT, FUSEDF(-n, LN2_HIGH_FLOAT, c)), z = r * r;
    const float by = float_of(BITS_OF_ONE_FLOAT - (bits_of_float(shifted) << 24));
    const float even = FUSEDF(z, FUSEDF(z, 0.009496633f, 0.42848965f), 1.0f);
    const float above = FUSEDF(z, 0.09515632f, 1.0f), odd = r * above;
    const float up = FUSEDF(r, above, even), down = FUSEDF(-r, above, even);
    const float over = by == 1.0f ? odd + odd : FUSEDF(-by, down, up);
    return copysignf(over / FUSEDF(by, down, up), x);
}

/* |x| <= EXP_NEAR_FLOAT; 2.5. */
INLINE float loose_sigmoid_near_float(float x) {
    const float c = x > 18.0f ? 18.0f : x;
    const float shifted = FUSEDF(c, LOG2_E_FLOAT, SHIFT_FLOAT), n = shifted - SHIFT_FLOAT;
    const float twice = FUSEDF(-n, LN2_LOW_FLOAT, FUSEDF(-n, LN2_HIGH_FLOAT, c));
    const float r = 0.5f * twice, z = r * r;
    const float by = float_of(BITS_OF_ONE_FLOAT - (bits_of_float(shifted) << 23));
    const float above = FUSEDF(z, 0.06660952f, 1.0f), below = FUSEDF(z, 0.39994278f, 1.0f);
    const float up = FUSEDF(r, above, below), down = FUSEDF(-r, above, below);
    return up / FUSEDF(by, down, up);
}

INLINE float loose_sigmoid_all_float(float x) {
    const float far = (float)exp_short((double)x), near = loose_sigmoid_near_float(x);
    return x < -EXP_NEAR_FLOAT ? far : near;
}

/* The k and the f of a positive number 2**k (1 + f) that is not denormal, as for double. */
#define ROOT_HALF_FLOAT UINT32_C(0x3f3504f3)

/* log(1 + f) is f - f**2 / 2 + s (f**2 / 2 + a polynomial in s**2), s = f / (2 + f); 1e-9. Numbers
 * that are not denormal; 0.84. */
INLINE float loose_log_near_float(float x) {
    const uint32_t u = bits_of_float(x) + (BITS_OF_ONE_FLOAT - ROOT_HALF_FLOAT);
    const float k = float_of((u >> 23) | UINT32_C(0x4b000000)) - (0x1p23f + 127.0f);
    const float f = float_of((u & UINT32_C(0x007fffff)) + ROOT_HALF_FLOAT) - 1.0f;
    const float s = f / (2.0f + f), z = s * s, half = 0.5f * f * f;
    const float p = FUSEDF(z, FUSEDF(z, 0.29580398f, 0.3998877f), 0.6666669f);
    const float rest = FUSEDF(s, FUSEDF(z, p, half), k * LN2_LOW_FLOAT);
    const float whole = k * LN2_HIGH_FLOAT, sum = whole + f;
    return sum + (((whole - sum) + f) - (half - rest));
}

INLINE float loose_log_all_float(float x) {
    const float far = (float)log_short((double)x);
    return x >= 0x1p-126f && x < INFINITY ? loose_log_near_float(x) : far;
}

RUN_BY(tanh, loose_tanh)
NEAR_RUN(sigmoid, loose_sigmoid, EXP_NEAR)
RUN_OF_FLOATS(tanh, loose_tanh)
NEAR_RUN_OF_FLOATS(exp, loose_exp, EXP_NEAR_FLOAT)
NEAR_RUN_OF_FLOATS(sigmoid, loose_sigmoid, EXP_NEAR_FLOAT)
PERIODIC(sin, loose_sin)
PERIODIC(cos, loose_cos)
ORDINARY_RUN_OF_FLOATS(log, loose_log)
