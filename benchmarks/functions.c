/* Errors of the functions of elementary.c, which stands before this in one file: the largest over
 * numbers drawn from ranges, in units in the last place of the true value, which is long double's.
 * Called with how many numbers there are for each range, and perhaps with a function's name. */

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#define AT_ONCE 4096

static uint64_t state = 88172645463325252ULL;

static double uniform(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

/* A range of numbers: evenly distributed, or with evenly distributed logarithms. */
typedef struct { double from, to; int by_size; } Range;

static double drawn(Range r) {
    if (!r.by_size) return r.from + (r.to - r.from) * uniform();
    const double low = log2(fabs(r.from)), high = log2(fabs(r.to));
    return copysign(exp2(low + (high - low) * uniform()), r.from);
}

static double units(long double found, long double true, int digits, int least) {
    if (isnan((double)true)) return isnan((double)found) ? 0.0 : INFINITY;
    /* What is too large for the type is infinite. */
    const long double most = digits == 24 ? FLT_MAX : DBL_MAX;
    if (fabsl(true) > most) true = true > 0 ? INFINITY : -INFINITY;
    if (isinf((double)true) || isinf((double)found)) return found == true ? 0.0 : 1.0;
    int exponent;
    frexpl(true, &exponent);
    exponent = exponent - digits < least ? least : exponent - digits;
    return (double)fabsl(ldexpl(found - true, -exponent));
}

typedef struct { double most, x, y; } Worst;

static void seen(Worst *worst, double units, double x, double y) {
    if (units > worst->most) *worst = (Worst){units, x, y};
}

static void told(const char *name, Range x, const Range *y, Worst wide, Worst narrow) {
    printf("| %s | %g to %g%s", name, x.from, x.to, x.by_size ? " by size" : "");
    if (y) printf("; %g to %g%s", y->from, y->to, y->by_size ? " by size" : "");
    printf(" | %.3f at %.17g", wide.most, wide.x);
    if (y) printf(", %.17g", wide.y);
    printf(" | %.3f at %.9g", narrow.most, narrow.x);
    if (y) printf(", %.9g", narrow.y);
    printf(" |\n");
    fflush(stdout);
}

static void of_one(const char *name, void (*f)(double *, const double *, long),
                   void (*g)(float *, const float *, long), long double (*true)(long double),
                   Range range, long count) {
    static double x[AT_ONCE], y[AT_ONCE];
    static float u[AT_ONCE], v[AT_ONCE];
    Worst wide = {0}, narrow = {0};
    for (long k = 0; k < count; k += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) x[i] = drawn(range), u[i] = (float)x[i];
        f(y, x, AT_ONCE);
        g(v, u, AT_ONCE);
        for (int i = 0; i < AT_ONCE; i++) {
            seen(&wide, units(y[i], true(x[i]), 53, -1074), x[i], 0);
            if (!isinf(u[i]) && u[i] != 0) seen(&narrow, units(v[i], true(u[i]), 24, -149), u[i], 0);
        }
    }
    told(name, range, 0, wide, narrow);
}

static void of_two(const char *name, void (*f)(double *, const double *, long, const double *, long, long),
                   void (*g)(float *, const float *, long, const float *, long, long),
                   long double (*true)(long double, long double), Range first, Range second,
                   long count) {
    static double x[AT_ONCE], y[AT_ONCE], z[AT_ONCE];
    static float u[AT_ONCE], v[AT_ONCE], w[AT_ONCE];
    Worst wide = {0}, narrow = {0};
    for (long k = 0; k < count; k += AT_ONCE) {
        for (int i = 0; i < AT_ONCE; i++) {
            x[i] = drawn(first), u[i] = (float)x[i];
            y[i] = drawn(second), v[i] = (float)y[i];
        }
        f(z, x, 1, y, 1, AT_ONCE);
        g(w, u, 1, v, 1, AT_ONCE);
        for (int i = 0; i < AT_ONCE; i++) {
            seen(&wide, units(z[i], true(x[i], y[i]), 53, -1074), x[i], y[i]);
            if (isinf(u[i]) || isinf(v[i]) || u[i] == 0 || v[i] == 0) continue;
            seen(&narrow, units(w[i], true(u[i], v[i]), 24, -149), u[i], v[i]);
        }
    }
    told(name, first, &second, wide, narrow);
}

