/* Systems of linear equations and factors of matrices: parts of native kernels, taken as they are
 * needed.
 *
 * What the marks mean is told in parts.py. Matrices are in row-major order; elimination goes by
 * rows, so that inner loops are along them. Functions that return something return 0, or 1 where
 * there is no result, as of a matrix without an inverse. Of what is not finite they return 2: which
 * elements of the result are finite may then depend on the order of the operations. */

/* = f */
/* The sum of products of n pairs of elements that are so far apart, in four runs beside each
 * other. */
static inline T pg_dot_T(const T *x, long by_x, const T *y, long by_y, long n) {
    T s[4] = {0, 0, 0, 0};
    const long whole = n - n % 4;
    for (long i = 0; i < whole; i += 4)
        for (long k = 0; k < 4; k++) s[k] += x[(i + k) * by_x] * y[(i + k) * by_y];
    for (long i = whole; i < n; i++) s[i - whole] += x[i * by_x] * y[i * by_y];
    return (s[0] + s[1]) + (s[2] + s[3]);
}

/* = f */
/* Elimination in place, with the largest element of each column as its pivot: factors below the
 * diagonal, and the rest above. `order` has which row of a each row was. */
static void pg_lu_T(T *a, int64_t *order, long m, long n) {
    for (long i = 0; i < m; i++) order[i] = i;
    for (long j = 0; j < m && j < n; j++) {
        long top = j;
        for (long i = j + 1; i < m; i++)
            if (pg_above_T(fabs_F(a[i * n + j]), fabs_F(a[top * n + j]))) top = i;
        if (top != j) {
            for (long k = 0; k < n; k++) {
                const T t = a[j * n + k];
                a[j * n + k] = a[top * n + k];
                a[top * n + k] = t;
            }
            const int64_t t = order[j];
            order[j] = order[top];
            order[top] = t;
        }
        const T pivot = a[j * n + j];
        if (pivot == 0) continue;
        for (long i = j + 1; i < m; i++) {
            const T f = a[i * n + j] /= pivot;
            for (long k = j + 1; k < n; k++) a[i * n + k] -= f * a[j * n + k];
        }
    }
}

/* = f */
/* The rows that those of an m x n matrix were, and its factors; k is the smaller of m and n. */
static void pg_lu_factors_T(int64_t *rows, T *lower, T *upper, const T *a, T *room, long m, long n,
                            long k) {
    memcpy(room, a, (size_t)(m * n) * sizeof *a);
    pg_lu_T(room, rows, m, n);
    for (long i = 0; i < m; i++)
        for (long j = 0; j < k; j++) lower[i * k + j] = j < i ? room[i * n + j] : i == j;
    for (long i = 0; i < k; i++)
        for (long j = 0; j < n; j++) upper[i * n + j] = j < i ? 0 : room[i * n + j];
}

/* = f */
/* Solves with one triangle of a, or its transpose, in place, for m right-hand sides in z. */
static int pg_triangular_T(T *restrict z, const T *restrict a, long n, long m,
                           int lower, int transposed, int unit) {
    const long down = transposed ? 1 : n, across = transposed ? n : 1;
    const int forward = lower != transposed;
    int told = 0;
    if (!unit)
        for (long k = 0; k < n; k++) {
            if (a[k * n + k] == 0) return 1;
            if (!isfinite(a[k * n + k])) told = 2;
        }
    for (long t = 0; t < n; t++) {
        const long k = forward ? t : n - 1 - t;
        const long first = forward ? 0 : k + 1, end = forward ? k : n;
        if (m == 1 && !transposed) {
            const T *const row = a + k * n;
            T s[8] = {0};
            long i = first;
            for (; i + 8 <= end; i += 8)
                for (long l = 0; l < 8; l++) s[l] += row[i + l] * z[i + l];
            for (; i < end; i++) s[0] += row[i] * z[i];
            z[k] -= ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
            if (!unit) z[k] /= a[k * n + k];
            continue;
        }
        if (!unit)
            for (long j = 0; j < m; j++) z[k * m + j] /= a[k * n + k];
        const long from = forward ? k + 1 : 0, to = forward ? n : k;
        if (m == 1) {
            for (long i = from; i < to; i++) z[i] -= a[k * n + i] * z[k];
            continue;
        }
        for (long i = from; i < to; i++) {
            const T f = a[i * down + k * across];
            for (long j = 0; j < m; j++) z[i * m + j] -= f * z[k * m + j];
        }
    }
    return told;
}

/* = f */
/* Solves with triangular matrices of `count` elements at rows and columns, in place, for m
 * right-hand sides each: elements in order, or in reverse order. */
static int pg_sparse_triangular_T(T *restrict z, const T *restrict data,
                                  const int64_t *restrict rows, const int64_t *restrict columns,
                                  long many, long count, long n, long m, int reverse) {
    for (long s = 0; s < many; s++, data += count, z += n * m)
        for (long t = 0; t < count; t++) {
            const long p = reverse ? count - 1 - t : t;
            const int64_t i = rows[p], j = columns[p];
            if (i < 0 || i >= n || j < 0 || j >= n) return 1;
            const T a = data[p];
            if (i == j && a == 0) return 1;
            if (m == 1)
                z[i] = i == j ? z[i] / a : z[i] - a * z[j];
            else if (i == j)
                for (long k = 0; k < m; k++) z[i * m + k] /= a;
            else
                for (long k = 0; k < m; k++) z[i * m + k] -= a * z[j * m + k];
        }
    return 0;
}

