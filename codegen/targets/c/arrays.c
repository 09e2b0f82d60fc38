/* Functions of whole arrays: parts of native kernels, taken as they are needed.
 *
 * What the marks mean is told in parts.py. Arrays are in row-major order, without gaps. */

/* = fiu */
/* Sums so far along the middle of three axes, from its end where it goes back. */
static void pg_cumsum_T(T *z, const T *x, long outer, long n, long inner, int back) {
    for (long o = 0; o < outer; o++, z += n * inner, x += n * inner)
        for (long t = 0; t < n; t++) {
            const long k = back ? n - 1 - t : t, last = back ? k + 1 : k - 1;
            for (long i = 0; i < inner; i++)
                z[k * inner + i] = t ? pg_plus_T(z[last * inner + i], x[k * inner + i]) : x[k * inner + i];
        }
}

/* = fiu */
/* Products so far along the middle of three axes. */
static void pg_cumprod_T(T *z, const T *x, long outer, long n, long inner) {
    for (long o = 0; o < outer; o++, z += n * inner, x += n * inner)
        for (long t = 0; t < n; t++) {
            const long k = t;
            for (long i = 0; i < inner; i++)
                z[k * inner + i] = t ? pg_times_T(z[(k - 1) * inner + i], x[k * inner + i]) : x[k * inner + i];
        }
}

/* = fiu */
/* The greatest so far along the middle of three axes. */
static void pg_cummax_T(T *z, const T *x, long outer, long n, long inner) {
    for (long o = 0; o < outer; o++, z += n * inner, x += n * inner)
        for (long t = 0; t < n; t++) {
            const long k = t;
            for (long i = 0; i < inner; i++)
                z[k * inner + i] = t ? pg_greater_T(z[(k - 1) * inner + i], x[k * inner + i]) : x[k * inner + i];
        }
}

/* = fiu */
/* The smallest so far along the middle of three axes. */
static void pg_cummin_T(T *z, const T *x, long outer, long n, long inner) {
    for (long o = 0; o < outer; o++, z += n * inner, x += n * inner)
        for (long t = 0; t < n; t++) {
            const long k = t;
            for (long i = 0; i < inner; i++)
                z[k * inner + i] = t ? pg_smaller_T(z[(k - 1) * inner + i], x[k * inner + i]) : x[k * inner + i];
        }
}

/* = fiu */
/* The place of the first extremum along the middle of three axes. */
static void pg_argmax_T(int64_t *z, const T *x, long outer, long n, long inner) {
    for (long o = 0; o < outer; o++, z += inner, x += n * inner) {
        if (inner == 1) {
            /* Which it is, in runs beside each other, and then where it stands. */
            T a[8];
            for (int k = 0; k < 8; k++) a[k] = x[0];
            for (long i = 0; i + 8 <= n; i += 8)
                for (int k = 0; k < 8; k++) a[k] = pg_above_T(x[i + k], a[k]) ? x[i + k] : a[k];
            for (long i = n - n % 8; i < n; i++) a[0] = pg_above_T(x[i], a[0]) ? x[i] : a[0];
            for (int k = 1; k < 8; k++) a[0] = pg_above_T(a[k], a[0]) ? a[k] : a[0];
            long at = 0;
            while (pg_above_T(a[0], x[at])) at++;
            z[0] = at;
            continue;
        }
        for (long i = 0; i < inner; i++) z[i] = 0;
        for (long k = 1; k < n; k++)
            for (long i = 0; i < inner; i++)
                if (pg_above_T(x[k * inner + i], x[z[i] * inner + i])) z[i] = k;
    }
}

/* = fiu */
/* The place of the first extremum along the middle of three axes. */
static void pg_argmin_T(int64_t *z, const T *x, long outer, long n, long inner) {
    for (long o = 0; o < outer; o++, z += inner, x += n * inner) {
        if (inner == 1) {
            /* Which it is, in runs beside each other, and then where it stands. */
            T a[8];
            for (int k = 0; k < 8; k++) a[k] = x[0];
            for (long i = 0; i + 8 <= n; i += 8)
                for (int k = 0; k < 8; k++) a[k] = pg_below_T(x[i + k], a[k]) ? x[i + k] : a[k];
            for (long i = n - n % 8; i < n; i++) a[0] = pg_below_T(x[i], a[0]) ? x[i] : a[0];
            for (int k = 1; k < 8; k++) a[0] = pg_below_T(a[k], a[0]) ? a[k] : a[0];
            long at = 0;
            while (pg_below_T(a[0], x[at])) at++;
            z[0] = at;
            continue;
        }
        for (long i = 0; i < inner; i++) z[i] = 0;
        for (long k = 1; k < n; k++)
            for (long i = 0; i < inner; i++)
                if (pg_below_T(x[k * inner + i], x[z[i] * inner + i])) z[i] = k;
    }
}

