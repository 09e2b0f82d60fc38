/* Functions of elements as NumPy has them: parts of native kernels, taken as they are needed.
 *
 * What the marks mean is told in parts.py. Formulas are those of NumPy's documentation of what
 * these functions are: quotients round down, shifts beyond the width leave the sign, and division
 * of whole numbers by zero gives zero. */

/* = f */
static inline T pg_remainder_T(T x, T y) {
    const T r = fmod_F(x, y);
    if (y == 0) return r;
    if (r == 0) return copysign_F(0, y);
    return (y < 0) != (r < 0) ? r + y : r;
}

/* = f */
static inline T pg_floor_divide_T(T x, T y) {
    if (y == 0) return x / y;
    T r = fmod_F(x, y), q = (x - r) / y;
    if (r != 0 && (y < 0) != (r < 0)) q -= 1;
    if (q == 0) return copysign_F(0, x / y);
    const T down = floor_F(q);
    return q - down > (T)0.5 ? down + 1 : down;
}

/* = i */
static inline T pg_remainder_T(T x, T y) {
    if (y == 0 || y == -1) return 0;
    const T r = (T)(x % y);
    return r != 0 && (r < 0) != (y < 0) ? (T)(r + y) : r;
}

/* = i */
static inline T pg_floor_divide_T(T x, T y) {
    if (y == 0) return 0;
    if (y == -1) return (T)(0u - (U)x);
    const T q = (T)(x / y);
    return x % y != 0 && (x < 0) != (y < 0) ? (T)(q - 1) : q;
}

/* = u */
static inline T pg_remainder_T(T x, T y) { return y == 0 ? 0 : (T)(x % y); }

/* = u */
static inline T pg_floor_divide_T(T x, T y) { return y == 0 ? 0 : (T)(x / y); }

/* = i */
static inline T pg_left_shift_T(T x, T y) {
    return y >= 0 && y < BITS ? (T)((U)x << y) : 0;
}

/* = u */
static inline T pg_left_shift_T(T x, T y) { return y < BITS ? (T)((U)x << y) : 0; }

/* = i */
static inline T pg_right_shift_T(T x, T y) {
    if (y >= 0 && y < BITS) return (T)(x < 0 ? ~(~x >> y) : x >> y);
    return x < 0 ? -1 : 0;
}

/* = u */
static inline T pg_right_shift_T(T x, T y) { return y < BITS ? (T)(x >> y) : 0; }

/* = i */
static inline T pg_gcd_T(T x, T y) {
    U a = x < 0 ? 0u - (U)x : (U)x, b = y < 0 ? 0u - (U)y : (U)y;
    while (b != 0) {
        const U r = a % b;
        a = b, b = r;
    }
    return (T)a;
}

/* = u */
static inline T pg_gcd_T(T x, T y) {
    while (y != 0) {
        const T r = (T)(x % y);
        x = y, y = r;
    }
    return x;
}

/* = i */
static inline T pg_power_T(T x, T y, int *bad) {
    /* NumPy has no such powers. */
    if (y < 0) {
        *bad = 1;
        return 0;
    }
    U p = 1, base = (U)x;
    for (; y != 0; y = (T)(y / 2), base *= base)
        if (y % 2) p *= base;
    return (T)p;
}

/* = u */
static inline T pg_power_T(T x, T y, int *bad) {
    U p = 1, base = (U)x;
    (void)bad;
    for (; y != 0; y = (T)(y / 2), base *= base)
        if (y % 2) p *= base;
    return (T)p;
}

/* = f */
static inline T pg_logaddexp_T(T x, T y) {
    /* Equal infinities have no difference. */
    if (x == y) return x + (T)0.693147180559945309417232121458176568;
    const T d = x - y;
    if (d > 0) return x + log1p_F(exp_F(-d));
    if (d <= 0) return y + log1p_F(exp_F(d));
    return d;
}