/* = f */
/* Solves a z = b for m right-hand sides, which are those of the identity if b is null. `room` has
 * n x n elements, and `order` n. */
static int pg_solve_T(T *z, const T *a, const T *b, T *room, int64_t *order,
                      long n, long m) {
    memcpy(room, a, (size_t)(n * n) * sizeof *a);
    pg_lu_T(room, order, n, n);
    for (long i = 0; i < n; i++)
        for (long j = 0; j < m; j++)
            z[i * m + j] = b ? b[order[i] * m + j] : (T)(order[i] == j);
    pg_triangular_T(z, room, n, m, 1, 0, 1);
    return pg_triangular_T(z, room, n, m, 0, 0, 0);
}

/* = f */
/* The sign of a determinant, and the logarithm of its size. */
static int pg_slogdet_T(T *sign, T *size, const T *a, T *room, int64_t *order, long n) {
    memcpy(room, a, (size_t)(n * n) * sizeof *a);
    pg_lu_T(room, order, n, n);
    T turn = 1, sum = 0;
    int told = 0;
    for (long i = 0; i < n; i++) {
        const T pivot = room[i * n + i];
        if (!isfinite(pivot)) told = 2;
        if (pivot == 0) {
            *sign = 0;
            *size = -INFINITY;
            return told;
        }
        turn = pivot < 0 ? -turn : turn;
        sum += log_F(fabs_F(pivot));
    }
    /* A cycle of rows turns the sign once less than it is long. */
    for (long i = 0; i < n; i++)
        while (order[i] != i) {
            const int64_t t = order[i];
            order[i] = order[t];
            order[t] = t;
            turn = -turn;
        }
    *sign = turn;
    *size = sum;
    return told;
}

/* = f */
/* The determinant, as NumPy has it: by logarithms. */
static int pg_det_T(T *z, const T *a, T *room, int64_t *order, long n) {
    T sign, size;
    const int told = pg_slogdet_T(&sign, &size, a, room, order, n);
    *z = sign * exp_F(size);
    return told;
}

/* = f */
/* The lower triangular factor of a positive definite matrix, of which the lower triangle is read;
 * `room` has n elements. */
static int pg_cholesky_T(T *restrict z, const T *a, T *restrict room, long n) {
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++) z[i * n + k] = k <= i ? a[i * n + k] : 0;
    int told = 0;
    for (long j = 0; j < n; j++) {
        const T square = z[j * n + j];
        if (square <= 0) return 1;
        if (!isfinite(square)) told = 2;
        const T root = sqrt_F(square);
        z[j * n + j] = root;
        for (long i = j + 1; i < n; i++) room[i] = z[i * n + j] /= root;
        for (long i = j + 1; i < n; i++) {
            const T f = room[i];
            for (long k = j + 1; k <= i; k++) z[i * n + k] -= f * room[k];
        }
    }
    return told;
}

/* = f */
static void pg_turn_T(T *x, long n) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < i; j++) {
            const T t = x[i * n + j];
            x[i * n + j] = x[j * n + i];
            x[j * n + i] = t;
        }
}

/* = f */
/* l F / 2 for the lower triangle l of a factor, where F is the lower triangle, with half of its
 * diagonal, of inv(l) (d + d') inv(l)'; `room` has n x n elements. */
static int pg_cholesky_tangent_T(T *restrict z, const T *restrict l, const T *d, T *restrict room,
                                 long n) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < n; j++) room[i * n + j] = d[i * n + j] + d[j * n + i];
    const int told = pg_triangular_T(room, l, n, n, 1, 0, 0);
    if (told == 1) return 1;
    pg_turn_T(room, n);
    pg_triangular_T(room, l, n, n, 1, 0, 0);
    for (long i = 0; i < n; i++) room[i * n + i] /= 2;
    for (long i = 0; i < n; i++) {
        for (long j = 0; j < n; j++) z[i * n + j] = 0;
        for (long k = 0; k <= i; k++) {
            /* What was solved for is symmetric: its lower triangle is there as rows. */
            const T f = l[i * n + k] / 2;
            for (long j = 0; j <= k; j++) z[i * n + j] += f * room[k * n + j];
        }
    }
    return told;
}

/* = f */
/* The symmetric part of inv(l)' F inv(l), where F is the lower triangle, with half of its diagonal,
 * of l' c for the lower triangles of a factor and of c. */
static int pg_cholesky_slope_T(T *restrict z, const T *restrict l, const T *restrict c, long n) {
    for (long i = 0; i < n * n; i++) z[i] = 0;
    for (long k = 0; k < n; k++)
        for (long i = 0; i <= k; i++) {
            const T f = l[k * n + i];
            for (long j = 0; j <= i; j++) z[i * n + j] += f * c[k * n + j];
        }
    for (long i = 0; i < n; i++) z[i * n + i] /= 2;
    const int told = pg_triangular_T(z, l, n, n, 1, 1, 0);
    if (told == 1) return 1;
    pg_turn_T(z, n);
    pg_triangular_T(z, l, n, n, 1, 1, 0);
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++)
            z[i * n + j] = z[j * n + i] = (z[i * n + j] + z[j * n + i]) / 2;
    return told;
}