/* = fiu */
/* Ascending order, by runs that are put in order one by one and then merged, in turns into
 * `room`, of n elements, and back. Equal elements stay in their order. */
static void pg_sort_run_T(T *x, T *room, long n) {
    const long run = 16;
    for (long s = 0; s < n; s += run) {
        const long end = s + run < n ? s + run : n;
        for (long i = s + 1; i < end; i++) {
            const T v = x[i];
            long j = i;
            for (; j > s && pg_before_T(v, x[j - 1]); j--) x[j] = x[j - 1];
            x[j] = v;
        }
    }
    T *from = x, *to = room;
    for (long size = run; size < n; size *= 2) {
        for (long s = 0; s < n; s += 2 * size) {
            const long middle = s + size < n ? s + size : n;
            const long end = middle + size < n ? middle + size : n;
            long a = s, b = middle;
            for (long k = s; k < end; k++)
                to[k] = a < middle && (b >= end || !pg_before_T(from[b], from[a])) ? from[a++]
                                                                                   : from[b++];
        }
        T *const other = from;
        from = to, to = other;
    }
    if (from != x) memcpy(x, from, (size_t)n * sizeof *x);
}

/* = fiu */
/* The places of elements of x in ascending order; equal ones stay in their order. */
static void pg_argsort_run_T(int64_t *z, int64_t *room, const T *x, long n) {
    const long run = 16;
    for (long i = 0; i < n; i++) z[i] = i;
    for (long s = 0; s < n; s += run) {
        const long end = s + run < n ? s + run : n;
        for (long i = s + 1; i < end; i++) {
            const T v = x[i];
            long j = i;
            for (; j > s && pg_before_T(v, x[z[j - 1]]); j--) z[j] = z[j - 1];
            z[j] = i;
        }
    }
    int64_t *from = z, *to = room;
    for (long size = run; size < n; size *= 2) {
        for (long s = 0; s < n; s += 2 * size) {
            const long middle = s + size < n ? s + size : n;
            const long end = middle + size < n ? middle + size : n;
            long a = s, b = middle;
            for (long k = s; k < end; k++)
                to[k] = a < middle && (b >= end || !pg_before_T(x[from[b]], x[from[a]]))
                            ? from[a++]
                            : from[b++];
        }
        int64_t *const other = from;
        from = to, to = other;
    }
    if (from != z) memcpy(z, from, (size_t)n * sizeof *z);
}

/* = fiu */
/* Along the middle of three axes; `room` has 2 n elements. */
static void pg_sort_T(T *z, const T *x, T *room, long outer, long n, long inner) {
    if (inner == 1) memcpy(z, x, (size_t)(outer * n) * sizeof *x);
    for (long o = 0; o < outer; o++)
        for (long i = 0; i < inner; i++) {
            T *const row = inner == 1 ? z + o * n : room;
            const long first = o * n * inner + i;
            if (inner == 1) {
                pg_sort_run_T(row, room + n, n);
                continue;
            }
            for (long k = 0; k < n; k++) row[k] = x[first + k * inner];
            pg_sort_run_T(row, room + n, n);
            for (long k = 0; k < n; k++) z[first + k * inner] = row[k];
        }
}

/* = fiu */
/* Along the middle of three axes; `room` has n elements, and `places` 2 n. */
static void pg_argsort_T(int64_t *z, const T *x, T *room, int64_t *places, long outer, long n,
                         long inner) {
    for (long o = 0; o < outer; o++)
        for (long i = 0; i < inner; i++) {
            const long first = o * n * inner + i;
            for (long k = 0; k < n; k++) room[k] = x[first + k * inner];
            pg_argsort_run_T(places, places + n, room, n);
            for (long k = 0; k < n; k++) z[first + k * inner] = places[k];
        }
}

/* = fiu */
/* Elements at these positions along the middle of three axes; 1 if one is out of range. */
static int pg_reorder_back_T(T *z, const T *x, const int64_t *index, long outer, long n,
                             long inner) {
    for (long o = 0; o < outer; o++)
        for (long k = 0; k < n; k++)
            for (long i = 0; i < inner; i++) {
                const long at = (o * n + k) * inner + i;
                const uint64_t to = (uint64_t)index[at];
                if (to >= (uint64_t)n) return 1;
                z[(o * n + (long)to) * inner + i] = x[at];
            }
    return 0;
}

/* = fiu */
/* Where the elements of v belong in a, which is in ascending order. */
static void pg_searchsorted_T(int64_t *z, const T *a, const T *v, long n, long count, int right) {
    for (long i = 0; i < count; i++) {
        long low = 0, high = n;
        while (low < high) {
            const long middle = low + (high - low) / 2;
            const int before = right ? !pg_before_T(v[i], a[middle]) : pg_before_T(a[middle], v[i]);
            if (before)
                low = middle + 1;
            else
                high = middle;
        }
        z[i] = low;
    }
}

