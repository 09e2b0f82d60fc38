/* Products of matrices: of any strides, and through BLAS where they are large. */

#include <stdint.h>
#include <string.h>

/* BLAS's dgemm and sgemm, where there is one, and whether its integers have 64 bits. */
void *pg_gemm_f64, *pg_gemm_f32;
int pg_gemm_wide;

/* In runtime.c. */
int pg_share(int (*)(void *const *, char *, long), void *const *, char *, long, long);

/* Products of fewer multiplications than this are done here, in tiles that registers hold: ROWS
 * rows of WIDE vectors. BLAS as NumPy brings it along does not always know the widest vectors. */
#ifdef __AVX512F__
#define FEW 1e9
#define VECTOR_BYTES 64
#define ROWS 8
#define WIDE 3
#elif defined(__AVX__)
#define FEW 131072.0
#define VECTOR_BYTES 32
#define ROWS 4
#define WIDE 3
#else
/* Compilers put wider vectors together from scalars. */
#define FEW 131072.0
#define VECTOR_BYTES 16
#ifdef __aarch64__
#define ROWS 8
#define WIDE 3
#else
#define ROWS 4
#define WIDE 2
#endif
#endif
/* Multiplications for one element of a tile before the next tile's turn. */
#define DEEPEST 192
/* Rows that are computed before the next ones, as the second cache holds them. */
#define MANY 256
/* What is at hand in the nearest cache, in bytes; it does not matter to few rows. */
#define NEAR 32768
#define FEW_ROWS 48

/* Multiplications that are worth another thread, and how many of these there may be at most. */
#define SHARE 4e6
#define MOST_PARTS 16
#define PAGE 4096
/* How far ahead of what is read memory is asked for, in bytes. */
#define AHEAD 12288

#define UNROLLED _Pragma("GCC unroll 8")

/* Numbers beside each other, wherever they are in memory. */
typedef double f64_vector __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
typedef float f32_vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

/* Elements of two vectors x and y, of which those of y are counted on from `lanes`: the first or the
 * second ones of pairs of runs of `half` elements, in turn from x and y. */
#define FIRST(i, half, lanes) ((i) & (half) ? (i) - (half) + (lanes) : (i))
#define SECOND(i, half, lanes) ((i) & (half) ? (i) + (lanes) : (i) + (half))
#define FOUR(F, i, h, n) F(i, h, n), F(i + 1, h, n), F(i + 2, h, n), F(i + 3, h, n)
#define LANES_2(F, h) F(0, h, 2), F(1, h, 2)
#define LANES_4(F, h) FOUR(F, 0, h, 4)
#define LANES_8(F, h) FOUR(F, 0, h, 8), FOUR(F, 4, h, 8)
#define LANES_16(F, h) FOUR(F, 0, h, 16), FOUR(F, 4, h, 16), FOUR(F, 8, h, 16), FOUR(F, 12, h, 16)
#if VECTOR_BYTES == 64
#define LANES_f64 LANES_8
#define LANES_f32 LANES_16
#elif VECTOR_BYTES == 32
#define LANES_f64 LANES_4
#define LANES_f32 LANES_8
#else
#define LANES_f64 LANES_2
#define LANES_f32 LANES_4
#endif
#ifdef __clang__
#define SHUFFLED(name, x, y, F, h) __builtin_shufflevector(x, y, LANES_##name(F, h))
#else
typedef int64_t f64_places __attribute__((vector_size(VECTOR_BYTES)));
typedef int32_t f32_places __attribute__((vector_size(VECTOR_BYTES)));
#define SHUFFLED(name, x, y, F, h) __builtin_shuffle(x, y, (name##_places){LANES_##name(F, h)})
#endif

/* Transposes a square of as many vectors as they have elements: within pairs of runs of rows, and
 * then within longer ones, what is off the diagonal changes places. */
#define CROSS(type, name)                                                              \
    static inline __attribute__((always_inline)) void cross_##name(name##_vector *t) { \
        enum { LANES = VECTOR_BYTES / sizeof(type) };                                  \
        CROSS_RUNS(name, 1)                                                            \
        if (LANES > 2) { CROSS_RUNS(name, 2 % LANES) }                                 \
        if (LANES > 4) { CROSS_RUNS(name, 4 % LANES) }                                 \
        if (LANES > 8) { CROSS_RUNS(name, 8 % LANES) }                                 \
    }
