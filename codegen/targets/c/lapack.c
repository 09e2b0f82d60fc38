/* Systems of linear equations and factors of matrices by LAPACK: parts of native kernels, as those
 * of linear.c are, where somebody has told where its functions are.
 *
 * LAPACK's matrices are in column-major order: those that are here are their transposes there.
 * Functions that return something return 0; 1 where LAPACK has found no result, or cannot be asked
 * for one; 2 of what is not finite, and of pivots so small that LAPACK, which multiplies by what
 * numbers are to be divided by, has no such factor for them. */

/* = f */
/* Where functions are, in the order that codegen/runtime/lapack.py has them in. */
void *pg_lapack_T[11];
static inline void *pg_routine_T(int k) { return pg_lapack_T[k]; }

/* = */
/* Whether whole numbers there have 64 bits. Where they have 32 these are the first ones here. */
int pg_lapack_wide;
/* The row that row i has changed places with. */
static inline long pg_changed(const int64_t *order, long i) {
    if (pg_lapack_wide) return (long)order[i] - 1;
    int32_t k;
    memcpy(&k, (const char *)order + 4 * i, sizeof k);
    return (long)k - 1;
}

/* = */
/* Whether LAPACK can count that far. */
static inline int pg_counts(long n) { return n <= INT32_MAX; }

/* = f */
/* The transpose of an m x n matrix. */
static void pg_flip_T(T *restrict z, const T *restrict x, long m, long n) {
    enum { SIDE = 16 };
    for (long i = 0; i < m; i += SIDE)
        for (long j = 0; j < n; j += SIDE) {
            const long rows = m - i < SIDE ? m - i : SIDE, columns = n - j < SIDE ? n - j : SIDE;
            if (rows == SIDE && columns == SIDE)
                for (long c = 0; c < SIDE; c++)
                    for (long r = 0; r < SIDE; r++) z[(j + c) * m + i + r] = x[(i + r) * n + j + c];
            else
                for (long c = 0; c < columns; c++)
                    for (long r = 0; r < rows; r++) z[(j + c) * m + i + r] = x[(i + r) * n + j + c];
        }
}

/* = f */
/* The same with other numbers on one of both sides. */
static void pg_flip_wide_T(double *restrict z, const T *restrict x, long m, long n) {
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) z[j * m + i] = x[i * n + j];
}

/* = f */
static void pg_flip_narrow_T(T *restrict z, const double *restrict x, long m, long n) {
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++) z[j * m + i] = (T)x[i * n + j];
}

/* = f */
static inline void pg_trsm_T(const char *side, const char *part, const char *turn, const char *unit,
                             long m, long n, const T *a, long lda, T *z, long ldz) {
    const int64_t mm = m, nn = n, la = lda, lz = ldz;
    const T one = 1;
    ((void (*)(const char *, const char *, const char *, const char *, const int64_t *,
               const int64_t *, const T *, const T *, const int64_t *, T *,
               const int64_t *))pg_routine_T(2))(side, part, turn, unit, &mm, &nn, &one, a, &la, z,
                                                 &lz);
}

/* = f */
/* z -= x y, for factors that may be transposed. */
static inline void pg_gemm_T(const char *turn_x, const char *turn_y, long m, long n, long k,
                             const T *x, const T *y, T *z, long apart) {
    const int64_t mm = m, nn = n, kk = k, lead = apart;
    const T less = -1, one = 1;
    ((void (*)(const char *, const char *, const int64_t *, const int64_t *, const int64_t *,
               const T *, const T *, const int64_t *, const T *, const int64_t *, const T *, T *,
               const int64_t *))pg_routine_T(5))(turn_x, turn_y, &mm, &nn, &kk, &less, x, &lead, y,
                                                 &lead, &one, z, &lead);
}