/* = iu */
/* The product of an m x k matrix and a k x n matrix. */
static void pg_product_T(T *z, const T *x, const T *y, long m, long n, long k) {
    for (long i = 0; i < m; i++) {
        for (long j = 0; j < n; j++) z[i * n + j] = 0;
        for (long l = 0; l < k; l++)
            for (long j = 0; j < n; j++)
                z[i * n + j] = pg_plus_T(z[i * n + j], pg_times_T(x[i * k + l], y[l * n + j]));
    }
}

/* = */
/* The 128 bits of a product. */
static inline void pg_wide_product(uint64_t x, uint64_t y, uint64_t *high, uint64_t *low) {
    const uint64_t x0 = x & 0xffffffffu, x1 = x >> 32, y0 = y & 0xffffffffu, y1 = y >> 32;
    const uint64_t a = x0 * y0, b = x1 * y0 + (a >> 32), c = x0 * y1 + (b & 0xffffffffu);
    *high = x1 * y1 + (b >> 32) + (c >> 32);
    *low = x * y;
}

/* = */
/* Where an element is, by its place in the order of elements. */
static inline long pg_offset(long place, const long *sizes, const long *strides, long axes) {
    long found = 0;
    for (long i = axes - 1; i >= 0; place /= sizes[i--]) found += place % sizes[i] * strides[i];
    return found;
}

/* = f */
/* Roots of sums of squares over all but the first `kept` of some axes, divided by a number. Sums
 * that are not between `low` and `high` may have over- or underflowed: they are computed again,
 * with scaled elements. */
static void pg_root_of_squares_T(T *z, const T *x, const T *squares, T divisor,
                                 T low, T high, const long *sizes, const long *strides,
                                 long kept, long axes) {
    const long left = axes - kept, *const counts = sizes + kept, *const steps = strides + kept;
    long outer = 1, inner = 1;
    for (long i = 0; i < kept; i++) outer *= sizes[i];
    for (long i = 0; i < left; i++) inner *= counts[i];
    for (long o = 0; o < outer; o++) {
        z[o] = sqrt_F(squares[o] / divisor);
        if (squares[o] >= low && squares[o] <= high) continue;
        const T *const row = x + pg_offset(o, sizes, strides, kept);
        T most = 0, total = 0;
        for (long i = 0; i < inner; i++)
            most = pg_greater_T(most, fabs_F(row[pg_offset(i, counts, steps, left)]));
        int e = 0;
        if (isfinite(most)) (void)frexp_F(most, &e);
        for (long i = 0; i < inner; i++) {
            const T part = ldexp_F(row[pg_offset(i, counts, steps, left)], -e);
            total += part * part;
        }
        z[o] = ldexp_F(sqrt_F(total / divisor), e);
    }
}

/* = */
/* Four random numbers of 64 bits, by ten rounds of Philox (J. K. Salmon et al., Parallel random
 * numbers: as easy as 1, 2, 3, 2011), of the counter `block` and of a key of one word. */
static inline void pg_philox(uint64_t *z, uint64_t block, uint64_t key) {
    uint64_t first = key, second = 0;
    z[0] = block, z[1] = 0, z[2] = 0, z[3] = 0;
    for (int round = 0; round < 10; round++) {
        uint64_t h0, l0, h1, l1;
        pg_wide_product(UINT64_C(0xD2E7470EE14C6C93), z[0], &h0, &l0);
        pg_wide_product(UINT64_C(0xCA5A826395121157), z[2], &h1, &l1);
        z[0] = h1 ^ z[1] ^ first;
        z[1] = l1;
        z[2] = h0 ^ z[3] ^ second;
        z[3] = l0;
        first += UINT64_C(0x9E3779B97F4A7C15);
        second += UINT64_C(0xBB67AE8584CAA73B);
    }
}

/* = f */
/* n numbers from `low` on, less than `width` above, and at most `top`. */
static void pg_uniform_T(T *z, uint64_t key, long n, double low, double width, T top) {
    uint64_t four[4];
    for (long i = 0; i < n; i++) {
        if (i % 4 == 0) pg_philox(four, (uint64_t)(i / 4 + 1), key);
        const T x = (T)(low + width * ((double)(four[i % 4] >> 11) * 0x1p-53));
        z[i] = x < top ? x : top;
    }
}

/* = */
/* n truth values, of which a share is true. */
static void pg_bernoulli(uint8_t *z, uint64_t key, long n, double share) {
    uint64_t four[4];
    for (long i = 0; i < n; i++) {
        if (i % 4 == 0) pg_philox(four, (uint64_t)(i / 4 + 1), key);
        z[i] = (double)(four[i % 4] >> 11) * 0x1p-53 < share;
    }
}