static long double sigmoidl(long double x) {
    const long double e = expl(-fabsl(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static long double logaddexpl(long double x, long double y) {
    return (x > y ? x : y) + log1pl(expl(-fabsl(x - y)));
}

#ifdef SPECIAL
static long double gammalnl(long double x) { return lgammal(x); }

static long double gammal_(long double x) { return tgammal(x); }

/* DLMF 5.11.2 from 20 on, and 5.5.2 and 5.5.4. */
static long double digammal(long double x) {
    if (x < 0) return digammal(1 - x) - M_PIl / tanl(M_PIl * (x - rintl(x)));
    long double steps = 0;
    for (; x < 20; x += 1) steps += 1 / x;
    const long double z = 1 / (x * x);
    const long double b[] = {1 / 12.0L, -1 / 120.0L, 1 / 252.0L, -1 / 240.0L, 1 / 132.0L,
                             -691 / 32760.0L, 1 / 12.0L, -3617 / 8160.0L, 43867 / 14364.0L};
    long double p = 0;
    for (int k = 8; k >= 0; k--) p = (p + b[k]) * z;
    return logl(x) - 0.5L / x - p - steps;
}

static long double erfcxl(long double x) { return expl(x * x) * erfcl(x); }

/* By one step of Newton's method from what double has found. */
static double (*guess)(double);

static long double erfinvl(long double x) {
    const long double y = guess((double)x);
    const long double over = fabsl(x) < 0.5L ? erfl(y) - x
                                             : copysignl((1 - fabsl(x)) - erfcl(fabsl(y)), x);
    return y - over * expl(y * y) * (sqrtl(M_PIl) / 2);
}

static long double erfcinvl(long double x) {
    const long double y = guess((double)x);
    return y + (erfcl(y) - x) * expl(y * y) * (sqrtl(M_PIl) / 2);
}

static long double log_ndtrl(long double x) {
    const long double tail = erfcl(fabsl(x) * M_SQRT1_2l) / 2;
    return x < 0 ? logl(tail) : log1pl(-tail);
}

static long double logitl(long double x) {
    return x > 0.25L && x < 0.75L ? 2 * atanhl(2 * x - 1) : logl(x) - log1pl(-x);
}
#endif

int main(int given, char **arguments) {
    const long count = given > 1 ? atol(arguments[1]) : 100000;
    const char *only = given > 2 ? arguments[2] : 0;
#define ONE(name, ...)                                                                    \
    {                                                                                     \
        const Range ranges[] = {__VA_ARGS__};                                             \
        for (unsigned k = 0; k < sizeof ranges / sizeof *ranges; k++)                     \
            if (!only || !strcmp(only, #name))                                            \
                of_one(#name, pg_##name, pg_##name##f, name##l, ranges[k], count);        \
    }
#define TWO(name, ...)                                                                    \
    {                                                                                     \
        const Range ranges[] = {__VA_ARGS__};                                             \
        for (unsigned k = 0; k < sizeof ranges / sizeof *ranges; k += 2)                  \
            if (!only || !strcmp(only, #name))                                            \
                of_two(#name, pg_##name, pg_##name##f, name##l, ranges[k], ranges[k + 1], count); \
    }
    printf("| function | range | float64 | float32 |\n|---|---|---|---|\n");
#ifdef SPECIAL
#define gammal gammal_
    ONE(gammaln, {1e-300, 1, 1}, {0.01, 30, 0}, {30, 1e300, 1}, {-9.9, -0.1, 0})
    ONE(gamma, {1e-300, 1, 1}, {0.01, 30, 0}, {30, 171, 0}, {-9.9, -0.1, 0})
    ONE(digamma, {1e-300, 1, 1}, {2, 30, 0}, {30, 1e300, 1}, {-9.9, -0.1, 0})
    ONE(erfcx, {0, 26, 0}, {-26, 0, 0})
    guess = pg_erfinv_f64;
    ONE(erfinv, {1e-290, 1, 1}, {-1, 1, 0})
    guess = pg_erfcinv_f64;
    ONE(erfcinv, {1e-290, 1, 1}, {0, 2, 0})
    ONE(log_ndtr, {-40, 0, 0}, {0, 30, 0})
    ONE(logit, {1e-300, 1, 1}, {0, 1, 0})
    return 0;
#else
    ONE(exp, {-750, 715, 0}, {-1, 1, 0})
    ONE(expm1, {-40, 710, 0}, {-1, 1, 0}, {1e-300, 1, 1}, {-1e-300, -1, 1})
    ONE(sigmoid, {-750, 50, 0}, {-4, 4, 0})
    ONE(sinh, {-711, 711, 0}, {-2, 2, 0}, {1e-300, 1, 1})
    ONE(cosh, {-711, 711, 0}, {-2, 2, 0})
    ONE(tanh, {-22, 22, 0}, {-1, 1, 0}, {1e-300, 1, 1})
    ONE(log, {5e-324, 1.7e308, 1}, {0.5, 2, 0})
    ONE(log1p, {1e-300, 1e300, 1}, {-1e-300, -0.9999, 1}, {-0.9999, 1, 0})
    ONE(asinh, {1e-300, 1.7e308, 1}, {-10, 10, 0})
    ONE(acosh, {1, 1.7e308, 1}, {1, 10, 0})
    ONE(atanh, {1e-300, 1, 1}, {-1, 1, 0})
    ONE(sin, {-1e6, 1e6, 0}, {-7, 7, 0}, {1e-300, 1, 1})
    ONE(cos, {-1e6, 1e6, 0}, {-7, 7, 0})
    ONE(tan, {-1e6, 1e6, 0}, {-7, 7, 0}, {1e-300, 1, 1})
    ONE(asin, {1e-300, 1, 1}, {-1, 1, 0})
    ONE(acos, {1e-300, 1, 1}, {-1, 1, 0})
    ONE(atan, {1e-300, 1e300, 1}, {-10, 10, 0})
    ONE(erf, {1e-290, 1, 1}, {-7, 7, 0}, {-1, 1, 0})
    ONE(erfc, {-7, 28, 0}, {-2, 2, 0})
    TWO(pow, {5e-324, 1.7e308, 1}, {-3, 3, 0}, {0.5, 2, 0}, {-1000, 1000, 0}, {1e-3, 1e3, 1}, {-100, 100, 0})
    TWO(atan2, {-10, 10, 0}, {-10, 10, 0}, {1e-300, 1e300, 1}, {1e-300, 1e300, 1})
    /* Where the sum is not close to zero. */
    TWO(logaddexp, {1, 1000, 0}, {1, 1000, 0}, {0, 3, 0}, {0, 3, 0}, {-740, 40, 0}, {1e-320, 1e-310, 1}, {0, 1, 0}, {1e-30, 1, 1})
    return 0;
#endif
}
