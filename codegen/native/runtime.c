/* Reductions, and products of matrices: the part of native kernels that is the same for all. */

#include <math.h>
#include <stdint.h>
#include <string.h>

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

/* BLAS's dgemm and sgemm, where there is one, and whether its integers have 64 bits. */
void *pg_gemm_f64, *pg_gemm_f32;
int pg_gemm_wide;

/* Products of fewer multiplications than this are done here, in tiles that registers hold. */
#define FEW 131072.0
#define ROWS 4
#define COLUMNS 16
#define DEEPEST 512

/* Eight numbers beside each other, wherever they are in memory. */
typedef double f64x8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));

#define LIBRARY_PRODUCT(type, name)                                                    \
    static int gemm_##name(type *out, const type *a, long a0, long a1, const type *b,  \
                           long b0, long b1, long m, long n, long k) {                 \
        if (!pg_gemm_##name || (double)m * (double)n * (double)k < FEW) return 0;      \
        if ((a1 != 1 && a0 != 1) || (b1 != 1 && b0 != 1)) return 0;                    \
        const int at = a1 != 1, bt = b1 != 1;                                          \
        const int64_t lda = at ? a1 : a0, ldb = bt ? b1 : b0;                          \
        /* A matrix of one row or column may have any stride there. */                 \
        if (lda < (at ? m : k) || ldb < (bt ? k : n)) return 0;                        \
        const type one = 1, zero = 0;                                                  \
        /* What is in row-major order here is the transpose there: out' = b' a'. */    \
        if (pg_gemm_wide) {                                                            \
            const int64_t mm = m, nn = n, kk = k;                                      \
            ((void (*)(const char *, const char *, const int64_t *, const int64_t *,   \
                       const int64_t *, const type *, const type *, const int64_t *,   \
                       const type *, const int64_t *, const type *, type *,            \
                       const int64_t *))pg_gemm_##name)(                               \
                bt ? "T" : "N", at ? "T" : "N", &nn, &mm, &kk, &one, b, &ldb, a, &lda, \
                &zero, out, &nn);                                                      \
        } else {                                                                       \
            const int mm = (int)m, nn = (int)n, kk = (int)k, la = (int)lda, lb = (int)ldb; \
            ((void (*)(const char *, const char *, const int *, const int *,           \
                       const int *, const type *, const type *, const int *,           \
                       const type *, const int *, const type *, type *,                \
                       const int *))pg_gemm_##name)(                                   \
                bt ? "T" : "N", at ? "T" : "N", &nn, &mm, &kk, &one, b, &lb, a, &la,   \
                &zero, out, &nn);                                                      \
        }                                                                              \
        return 1;                                                                      \
    }

LIBRARY_PRODUCT(double, f64)
LIBRARY_PRODUCT(float, f32)

/* out = a b for an m x k matrix a and a k x n matrix b, each with the strides of its two axes; out
 * is in row-major order. A tile of it stays in registers meanwhile. */
#define PRODUCT_OF_MATRICES(type, name)                                                \
    void pg_matmul_##name(type *restrict out, const type *a, long a0, long a1,         \
                          const type *b, long b0, long b1, long m, long n, long k) {   \
        if (n == 1) {                                                                  \
            /* A column is a row: out' = b' a'. */                                     \
            const type *row = b;                                                       \
            const long step = b0, across = a1, down = a0;                              \
            b = a, a = row, a0 = 0, a1 = step, b0 = across, b1 = down;                 \
            n = m, m = 1;                                                              \
        }                                                                              \
        if (m > 1 && gemm_##name(out, a, a0, a1, b, b0, b1, m, n, k)) return;          \
        if ((m == 1 || n < 4) && b1 != 1 && b0 == 1 && a1 == 1) {                      \
            for (long i = 0; i < m; i++)                                               \
                for (long j = 0; j < n; j++) {                                         \
                    const type *x = a + i * a0, *y = b + j * b1;                       \
                    type t[8] = {0};                                                   \
                    long l = 0;                                                        \
                    for (; l + 8 <= k; l += 8)                                         \
                        for (int q = 0; q < 8; q++) t[q] += x[l + q] * y[l + q];       \
                    for (; l < k; l++) t[l & 7] += x[l] * y[l];                        \
                    out[i * n + j] =                                                   \
                        ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7])); \
                }                                                                      \
            return;                                                                    \
        }                                                                              \
        if (m > 1 && n > 3 && k <= DEEPEST) {                                          \
            type packed[DEEPEST * COLUMNS];                                            \
            for (long j = 0; j < n; j += COLUMNS) {                                    \
                const long columns = n - j < COLUMNS ? n - j : COLUMNS;                \
                const type *first = b + j;                                             \
                long step = b0;                                                        \
                if (b1 != 1 || columns < COLUMNS) {                                    \
                    for (long l = 0; l < k; l++)                                       \
                        for (long c = 0; c < COLUMNS; c++)                             \
                            packed[l * COLUMNS + c] =                                  \
                                c < columns ? b[l * b0 + (j + c) * b1] : 0;            \
                    first = packed;                                                    \
                    step = COLUMNS;                                                    \
                }                                                                      \
                for (long i = 0; i < m; i += ROWS) {                                   \
                    const long rows = m - i < ROWS ? m - i : ROWS;                     \
                    const type *x0 = a + i * a0, *x1 = x0 + (rows > 1 ? a0 : 0);       \
                    const type *x2 = x1 + (rows > 2 ? a0 : 0);                         \
                    const type *x3 = x2 + (rows > 3 ? a0 : 0), *y = first;             \
                    name##x8 t[2 * ROWS] = {{0}};                                      \
                    for (long l = 0; l < k; l++, y += step) {                          \
                        const name##x8 y0 = *(const name##x8 *)y;                      \
                        const name##x8 y1 = *(const name##x8 *)(y + 8);                \
                        const long at = l * a1;                                        \
                        t[0] += x0[at] * y0, t[1] += x0[at] * y1;                      \
                        t[2] += x1[at] * y0, t[3] += x1[at] * y1;                      \
                        t[4] += x2[at] * y0, t[5] += x2[at] * y1;                      \
                        t[6] += x3[at] * y0, t[7] += x3[at] * y1;                      \
                    }                                                                  \
                    for (long r = 0; r < rows; r++)                                    \
                        memcpy(out + (i + r) * n + j, &t[2 * r], columns * sizeof *out); \
                }                                                                      \
            }                                                                          \
            return;                                                                    \
        }                                                                              \
        long i = 0;                                                                    \
        for (; i < m; i++) {                                                           \
            type *o = out + i * n;                                                     \
            for (long j = 0; j < n; j++) o[j] = 0;                                     \
            for (long l = 0; l < k; l++) {                                             \
                const type x = a[i * a0 + l * a1], *y = b + l * b0;                    \
                if (b1 == 1)                                                           \
                    for (long j = 0; j < n; j++) o[j] += x * y[j];                     \
                else                                                                   \
                    for (long j = 0; j < n; j++) o[j] += x * y[j * b1];                \
            }                                                                          \
        }                                                                              \
    }

PRODUCT_OF_MATRICES(double, f64)
PRODUCT_OF_MATRICES(float, f32)