/* = f */
/* z -= x y, for a symmetric y, of which the upper triangle is read. */
static inline void pg_symm_T(long m, long n, const T *y, const T *x, T *z, long apart) {
    const int64_t mm = m, nn = n, lead = apart;
    const T less = -1, one = 1;
    ((void (*)(const char *, const char *, const int64_t *, const int64_t *, const T *, const T *,
               const int64_t *, const T *, const int64_t *, const T *, T *,
               const int64_t *))pg_routine_T(3))("Right", "Upper", &mm, &nn, &less, y, &lead, x,
                                                 &lead, &one, z, &lead);
}

/* = f */
/* The upper triangle of z -= x' y + y' x. */
static inline void pg_syr2k_T(long n, long k, const T *x, const T *y, T *z, long apart) {
    const int64_t nn = n, kk = k, lead = apart;
    const T less = -1, one = 1;
    ((void (*)(const char *, const char *, const int64_t *, const int64_t *, const T *, const T *,
               const int64_t *, const T *, const int64_t *, const T *, T *,
               const int64_t *))pg_routine_T(10))("Upper", "Transposed", &nn, &kk, &less, x, &lead,
                                                  y, &lead, &one, z, &lead);
}

/* = f */
static inline void pg_trsv_T(const char *part, const char *turn, const char *unit, long n,
                             const T *a, T *z) {
    const int64_t nn = n, one = 1;
    ((void (*)(const char *, const char *, const char *, const int64_t *, const T *,
               const int64_t *, T *, const int64_t *))pg_routine_T(4))(part, turn, unit, &nn, a,
                                                                       &nn, z, &one);
}

/* = f */
/* Factors, in the place of a column-major matrix; what LAPACK says of them. */
static inline int pg_getrf_T(T *a, int64_t *order, long m, long n) {
    const int64_t mm = m, nn = n;
    int64_t told = 0;
    ((void (*)(const int64_t *, const int64_t *, T *, const int64_t *, int64_t *,
               int64_t *))pg_routine_T(1))(&mm, &nn, a, &mm, order, &told);
    return (int)told;
}

/* = f */
/* As pg_triangular_T. */
static int pg_lapack_triangular_T(T *restrict z, const T *restrict a, long n, long m, int lower,
                                  int transposed, int unit) {
    int told = 0;
    if (!pg_counts(m)) return 1;
    if (!unit)
        for (long k = 0; k < n; k++) {
            if (a[k * n + k] == 0) return 1;
            if (!isnormal(a[k * n + k])) told = 2;
        }
    /* Rows of z are columns, from the right of which the transpose of what divides is divided by. */
    const char *part = lower ? "Upper" : "Lower", *diagonal = unit ? "Unit" : "No";
    if (m == 1)
        pg_trsv_T(part, transposed ? "No" : "Transposed", diagonal, n, a, z);
    else if (m)
        pg_trsm_T("Right", part, transposed ? "Transposed" : "No", diagonal, m, n, a, n, z, m);
    return told;
}

/* = f */
/* As pg_solve_T. */
static int pg_lapack_solve_T(T *z, const T *a, const T *b, T *room, int64_t *order, long n, long m) {
    if (!pg_counts(n) || !pg_counts(m)) return 1;
    int told = 0;
    pg_flip_T(room, a, n, n);
    if (pg_getrf_T(room, order, n, n)) return 1;
    for (long i = 0; i < n; i++)
        if (!isnormal(room[i * n + i])) told = 2;
    if (b)
        memcpy(z, b, (size_t)(n * m) * sizeof *z);
    else
        for (long i = 0; i < n; i++)
            for (long j = 0; j < m; j++) z[i * m + j] = i == j;
    for (long i = 0; i < n; i++) {
        const long k = pg_changed(order, i);
        if (k == i) continue;
        for (long j = 0; j < m; j++) {
            const T t = z[i * m + j];
            z[i * m + j] = z[k * m + j];
            z[k * m + j] = t;
        }
    }
    if (m == 1) {
        pg_trsv_T("Lower", "No", "Unit", n, room, z);
        pg_trsv_T("Upper", "No", "No", n, room, z);
    } else if (m) {
        pg_trsm_T("Right", "Lower", "Transposed", "Unit", m, n, room, n, z, m);
        pg_trsm_T("Right", "Upper", "Transposed", "No", m, n, room, n, z, m);
    }
    return told;
}