/* = f */
/* 1 / (1 + exp(-x)), which does not overflow. */
static inline T pg_sigmoid_T(T x) {
    const T e = exp_F(-fabs_F(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

/* = */
/* What does not fit, and NaN, becomes the least number, as in the processors that NumPy is mostly
 * run on; of narrower types the last bits of that. */
static inline int64_t pg_to_i64(double x) {
    /* GCC takes there and back again for a truncation, which leaves a sign to zeros. */
    if (x > -1 && x <= 0) return 0;
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

/* = */
static inline int32_t pg_to_i32(double x) {
    if (x > -1 && x <= 0) return 0;
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}

/* = */
static inline uint64_t pg_to_u64(double x) {
    if (!(x >= 0x1p63)) return (uint64_t)pg_to_i64(x);
    return x < 0x1p64 ? (uint64_t)x : 0;
}

/* = f */
static inline U pg_bits_T(T x) {
    const union { T number; U bits; } both = {x};
    return both.bits;
}

/* = f */
static inline T pg_from_bits_T(U x) {
    const union { U bits; T number; } both = {x};
    return both.number;
}

/* = */
/* The place of index `i` along an axis of n elements, from the end if it is negative; 0, and
 * `bad`, if it is out of range. */
static inline int64_t pg_place(int64_t i, int64_t n, int *bad) {
    i += i < 0 ? n : 0;
    const int out = i < 0 || i >= n;
    *bad |= out;
    return out ? 0 : i;
}

/* = f */
/* A NaN wins. */
static inline T pg_greater_T(T x, T y) { return x >= y || x != x ? x : y; }

/* = iu */
static inline T pg_greater_T(T x, T y) { return x >= y ? x : y; }

/* = f */
static inline T pg_smaller_T(T x, T y) { return x <= y || x != x ? x : y; }

/* = iu */
static inline T pg_smaller_T(T x, T y) { return x <= y ? x : y; }

/* = f */
/* Whether x stands before y in ascending order, in which NaNs are last. */
static inline int pg_before_T(T x, T y) { return x < y || (y != y && x == x); }

/* = iu */
static inline int pg_before_T(T x, T y) { return x < y; }

/* = f */
/* Whether x is an extremum rather than y: the first NaN is. */
static inline int pg_above_T(T x, T y) { return x > y || (x != x && y == y); }

/* = iu */
static inline int pg_above_T(T x, T y) { return x > y; }

/* = f */
static inline int pg_below_T(T x, T y) { return x < y || (x != x && y == y); }

/* = iu */
static inline int pg_below_T(T x, T y) { return x < y; }

/* = f */
static inline T pg_plus_T(T x, T y) { return x + y; }

/* = iu */
static inline T pg_plus_T(T x, T y) { return (T)((U)x + (U)y); }

/* = f */
static inline T pg_times_T(T x, T y) { return x * y; }

/* = iu */
static inline T pg_times_T(T x, T y) { return (T)((U)x * (U)y); }

/* = f */
/* Hide that x is a product. GCC from 12 on vectorises products that are added and subtracted side
 * by side into vfmaddsub, although -ffp-contract=off forbids it. */
static inline T pg_rounded_T(T x) {
#if defined(__GNUC__) && __GNUC__ >= 12 && !defined(__clang__) && !defined(LOOSE)
    return __builtin_assoc_barrier(x);
#else
    return x;
#endif
}

/* = f */
/* Eight runs of a sum beside each other. Their total is that of pg_sum_T, to the bit: the rest of
 * fewer than eight elements goes to the first runs, and runs are added in pairs. */
typedef T pg_octet_T __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias));
static inline T pg_total_T(pg_octet_T runs, const T *rest, long n) {
    T a[8];
    memcpy(a, &runs, sizeof a);
    for (long k = 0; k < n; k++) a[k] += rest[k];
    return ((a[0] + a[1]) + (a[2] + a[3])) + ((a[4] + a[5]) + (a[6] + a[7]));
}

/* = f */
/* Powers within one unit in the last place, without branches, so that loops of them are vectorised.
 * Numbers have two parts, of which `..._lost` is what rounding has lost. Powers of 1 / x overflow
 * only where the result does; the second part is then no number, and the first one is the result. */
static inline T pg_of_parts_T(T z, T lost) {
    const T whole = z + lost;
    return whole == whole ? whole : z;
}

/* = f */
static inline T pg_power_4_T(T x) {
#ifdef FP_FAST_FMA
    const T p = x * x, z = p * p;
    return pg_of_parts_T(z, fma_F(p, p, -z) + 2 * p * fma_F(x, x, -p));
#else
    return pow_F(x, 4);
#endif
}

/* = f */
static inline T pg_power_minus_2_T(T x) {
#ifdef LOOSE
    return 1 / x * (1 / x);
#else
#ifdef FP_FAST_FMA
    const T y = 1 / x, lost = fma_F(-y, x, 1) * y, z = y * y;
    return pg_of_parts_T(z, fma_F(y, y, -z) + 2 * y * lost);
#else
    return pow_F(x, -2);
#endif
#endif
}

/* = f */
static inline T pg_power_minus_3_T(T x) {
#ifdef FP_FAST_FMA
    const T y = 1 / x, lost = fma_F(-y, x, 1) * y;
    const T p = y * y, z = p * y;
    return pg_of_parts_T(z, fma_F(p, y, -z) + y * (fma_F(y, y, -p) + 3 * (y * lost)));
#else
    return pow_F(x, -3);
#endif
}

/* = f */
static inline T pg_power_minus_4_T(T x) {
#ifdef FP_FAST_FMA
    const T y = 1 / x, lost = fma_F(-y, x, 1) * y;
    const T p = y * y, z = p * p;
    return pg_of_parts_T(z, fma_F(p, p, -z) + 2 * p * (fma_F(y, y, -p) + 2 * (y * lost)));
#else
    return pow_F(x, -4);
#endif
}

/* = f */
static inline T pg_power_3_halves_T(T x) {
#ifdef LOOSE
    return x == -INFINITY ? INFINITY : x * sqrt_F(x) + 0;
#else
#ifdef FP_FAST_FMA
    const T y = sqrt_F(x), lost = fma_F(-y, y, x) * ((T)0.5 / y), z = x * y;
    return x == -INFINITY ? INFINITY : pg_of_parts_T(z, fma_F(x, y, -z) + x * lost) + 0;
#else
    return pow_F(x, (T)1.5);
#endif
#endif
}

/* = f */
/* 1 / sqrt(x) in parts is y and y_lost, where s is sqrt(x) up to a rounding. */
static inline T pg_power_minus_3_halves_T(T x) {
#ifdef LOOSE
    const T y = 1 / x;
    return x == 0 ? INFINITY : y * sqrt_F(y);
#else
#ifdef FP_FAST_FMA
    const T s = sqrt_F(x), y = 1 / s;
    const T lost = y * (fma_F(-s, y, 1) - y * (y * ((T)0.5 * fma_F(-s, s, x))));
    const T p = y * y, z = p * y;
    const T rest = fma_F(p, y, -z) + y * (fma_F(y, y, -p) + 3 * (y * lost));
    const T whole = pg_of_parts_T(z, rest);
    return x == 0 ? INFINITY : x == -INFINITY ? 0 : whole;
#else
    return pow_F(x, (T)-1.5);
#endif
#endif
}

/* = f */
static inline T pg_power_minus_5_halves_T(T x) {
#ifdef LOOSE
    const T y = 1 / x;
    return x == 0 ? INFINITY : y * (y * sqrt_F(y)) + 0;
#else
#ifdef FP_FAST_FMA
    const T s = sqrt_F(x), y = 1 / s;
    const T lost = y * (fma_F(-s, y, 1) - y * (y * ((T)0.5 * fma_F(-s, s, x))));
    const T p = y * y, q = p * p, z = q * y;
    const T twice = 2 * fma_F(y, y, -p) + 5 * (y * lost);
    const T whole = pg_of_parts_T(z, fma_F(q, y, -z) + y * (fma_F(p, p, -q) + p * twice));
    return x == 0 ? INFINITY : x == -INFINITY ? 0 : whole;
#else
    return pow_F(x, (T)-2.5);
#endif
#endif
}

/* = f */
/* Small numbers are scaled by an even power of two, as what is lost is subnormal otherwise. */
static inline T pg_power_minus_half_T(T x) {
#ifdef FP_FAST_FMA
    const int small = x < (sizeof(T) == 4 ? (T)0x1p-60 : (T)0x1p-600);
    const T up = sizeof(T) == 4 ? (T)0x1p60 : (T)0x1p600;
    const T root = sizeof(T) == 4 ? (T)0x1p30 : (T)0x1p300;
    const T m = small ? x * up : x, s = sqrt_F(m), y = 1 / s;
    const T z = pg_of_parts_T(y, y * (fma_F(-s, y, 1) - y * (y * ((T)0.5 * fma_F(-s, s, m)))));
    return x == 0 ? INFINITY : x == -INFINITY ? 0 : small ? z * root : z;
#else
    return pow_F(x, (T)-0.5);
#endif
}

/* = c */
/* Products with a rounding less where processors have that, as NumPy's then are. */
static inline T pg_mul_T(T x, T y) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    const T z = {fma_F(x.first, y.first, -(x.second * y.second)),
                 fma_F(x.first, y.second, x.second * y.first)};
#else
    const T z = {pg_rounded_R(x.first * y.first) - pg_rounded_R(x.second * y.second),
                 pg_rounded_R(x.first * y.second) + pg_rounded_R(x.second * y.first)};
#endif
    return z;
}

/* = f */
/* A part of what may be a product, for something that may negate it. GCC replaces -(x y + z) by
 * (-x) y - z where x y + z is one instruction and nothing else uses it: zeros then have the other
 * sign. The comparison uses it, also in vectors. */
static inline T pg_part_T(T x) { return x == x ? x : (T)NAN; }

/* = c */
static inline R pg_real_T(T x) { return pg_part_R(x.first); }

/* = c */
static inline R pg_imag_T(T x) { return pg_part_R(x.second); }

/* = c */
static inline T pg_neg_T(T x) {
    const T z = {-pg_part_R(x.first), -pg_part_R(x.second)};
    return z;
}

/* = c */
static inline T pg_conj_T(T x) {
    const T z = {x.first, -pg_part_R(x.second)};
    return z;
}

/* = c */
/* Smith's way, which divides by the larger part first: Comm. ACM 5 (1962), 435. */
static inline T pg_div_T(T x, T y) {
    const R a = fabs_F(y.first), b = fabs_F(y.second);
    if (a == 0 && b == 0) {
        const T z = {x.first / a, x.second / a};
        return z;
    }
    if (a >= b) {
        const R q = y.second / y.first, s = (R)1 / (y.first + pg_rounded_R(y.second * q));
        const R first = pg_rounded_R(x.first * q), second = pg_rounded_R(x.second * q);
        const T z = {(x.first + second) * s, (x.second - first) * s};
        return z;
    }
    const R q = y.first / y.second, s = (R)1 / (y.second + pg_rounded_R(y.first * q));
    const R first = pg_rounded_R(x.first * q), second = pg_rounded_R(x.second * q);
    const T z = {(first + x.second) * s, (second - x.first) * s};
    return z;
}
