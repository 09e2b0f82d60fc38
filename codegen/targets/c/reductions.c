/* Reductions of runs of elements. A kernel has those that it calls: lines at the end. */

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

/* `first` times n elements: in order, as what parts of a product are may overflow where it does not;
 * or, where that may be, in eight runs. */
#ifdef LOOSE
#define PRODUCT(kind, type, name)                                                      \
    type pg_##kind##_##name(const type *in, long by, long n, type first) {             \
        type a[8] = {first, 1, 1, 1, 1, 1, 1, 1};                                      \
        long i = 0;                                                                    \
        if (by == 1)                                                                   \
            for (; i + 8 <= n; i += 8)                                                 \
                for (int k = 0; k < 8; k++) a[k] *= in[i + k];                         \
        for (; i < n; i++) a[i & 7] *= in[i * by];                                     \
        for (int k = 1; k < 8; k++) a[0] *= a[k];                                      \
        return a[0];                                                                   \
    }
#else
#define PRODUCT(kind, type, name)                                                      \
    type pg_##kind##_##name(const type *in, long by, long n, type first) {             \
        for (long i = 0; i < n; i++) first *= in[i * by];                              \
        return first;                                                                  \
    }
#endif

/* Eight numbers beside each other, wherever they are in memory, and which of them are chosen. */
#define OCTET(type, whole, name)                                                       \
    typedef type name##_octet                                                          \
        __attribute__((vector_size(8 * sizeof(type)), aligned(sizeof(type)), may_alias)); \
    typedef whole name##_choice __attribute__((vector_size(8 * sizeof(type))));

OCTET(double, int64_t, f64)
OCTET(float, int32_t, f32)

#define UNROLLED _Pragma("GCC unroll 4")

/* Extrema do so octet by octet, and four of these at a time: compilers choose them one by one. Of
   zeros of both signs it is the last one, as in NumPy. */
#define EXTREMUM(kind, type, name, first, beyond, combine)                             \
    static inline name##_octet kind##_octet_##name(name##_octet x, name##_octet y) {   \
        const name##_choice over = (y beyond x) | (y != y);                            \
        return (name##_octet)(((name##_choice)y & over) | ((name##_choice)x & ~over)); \
    }                                                                                  \
    type pg_##kind##_##name(const type *in, long by, long n) {                         \
        name##_octet t[4];                                                             \
        UNROLLED for (int q = 0; q < 4; q++) t[q] = first + (name##_octet){0};         \
        long i = 0;                                                                    \
        if (by == 1) {                                                                 \
            for (; i + 32 <= n; i += 32)                                               \
                UNROLLED for (int q = 0; q < 4; q++)                                   \
                    t[q] = kind##_octet_##name(t[q], *(const name##_octet *)(in + i + 8 * q)); \
            for (; i + 8 <= n; i += 8)                                                 \
                t[0] = kind##_octet_##name(t[0], *(const name##_octet *)(in + i));     \
        }                                                                              \
        t[0] = kind##_octet_##name(t[0], t[1]), t[2] = kind##_octet_##name(t[2], t[3]); \
        type a[8];                                                                     \
        *(name##_octet *)a = kind##_octet_##name(t[0], t[2]);                          \
        for (; i < n; i++) a[i & 7] = combine(a[i & 7], in[i * by]);                   \
        for (int k = 0; k < 8; k += 2) a[k] = combine(a[k], a[k + 1]);                 \
        a[0] = combine(a[0], a[2]);                                                    \
        a[4] = combine(a[4], a[6]);                                                    \
        a[0] = combine(a[0], a[4]);                                                    \
        for (i = n; a[0] == 0 && i-- > 0;)                                             \
            if (in[i * by] == 0) return in[i * by];                                    \
        return a[0];                                                                   \
    }

/* The order does not matter to whole numbers. */
#define WHOLE(kind, type, name, first, combine)                                    \
    type pg_##kind##_##name(const type *in, long by, long n) {                         \
        type a = first;                                                                \
        for (long i = 0; i < n; i++) a = combine(a, in[i * by]);                       \
        return a;                                                                      \
    }

REDUCTION(sum, double, f64, 0, SUM)
PRODUCT(prod, double, f64)
EXTREMUM(max, double, f64, -(double)INFINITY, >, GREATER)
EXTREMUM(min, double, f64, (double)INFINITY, <, SMALLER)
REDUCTION(sum, float, f32, 0, SUM)
PRODUCT(prod, float, f32)
EXTREMUM(max, float, f32, -(float)INFINITY, >, GREATER)
EXTREMUM(min, float, f32, (float)INFINITY, <, SMALLER)
WHOLE(sum, int64_t, i64, 0, SUM)
PRODUCT(prod, int64_t, i64)
WHOLE(max, int64_t, i64, INT64_MIN, GREATER)
WHOLE(min, int64_t, i64, INT64_MAX, SMALLER)
WHOLE(sum, uint64_t, u64, 0, SUM)
PRODUCT(prod, uint64_t, u64)
WHOLE(max, uint64_t, u64, 0, GREATER)
WHOLE(min, uint64_t, u64, UINT64_MAX, SMALLER)
WHOLE(sum, int32_t, i32, 0, SUM)
PRODUCT(prod, int32_t, i32)
WHOLE(max, int32_t, i32, INT32_MIN, GREATER)
WHOLE(min, int32_t, i32, INT32_MAX, SMALLER)
WHOLE(sum, uint32_t, u32, 0, SUM)
PRODUCT(prod, uint32_t, u32)
WHOLE(max, uint32_t, u32, 0, GREATER)
WHOLE(min, uint32_t, u32, UINT32_MAX, SMALLER)
WHOLE(sum, int16_t, i16, 0, SUM)
PRODUCT(prod, int16_t, i16)
WHOLE(max, int16_t, i16, INT16_MIN, GREATER)
WHOLE(min, int16_t, i16, INT16_MAX, SMALLER)
WHOLE(sum, uint16_t, u16, 0, SUM)
PRODUCT(prod, uint16_t, u16)
WHOLE(max, uint16_t, u16, 0, GREATER)
WHOLE(min, uint16_t, u16, UINT16_MAX, SMALLER)
WHOLE(sum, int8_t, i8, 0, SUM)
PRODUCT(prod, int8_t, i8)
WHOLE(max, int8_t, i8, INT8_MIN, GREATER)
WHOLE(min, int8_t, i8, INT8_MAX, SMALLER)
WHOLE(sum, uint8_t, u8, 0, SUM)
PRODUCT(prod, uint8_t, u8)
WHOLE(max, uint8_t, u8, 0, GREATER)
WHOLE(min, uint8_t, u8, UINT8_MAX, SMALLER)
