/* Products of matrices: of any strides, and through BLAS where they are large. */

/* BLAS's dgemm and sgemm, where there is one, and whether its integers have 64 bits. */
void *pg_gemm_f64, *pg_gemm_f32;
int pg_gemm_wide;

/* Products of fewer multiplications than this are done here, in tiles that registers hold: ROWS
 * rows of WIDE vectors. BLAS as NumPy brings it along does not always know the widest vectors. */
#ifdef __AVX512F__
#define FEW 1e9
#define VECTOR_BYTES 64
#define ROWS 8
#else
#define FEW 131072.0
#define VECTOR_BYTES 32
#define ROWS 4
#endif
#define WIDE 3
/* Multiplications for one element of a tile before the next tile's turn. */
#define DEEPEST 192
/* Rows that are computed before the next ones, as the second cache holds them. */
#define MANY 256
/* What is at hand in the nearest cache, in bytes. */
#define NEAR 32768

#define UNROLLED _Pragma("GCC unroll 8")

/* Numbers beside each other, wherever they are in memory. */
typedef double f64_vector __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));
typedef float f32_vector __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

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

/* A tile of out = a b or, with `add`, of out += a b: `rows` of at most R rows, `columns` of at most
 * V vectors. What `b` has lies in rows that are `step` apart, and may be read in whole vectors. */
#define TILE(type, name)                                                               \
    static inline __attribute__((always_inline)) void tile_##name(                     \
        type *out, long n, const type *a, long a0, long a1, const type *b, long step,  \
        long k, long rows, long columns, int add, const int R, const int V) {          \
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
        if (rows == R && columns == V * LANES) {                                       \
            UNROLLED for (int r = 0; r < R; r++)                                       \
                UNROLLED for (int v = 0; v < V; v++) {                                 \
                    name##_vector *o = (name##_vector *)(out + r * n + v * LANES);     \
                    if (add) t[r][v] += *o;                                            \
                    *o = t[r][v];                                                      \
                }                                                                      \
            return;                                                                    \
        }                                                                              \
        type left[ROWS][WIDE * LANES];                                                 \
        UNROLLED for (int r = 0; r < R; r++)                                           \
            UNROLLED for (int v = 0; v < V; v++)                                       \
                *(name##_vector *)(left[r] + v * LANES) = t[r][v];                     \
        for (long r = 0; r < rows; r++)                                                \
            for (long c = 0; c < columns; c++)                                         \
                out[r * n + c] = add ? out[r * n + c] + left[r][c] : left[r][c];       \
    }                                                                                  \
    /* All rows of `columns` columns. */                                               \
    static void slab_##name(type *out, long n, const type *a, long a0, long a1,        \
                            const type *b, long step, long k, long m, long columns,    \
                            int add) {                                                 \
        enum { LANES = VECTOR_BYTES / sizeof(type) };                                  \
        const long vectors = (columns + LANES - 1) / LANES;                            \
        for (long i = 0; i < m; i += ROWS) {                                           \
            const long rows = m - i < ROWS ? m - i : ROWS;                             \
            type *o = out + i * n;                                                     \
            const type *x = a + i * a0;                                                \
            if (vectors == 3)                                                          \
                tile_##name(o, n, x, a0, a1, b, step, k, rows, columns, add, ROWS, 3); \
            else if (vectors == 2)                                                     \
                tile_##name(o, n, x, a0, a1, b, step, k, rows, columns, add, ROWS, 2); \
            else                                                                       \
                tile_##name(o, n, x, a0, a1, b, step, k, rows, columns, add, ROWS, 1); \
        }                                                                              \
    }                                                                                  \
    /* Columns of `b` in rows without gaps, which end with zeros. */                   \
    static void pack_##name(type *out, const type *b, long b0, long b1, long k,        \
                            long columns, long across) {                               \
        for (long l = 0; l < k; l++, b += b0, out += across) {                         \
            if (b1 == 1)                                                               \
                memcpy(out, b, columns * sizeof *out);                                 \
            else                                                                       \
                for (long c = 0; c < columns; c++) out[c] = b[c * b1];                 \
            for (long c = columns; c < across; c++) out[c] = 0;                        \
        }                                                                              \
    }