/* = f */
/* As pg_slogdet_T. */
static int pg_lapack_slogdet_T(T *sign, T *size, const T *a, T *room, int64_t *order, long n) {
    if (!pg_counts(n)) return 1;
    pg_flip_T(room, a, n, n);
    T turn = 1, sum = 0;
    int told = 0;
    const int zero = pg_getrf_T(room, order, n, n);
    for (long i = 0; i < n; i++) {
        const T pivot = room[i * n + i];
        if (pivot != 0 && !isnormal(pivot)) told = 2;
        turn = (pivot < 0) != (pg_changed(order, i) != i) ? -turn : turn;
        sum += log_F(fabs_F(pivot));
    }
    *sign = zero ? 0 : turn;
    *size = zero ? -INFINITY : sum;
    return told;
}

/* = f */
/* As pg_det_T. */
static int pg_lapack_det_T(T *z, const T *a, T *room, int64_t *order, long n) {
    T sign, size;
    const int told = pg_lapack_slogdet_T(&sign, &size, a, room, order, n);
    *z = sign * exp_F(size);
    return told;
}

/* = f */
/* The rows that those of an m x n matrix were, and its factors; k is the smaller of m and n. */
static int pg_lapack_lu_T(int64_t *rows, T *lower, T *upper, const T *a, T *room, int64_t *order,
                          long m, long n, long k) {
    if (!pg_counts(m) || !pg_counts(n)) return 1;
    pg_flip_T(room, a, m, n);
    /* A pivot that is zero is no fault. */
    if (k) pg_getrf_T(room, order, m, n);
    for (long i = 0; i < m; i++) rows[i] = i;
    for (long i = 0; i < k; i++) {
        const long other = pg_changed(order, i);
        const int64_t t = rows[i];
        rows[i] = rows[other];
        rows[other] = t;
    }
    for (long i = 0; i < m; i++)
        for (long j = 0; j < k; j++) lower[i * k + j] = j < i ? room[j * m + i] : i == j;
    for (long i = 0; i < k; i++)
        for (long j = 0; j < n; j++) upper[i * n + j] = j < i ? 0 : room[j * m + i];
    /* Which of some NaNs is the largest is no question of LAPACK's. */
    int told = 0;
    for (long i = 0; i < m * n; i++) told = isfinite(room[i]) ? told : 2;
    for (long i = 0; i < k; i++)
        if (room[i * m + i] != 0 && !isnormal(room[i * m + i])) told = 2;
    return told;
}

/* = f */
/* As pg_cholesky_T, without room. */
static int pg_lapack_cholesky_T(T *restrict z, const T *a, T *restrict room, long n) {
    (void)room;
    if (!pg_counts(n)) return 1;
    for (long i = 0; i < n; i++) {
        memcpy(z + i * n, a + i * n, (size_t)(i + 1) * sizeof *z);
        memset(z + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof *z);
    }
    const int64_t nn = n;
    int64_t told = 0;
    ((void (*)(const char *, const int64_t *, T *, const int64_t *, int64_t *))pg_routine_T(0))(
        "Upper", &nn, z, &nn, &told);
    if ((int)told) return 1;
    for (long i = 0; i < n; i++)
        if (!isfinite(z[i * n + i])) return 2;
    return 0;
}

/* = f */
/* The lower triangle of how a factor l moves with the lower triangle that is in z, by halves; the
 * rows of both are so far `apart`. */