#define CROSS_RUNS(name, half)                                                         \
    _Pragma("GCC unroll 16") for (int r = 0; r < LANES; r++) {                         \
        if (r & (half)) continue;                                                      \
        const name##_vector x = t[r], y = t[(r + (half)) % LANES];                     \
        t[r] = SHUFFLED(name, x, y, FIRST, half);                                      \
        t[(r + (half)) % LANES] = SHUFFLED(name, x, y, SECOND, half);                  \
    }

CROSS(double, f64)
CROSS(float, f32)

#define LIBRARY_PRODUCT(type, name)                                                    \
    static int gemm_##name(type *out, const type *a, long a0, long a1, const type *b,  \
                           long b0, long b1, long m, long n, long k, int add) {        \
        if (!pg_gemm_##name || (double)m * (double)n * (double)k < FEW) return 0;      \
        if ((a1 != 1 && a0 != 1) || (b1 != 1 && b0 != 1)) return 0;                    \
        const int at = a1 != 1, bt = b1 != 1;                                          \
        const int64_t lda = at ? a1 : a0, ldb = bt ? b1 : b0;                          \
        /* A matrix of one row or column may have any stride there. */                 \
        if (lda < (at ? m : k) || ldb < (bt ? k : n)) return 0;                        \
        const type one = 1, before = add;                                               \
        /* What is in row-major order here is the transpose there: out' = b' a'. */    \
        if (pg_gemm_wide) {                                                            \
            const int64_t mm = m, nn = n, kk = k;                                      \
            ((void (*)(const char *, const char *, const int64_t *, const int64_t *,   \
                       const int64_t *, const type *, const type *, const int64_t *,   \
                       const type *, const int64_t *, const type *, type *,            \
                       const int64_t *))pg_gemm_##name)(                               \
                bt ? "T" : "N", at ? "T" : "N", &nn, &mm, &kk, &one, b, &ldb, a, &lda, \
                &before, out, &nn);                                                    \
        } else {                                                                       \
            const int mm = (int)m, nn = (int)n, kk = (int)k, la = (int)lda, lb = (int)ldb; \
            ((void (*)(const char *, const char *, const int *, const int *,           \
                       const int *, const type *, const type *, const int *,           \
                       const type *, const int *, const type *, type *,                \
                       const int *))pg_gemm_##name)(                                   \
                bt ? "T" : "N", at ? "T" : "N", &nn, &mm, &kk, &one, b, &lb, a, &la,   \
                &before, out, &nn);                                                    \
        }                                                                              \
        return 1;                                                                      \
    }

LIBRARY_PRODUCT(double, f64)
LIBRARY_PRODUCT(float, f32)

/* A tile of out = a b or, with `add`, of out += a b: `rows` of at most R rows, and V vectors of
 * columns, of the last of which `ending` are there. What `b` has lies in rows that are `step` apart,
 * and is read in whole vectors. */
#define TILE(type, name)                                                               \
    static inline __attribute__((always_inline)) void tile_##name(                     \
        type *out, long n, const type *a, long a0, long a1, const type *b, long step,  \
        long k, long rows, long ending, int add, const int R, const int V) {           \
        enum { LANES = VECTOR_BYTES / sizeof(type) };                                  \
        name##_vector t[ROWS][WIDE];                                                   \
        const type *x[ROWS];                                                           \
        UNROLLED for (int r = 0; r < R; r++) {                                         \
            x[r] = a + (r < rows ? r : rows - 1) * a0;                                 \
            UNROLLED for (int v = 0; v < V; v++) t[r][v] = (name##_vector){0};         \
        }                                                                              \
        for (long l = 0; l < k; l++, b += step) {                                      \
            name##_vector y[WIDE];                                                     \
            UNROLLED for (int v = 0; v < V; v++)                                       \
                y[v] = *(const name##_vector *)(b + v * LANES);                        \
            UNROLLED for (int r = 0; r < R; r++) {                                     \
                const type z = x[r][l * a1];                                           \
                UNROLLED for (int v = 0; v < V; v++) t[r][v] += z * y[v];              \
            }                                                                          \
        }                                                                              \
        UNROLLED for (int r = 0; r < R; r++) {                                         \
            if (r >= rows) break;                                                      \
            UNROLLED for (int v = 0; v < V; v++) {                                     \
                type *to = out + r * n + v * LANES;                                    \
                name##_vector *o = (name##_vector *)to;                                \
                if (v < V - 1 || ending == LANES) {                                    \
                    if (add) t[r][v] += *o;                                            \
                    *o = t[r][v];                                                      \
                } else {                                                               \
                    type left[LANES];                                                  \
                    *(name##_vector *)left = t[r][v];                                  \
                    for (long c = 0; c < ending; c++) to[c] = add ? to[c] + left[c] : left[c]; \
                }                                                                      \
            }                                                                          \
        }                                                                              \
    }                                                                                  \
    static inline __attribute__((always_inline)) void tiles_##name(                    \
        type *out, long n, const type *a, long a0, long a1, const type *b, long step,  \
        long k, long m, long ending, int add, const int V) {                           \
        for (long i = 0; i < m;) {                                                     \
            /* The last two tiles are about as high as each other. */                  \
            const long left = m - i, high = left > ROWS && left < 2 * ROWS ? (left + 1) / 2 : left; \
            const long rows = high < ROWS ? high : ROWS;                               \
            type *o = out + i * n;                                                     \
            const type *x = a + i * a0;                                                \
            if (rows > ROWS * 3 / 4)                                                   \
                tile_##name(o, n, x, a0, a1, b, step, k, rows, ending, add, ROWS, V);  \
            else if (rows > ROWS / 2)                                                  \
                tile_##name(o, n, x, a0, a1, b, step, k, rows, ending, add, ROWS * 3 / 4, V); \
            else                                                                       \
                tile_##name(o, n, x, a0, a1, b, step, k, rows, ending, add, ROWS / 2, V); \
            i += rows;                                                                 \
        }                                                                              \
    }                                                                                  \
    /* All rows of some vectors of columns. */                                         \
    static void slab_##name(type *out, long n, const type *a, long a0, long a1,        \
                            const type *b, long step, long k, long m, long vectors,    \
                            long ending, int add) {                                    \
        if (vectors == 3)                                                              \
            tiles_##name(out, n, a, a0, a1, b, step, k, m, ending, add, WIDE);         \
        else if (vectors == 2)                                                         \
            tiles_##name(out, n, a, a0, a1, b, step, k, m, ending, add, 2);            \
        else                                                                           \
            tiles_##name(out, n, a, a0, a1, b, step, k, m, ending, add, 1);            \
    }                                                                                  \
    /* Columns of `b` in rows without gaps, which end with zeros. */                   \
    static void pack_##name(type *restrict out, const type *b, long b0, long b1, long k, \
                            long columns, long across) {                               \
        enum { LANES = VECTOR_BYTES / sizeof(type) };                                  \
        long done = 0;                                                                 \
        if (b0 == 1 && b1 != 1)                                                        \
            for (; done + LANES <= k; done += LANES, b += LANES, out += LANES * across) { \
                long c = 0;                                                            \
                for (; c + LANES <= columns; c += LANES) {                             \
                    name##_vector t[LANES];                                            \
                    _Pragma("GCC unroll 16") for (int r = 0; r < LANES; r++)           \
                        t[r] = *(const name##_vector *)(b + (c + r) * b1);             \
                    cross_##name(t);                                                   \
                    _Pragma("GCC unroll 16") for (int r = 0; r < LANES; r++)           \
                        *(name##_vector *)(out + r * across + c) = t[r];               \
                }                                                                      \
                for (int r = 0; r < LANES; r++)                                        \
                    for (long q = c; q < across; q++)                                  \
                        out[r * across + q] = q < columns ? b[r + q * b1] : 0;         \
            }                                                                          \
        for (; done < k; done++, b += b0, out += across) {                             \
            long c = 0;                                                                \
            if (b1 == 1)                                                               \
                for (; c + LANES <= columns; c += LANES)                               \
                    *(name##_vector *)(out + c) = *(const name##_vector *)(b + c);     \
            for (; c < columns; c++) out[c] = b[c * b1];                               \
            for (; c < across; c++) out[c] = 0;                                        \
        }                                                                              \
    }

TILE(double, f64)
TILE(float, f32)

/* One row of a product: of columns that lie in a row each, several at once; or as a sum of rows. */
#define ROW_OF_PRODUCT(type, name)                                                     \
    static inline __attribute__((always_inline)) void dots_##name(                     \
        type *out, const type *x, const type *b, long b1, long k, int add, const int count) { \
        enum { LANES = VECTOR_BYTES / sizeof(type) };                                  \
        name##_vector t[4] = {{0}};                                                    \
        type rest[4] = {0};                                                            \
        long l = 0;                                                                    \
        for (; l + LANES <= k; l += LANES) {                                           \
            const name##_vector y = *(const name##_vector *)(x + l);                   \
            UNROLLED for (int q = 0; q < count; q++) {                                 \
                const type *at = b + q * b1 + l;                                       \
                __builtin_prefetch(at + AHEAD / sizeof(type));                         \
                t[q] += y * *(const name##_vector *)at;                                \
            }                                                                          \
        }                                                                              \
        for (; l < k; l++)                                                             \
            UNROLLED for (int q = 0; q < count; q++) rest[q] += x[l] * b[q * b1 + l];  \
        UNROLLED for (int q = 0; q < count; q++) {                                     \
            type sums[LANES];                                                          \
            *(name##_vector *)sums = t[q];                                             \
            UNROLLED for (int half = LANES / 2; half; half /= 2)                       \
                UNROLLED for (int c = 0; c < half; c++) sums[c] += sums[c + half];     \
            const type sum = sums[0] + rest[q];                                        \
            out[q] = add ? out[q] + sum : sum;                                         \
        }                                                                              \
    }                                                                                  \
    static void row_##name(type *restrict out, const type *x, long a1, const type *b,  \
                           long b0, long b1, long n, long k, int add) {                \
        if (!add)                                                                      \
            for (long j = 0; j < n; j++) out[j] = 0;                                   \
        long l = 0;                                                                    \
        if (b1 == 1)                                                                   \
            for (; l + 8 <= k; l += 8, b += 8 * b0) {                                  \
                type z[8];                                                             \
                UNROLLED for (int q = 0; q < 8; q++) z[q] = x[(l + q) * a1];           \
                for (long j = 0; j < n; j++) {                                         \
                    type sum = out[j];                                                 \
                    UNROLLED for (int q = 0; q < 8; q++) sum += z[q] * b[q * b0 + j];  \
                    out[j] = sum;                                                      \
                }                                                                      \
            }                                                                          \
        for (; l < k; l++, b += b0) {                                                  \
            const type z = x[l * a1];                                                  \
            for (long j = 0; j < n; j++) out[j] += z * b[j * b1];                      \
        }                                                                              \
    }

ROW_OF_PRODUCT(double, f64)
ROW_OF_PRODUCT(float, f32)

/* out = a b, or out += a b, for an m x k matrix a and a k x n matrix b, each with the strides of its
 * two axes; out is in row-major order. */
#define PRODUCT_OF_MATRICES(type, name)                                                \
    static void product_##name(type *restrict out, const type *a, long a0, long a1,    \
                               const type *b, long b0, long b1, long m, long n,        \
                               long k, int add) {                                      \
        enum { LANES = VECTOR_BYTES / sizeof(type), ACROSS = WIDE * LANES };           \
        if (n == 1) {                                                                  \
            /* A column is a row: out' = b' a'. */                                     \
            const type *row = b;                                                       \
            const long step = b0, across = a1, down = a0;                              \
            b = a, a = row, a0 = 0, a1 = step, b0 = across, b1 = down;                 \
            n = m, m = 1;                                                              \
        }                                                                              \
        if (m == 1 || n == 1 || (double)m * (double)n * (double)k < 64) {              \
            for (long i = 0; i < m; i++, a += a0, out += n) {                          \
                if (b1 == 1 || b0 != 1 || a1 != 1) {                                   \
                    row_##name(out, a, a1, b, b0, b1, n, k, add);                      \
                    continue;                                                          \
                }                                                                      \
                long j = 0;                                                            \
                for (; j + 4 <= n; j += 4) dots_##name(out + j, a, b + j * b1, b1, k, add, 4); \
                for (; j < n; j++) dots_##name(out + j, a, b + j * b1, b1, k, add, 1); \
            }                                                                          \
            return;                                                                    \
        }                                                                              \
        if (k == 0 && !add)                                                            \
            for (long i = 0; i < m * n; i++) out[i] = 0;                               \
        if (m > MANY) {                                                                \
            for (long i = 0; i < m; i += MANY)                                         \
                product_##name(out + i * n, a + i * a0, a0, a1, b, b0, b1,             \
                               m - i < MANY ? m - i : MANY, n, k, add);                \
            return;                                                                    \
        }                                                                              \
        type packed[DEEPEST * ACROSS];                                                 \
        const long vectors = (n + LANES - 1) / LANES, slabs = (vectors + WIDE - 1) / WIDE; \
        for (long s = 0; s < slabs; s++)                                               \
            for (long l = 0; l < k; l += DEEPEST) {                                    \
                /* Slabs are about as wide as each other. */                           \
                const long v = vectors * s / slabs, wide = vectors * (s + 1) / slabs - v; \
                const long j = v * LANES, across = wide * LANES;                       \
                const long columns = n - j < across ? n - j : across;                  \
                const long deep = k - l < DEEPEST ? k - l : DEEPEST;                   \
                const type *first = b + l * b0 + j * b1;                               \
                long step = b0;                                                        \
                /* Rows lie as they should, and none is read beyond its end. */        \
                const int near = deep * b0 * (long)sizeof *b <= NEAR || m < FEW_ROWS;  \
                if (across > columns || b1 != 1 || !near) {                            \
                    pack_##name(packed, first, b0, b1, deep, columns, across);         \
                    first = packed;                                                    \
                    step = across;                                                     \
                }                                                                      \
                slab_##name(out + j, n, a + l * a1, a0, a1, first, step, deep, m, wide, \
                            LANES - (across - columns), add || l > 0);                 \
            }                                                                          \
    }                                                                                  \
    typedef struct {                                                                   \
        type *out;                                                                     \
        const type *a, *b;                                                             \
        long a0, a1, b0, b1, m, n, k, rows;                                            \
        int add;                                                                       \
    } name##_product;                                                                  \
    static int some_rows_##name(void *const *arrays, char *arena, long g) {            \
        const name##_product *p = arrays[0];                                           \
        const long i = g * p->rows, m = p->m - i < p->rows ? p->m - i : p->rows;       \
        product_##name(p->out + i * p->n, p->a + i * p->a0, p->a0, p->a1, p->b, p->b0, \
                       p->b1, m, p->n, p->k, p->add);                                  \
        (void)arena;                                                                   \
        return 0;                                                                      \
    }                                                                                  \
    static void shared_##name(type *restrict out, const type *a, long a0, long a1,     \
                              const type *b, long b0, long b1, long m, long n, long k, \
                              int add) {                                               \
        if (m > 1 && n > 1 && gemm_##name(out, a, a0, a1, b, b0, b1, m, n, k, add)) return;\
        /* Which rows are computed together changes no bit. */                         \
        const double parts = (double)m * (double)n * (double)k / SHARE;                \
        const long most = parts < MOST_PARTS ? (long)parts : MOST_PARTS;               \
        const long rows = most > 1 ? ((m + most - 1) / most + ROWS - 1) / ROWS * ROWS : m;\
        /* Parts of short rows would read the same pages of `a` several times. */      \
        const long least = n == 1 && a0 == 1 ? PAGE / (long)sizeof(type) : 2 * ROWS;   \
        if (rows < least || rows >= m) {                                               \
            product_##name(out, a, a0, a1, b, b0, b1, m, n, k, add);                   \
            return;                                                                    \
        }                                                                              \
        name##_product p = {out, a, b, a0, a1, b0, b1, m, n, k, rows, add};            \
        void *const arrays[] = {&p};                                                   \
        char none;                                                                     \
        pg_share(some_rows_##name, arrays, &none, (m + rows - 1) / rows, 0);           \
    }                                                                                  \
    void pg_matmul_##name(type *restrict out, const type *a, long a0, long a1,         \
                          const type *b, long b0, long b1, long m, long n, long k) {   \
        shared_##name(out, a, a0, a1, b, b0, b1, m, n, k, 0);                          \
    }                                                                                  \
    /* out += a b */                                                                   \
    void pg_onto_##name(type *restrict out, const type *a, long a0, long a1,           \
                        const type *b, long b0, long b1, long m, long n, long k) {     \
        shared_##name(out, a, a0, a1, b, b0, b1, m, n, k, 1);                          \
    }                                                                                  \
    /* The same in blocks of rows, by this file alone. */                              \
    void pg_product_##name(type *restrict out, const type *a, long a0, long a1,        \
                           const type *b, long b0, long b1, long m, long n, long k) {  \
        product_##name(out, a, a0, a1, b, b0, b1, m, n, k, 0);                         \
    }                                                                                  \
    void pg_added_##name(type *restrict out, const type *a, long a0, long a1,          \
                         const type *b, long b0, long b1, long m, long n, long k) {    \
        product_##name(out, a, a0, a1, b, b0, b1, m, n, k, 1);                         \
    }

PRODUCT_OF_MATRICES(double, f64)
PRODUCT_OF_MATRICES(float, f32)