TILE(double, f64)
TILE(float, f32)

/* One row of a product, where the columns of the other matrix lie in a row each. */
#define ROW_OF_PRODUCT(type, name)                                                     \
    static void dots_##name(type *out, const type *x, const type *b, long b1, long n,  \
                            long k, int add) {                                         \
        for (long j = 0; j < n; j++, b += b1) {                                        \
            type t[8] = {0};                                                           \
            long l = 0;                                                                \
            for (; l + 8 <= k; l += 8)                                                 \
                for (int q = 0; q < 8; q++) t[q] += x[l + q] * b[l + q];               \
            for (; l < k; l++) t[l & 7] += x[l] * b[l];                                \
            const type sum = ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7])); \
            out[j] = add ? out[j] + sum : sum;                                         \
        }                                                                              \
    }                                                                                  \
    static void row_##name(type *restrict out, const type *x, long a1, const type *b,  \
                           long b0, long b1, long n, long k, int add) {                \
        if (!add)                                                                      \
            for (long j = 0; j < n; j++) out[j] = 0;                                   \
        for (long l = 0; l < k; l++, b += b0) {                                        \
            const type z = x[l * a1];                                                  \
            if (b1 == 1)                                                               \
                for (long j = 0; j < n; j++) out[j] += z * b[j];                       \
            else                                                                       \
                for (long j = 0; j < n; j++) out[j] += z * b[j * b1];                  \
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
            for (long i = 0; i < m; i++)                                               \
                if (b1 != 1 && b0 == 1 && a1 == 1)                                     \
                    dots_##name(out + i * n, a + i * a0, b, b1, n, k, add);            \
                else                                                                   \
                    row_##name(out + i * n, a + i * a0, a1, b, b0, b1, n, k, add);     \
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
        for (long j = 0; j < n; j += ACROSS)                                           \
            for (long l = 0; l < k; l += DEEPEST) {                                    \
                const long columns = n - j < ACROSS ? n - j : ACROSS;                  \
                const long deep = k - l < DEEPEST ? k - l : DEEPEST;                   \
                const long across = (columns + LANES - 1) / LANES * LANES;             \
                const type *first = b + l * b0 + j * b1;                               \
                long step = b0;                                                        \
                /* Rows lie as they should, and none is read beyond its end. */        \
                const int near = b1 == 1 && deep * b0 * (long)sizeof *b <= NEAR;       \
                if (across > columns || !near) {                                       \
                    pack_##name(packed, first, b0, b1, deep, columns, across);         \
                    first = packed;                                                    \
                    step = across;                                                     \
                }                                                                      \
                slab_##name(out + j, n, a + l * a1, a0, a1, first, step, deep, m, columns, \
                            add || l > 0);                                             \
            }                                                                          \
    }                                                                                  \
    void pg_matmul_##name(type *restrict out, const type *a, long a0, long a1,         \
                          const type *b, long b0, long b1, long m, long n, long k) {   \
        if (m > 1 && n > 1 && gemm_##name(out, a, a0, a1, b, b0, b1, m, n, k)) return; \
        product_##name(out, a, a0, a1, b, b0, b1, m, n, k, 0);                         \
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

/* Groups of blocks one after the other, or in threads where there are some; what a failure says. */
int (*pg_crew)(int (*)(void *const *, char *, long), void *const *, char *, long, long);

int pg_share(int (*group)(void *const *, char *, long), void *const *arrays, char *arena,
             long groups, long bytes) {
    int failed = 0;
    if (pg_crew) return pg_crew(group, arrays, arena, groups, bytes);
    for (long g = 0; g < groups && !failed; g++) failed = group(arrays, arena, g);
    return failed;
}