static void pg_tangent_T(T *z, const T *l, long n, long apart) {
    enum { SMALL = 32 };
    if (n <= SMALL) {
        T found[SMALL * SMALL], factor[SMALL * SMALL], way[SMALL * SMALL], room[SMALL * SMALL];
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) {
                factor[i * n + j] = l[i * apart + j];
                way[i * n + j] = j < i ? 2 * z[i * apart + j] : j == i ? z[i * apart + j] : 0;
            }
        pg_cholesky_tangent_T(found, factor, way, room, n);
        for (long i = 0; i < n; i++)
            for (long j = 0; j <= i; j++) z[i * apart + j] = found[i * n + j];
        return;
    }
    const long k = n / 2, rest = n - k;
    T *below = z + k * apart;
    const T *beside = l + k * apart;
    pg_tangent_T(z, l, k, apart);
    pg_gemm_T("Transposed", "No", k, rest, k, z, beside, below, apart);
    pg_trsm_T("Left", "Upper", "Transposed", "No", k, rest, l, apart, below, apart);
    pg_syr2k_T(rest, k, below, beside, below + k, apart);
    pg_tangent_T(below + k, beside + k, rest, apart);
}

/* = f */
/* As pg_cholesky_tangent_T, without room. */
static int pg_lapack_cholesky_tangent_T(T *restrict z, const T *restrict l, const T *d,
                                        T *restrict room, long n) {
    (void)room;
    if (!pg_counts(n)) return 1;
    for (long i = 0; i < n; i++) {
        if (l[i * n + i] == 0) return 1;
        if (!isnormal(l[i * n + i])) return 2;
        for (long j = 0; j < n; j++)
            z[i * n + j] = j <= i ? (d[i * n + j] + d[j * n + i]) / 2 : 0;
    }
    pg_tangent_T(z, l, n, n);
    return 0;
}

/* = f */
/* The lower triangle of twice the slope by a symmetric matrix, from that in z by its factor l, by
 * halves, of which the last comes first: I. Murray, Differentiation of the Cholesky decomposition,
 * arXiv:1602.07527. */
static void pg_slope_T(T *z, const T *l, long n, long apart) {
    enum { SMALL = 32 };
    if (n <= SMALL) {
        T found[SMALL * SMALL], factor[SMALL * SMALL], by[SMALL * SMALL];
        for (long i = 0; i < n; i++)
            for (long j = 0; j < n; j++) {
                factor[i * n + j] = l[i * apart + j];
                by[i * n + j] = z[i * apart + j];
            }
        pg_cholesky_slope_T(found, factor, by, n);
        for (long i = 0; i < n; i++)
            for (long j = 0; j <= i; j++) z[i * apart + j] = 2 * found[i * n + j];
        return;
    }
    const long k = n / 2, rest = n - k;
    T *below = z + k * apart;
    const T *beside = l + k * apart;
    pg_slope_T(below + k, beside + k, rest, apart);
    pg_symm_T(k, rest, below + k, beside, below, apart);
    pg_trsm_T("Left", "Upper", "No", "No", k, rest, l, apart, below, apart);
    pg_gemm_T("No", "Transposed", k, k, rest, beside, below, z, apart);
    pg_slope_T(z, l, k, apart);
}

/* = f */
/* As pg_cholesky_slope_T. */
static int pg_lapack_cholesky_slope_T(T *restrict z, const T *restrict l, const T *restrict c,
                                      long n) {
    if (!pg_counts(n)) return 1;
    for (long i = 0; i < n; i++) {
        if (l[i * n + i] == 0) return 1;
        if (!isnormal(l[i * n + i])) return 2;
    }
    memcpy(z, c, (size_t)(n * n) * sizeof *z);
    pg_slope_T(z, l, n, n);
    for (long i = 0; i < n; i++)
        for (long j = 0; j <= i; j++) z[i * n + j] = z[j * n + i] = z[i * n + j] / 2;
    return 0;
}

/* Eigenvalues, singular values and orthogonal factors are computed in float64 whatever is given, as
 * NumPy does it: of which sign vectors are may depend on the last digit. */

/* = f */
/* The eigenvalues of a symmetric matrix, of which the lower triangle is read, and unless v is of no
 * address its eigenvectors; for n x n + n and `more` elements of room, and `whole` numbers. */
static int pg_lapack_eigh_T(T *w, T *v, const T *a, double *room, long more, int64_t *whole,
                            long numbers, long n) {
    if (!n || !pg_counts(n) || !pg_counts(more) || !pg_counts(numbers)) return 1;
    double *values = room + n * n;
    pg_flip_wide_T(room, a, n, n);
    const int64_t nn = n, count = more, counts = numbers;
    int64_t told = 0;
    ((void (*)(const char *, const char *, const int64_t *, double *, const int64_t *, double *,
               double *, const int64_t *, int64_t *, const int64_t *,
               int64_t *))pg_routine_f64(8))(v ? "Vectors" : "No", "Lower", &nn, room, &nn, values,
                                             values + n, &count, whole, &counts, &told);
    if ((int)told) return 1;
    for (long i = 0; i < n; i++) {
        if (!isfinite(values[i])) return 2;
        w[i] = (T)values[i];
    }
    if (v) pg_flip_narrow_T(v, room, n, n);
    return 0;
}

/* = f */
/* Singular values of an m x n matrix, and unless u is of no address its vectors, p columns and q
 * rows of them, which LAPACK calls `job`; with room for the matrix, both, k values and `more`
 * elements, and for 8 k numbers, where k is the smaller of m and n. */
static int pg_lapack_svd_T(T *u, T *s, T *v, const T *a, double *room, long more, int64_t *whole,
                           long m, long n, long p, long q, const char *job) {
    if (!m || !n || !pg_counts(m) || !pg_counts(n) || !pg_counts(more)) return 1;
    const long k = m < n ? m : n;
    double *left = room + m * n, *right = left + m * p, *values = right + q * n;
    pg_flip_wide_T(room, a, m, n);
    const int64_t mm = m, nn = n, qq = q ? q : 1, count = more;
    int64_t told = 0;
    ((void (*)(const char *, const int64_t *, const int64_t *, double *, const int64_t *, double *,
               double *, const int64_t *, double *, const int64_t *, double *, const int64_t *,
               int64_t *, int64_t *))pg_routine_f64(9))(job, &mm, &nn, room, &mm, values, left, &mm,
                                                        right, &qq, values + k, &count, whole,
                                                        &told);
    if ((int)told) return 1;
    for (long i = 0; i < k; i++) {
        if (!isfinite(values[i])) return 2;
        s[i] = (T)values[i];
    }
    if (u) {
        pg_flip_narrow_T(u, left, p, m);
        pg_flip_narrow_T(v, right, n, q);
    }
    return 0;
}

/* = f */
/* Orthogonal columns, p of them, and an upper triangle whose product an m x n matrix is; with room
 * for n + p columns of m elements, as many more as the smaller of m and n, and `more` elements. */
static int pg_lapack_qr_T(T *q, T *r, const T *a, double *room, long more, long m, long n, long p) {
    if (!m || !n || !pg_counts(m) || !pg_counts(n) || !pg_counts(more)) return 1;
    const long k = m < n ? m : n;
    double *scales = room + m * (n + p), *work = scales + k;
    pg_flip_wide_T(room, a, m, n);
    const int64_t mm = m, nn = n, kk = k, pp = p, count = more;
    int64_t told = 0;
    ((void (*)(const int64_t *, const int64_t *, double *, const int64_t *, double *, double *,
               const int64_t *, int64_t *))pg_routine_f64(6))(&mm, &nn, room, &mm, scales, work,
                                                              &count, &told);
    if ((int)told) return 1;
    for (long i = 0; i < p; i++)
        for (long j = 0; j < n; j++) r[i * n + j] = j < i ? 0 : (T)room[j * m + i];
    ((void (*)(const int64_t *, const int64_t *, const int64_t *, double *, const int64_t *,
               const double *, double *, const int64_t *,
               int64_t *))pg_routine_f64(7))(&mm, &pp, &kk, room, &mm, scales, work, &count, &told);
    if ((int)told) return 1;
    pg_flip_narrow_T(q, room, p, m);
    for (long i = 0; i < k; i++)
        if (!isfinite(r[i * n + i])) return 2;
    return 0;
}
