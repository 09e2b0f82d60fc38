/* The loops of nests.py as a programmer of C writes them. Each returns the value of a model and
 * writes its gradient; edges are outside of the inner loops. */

static double row[1 << 20], column[1 << 20];

/* Each pair once. */
double lennard_jones(long n, const double *x, double *out) {
    static double a[3][4096], g[3][4096];
    double total = 0;
    for (long i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) a[c][i] = x[3 * i + c], g[c][i] = 0;
    for (long i = 0; i < n; i++) {
        double gx = 0, gy = 0, gz = 0;
        for (long j = i + 1; j < n; j++) {
            const double dx = a[0][i] - a[0][j], dy = a[1][i] - a[1][j], dz = a[2][i] - a[2][j];
            const double near = 1 / (dx * dx + dy * dy + dz * dz), s = near * near * near;
            const double pull = (24 * s - 48 * s * s) * near;
            total += s * s - s;
            gx += pull * dx, gy += pull * dy, gz += pull * dz;
            g[0][j] -= pull * dx, g[1][j] -= pull * dy, g[2][j] -= pull * dz;
        }
        g[0][i] += gx, g[1][i] += gy, g[2][i] += gz;
    }
    for (long i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) out[3 * i + c] = g[c][i];
    return 4 * total;
}

double gravity(long n, const double *x, double *out) {
    static double a[3][4096], g[3][4096];
    double total = 0;
    for (long i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) a[c][i] = x[3 * i + c], g[c][i] = 0;
    for (long i = 0; i < n; i++) {
        double fx = 0, fy = 0, fz = 0, gx = 0, gy = 0, gz = 0;
        for (long j = 0; j < n; j++) {
            const double dx = a[0][j] - a[0][i], dy = a[1][j] - a[1][i], dz = a[2][j] - a[2][i];
            const double near = 1 / (dx * dx + dy * dy + dz * dz + 0.01), p = near * sqrt(near);
            row[j] = p, column[j] = near * p;
            fx += dx * p, fy += dy * p, fz += dz * p;
        }
        total += fx * fx + fy * fy + fz * fz;
        fx *= 2, fy *= 2, fz *= 2;
        for (long j = 0; j < n; j++) {
            const double dx = a[0][j] - a[0][i], dy = a[1][j] - a[1][i], dz = a[2][j] - a[2][i];
            const double along = -3 * (fx * dx + fy * dy + fz * dz) * column[j];
            const double cx = fx * row[j] + along * dx, cy = fy * row[j] + along * dy;
            const double cz = fz * row[j] + along * dz;
            g[0][j] += cx, g[1][j] += cy, g[2][j] += cz;
            gx += cx, gy += cy, gz += cz;
        }
        g[0][i] -= gx, g[1][i] -= gy, g[2][i] -= gz;
    }
    for (long i = 0; i < n; i++)
        for (int c = 0; c < 3; c++) out[3 * i + c] = g[c][i];
    return total;
}

#define LAPLACIAN(u, l, r) (up##u[j] + down##u[j] + u[l] + u[r] - 4 * u[j])
#define EACH(n, ...) \
    { long j = 0, l = n - 1, r = 1; __VA_ARGS__ } \
    for (long j = 1; j < n - 1; j++) { const long l = j - 1, r = j + 1; __VA_ARGS__ } \
    { long j = n - 1, l = n - 2, r = 0; __VA_ARGS__ }

double gray_scott(long n, const double *us, const double *vs, double *gus, double *gvs) {
    static double as[1 << 20], bs[1 << 20];
    double total = 0;
    for (long i = 0; i < n; i++) {
        const double *u = us + i * n, *upu = us + (i ? i - 1 : n - 1) * n;
        const double *downu = us + (i + 1 < n ? i + 1 : 0) * n;
        const double *v = vs + i * n, *upv = vs + (i ? i - 1 : n - 1) * n;
        const double *downv = vs + (i + 1 < n ? i + 1 : 0) * n;
        double *restrict a = as + i * n, *restrict b = bs + i * n;
        EACH(n, {
            const double uvv = u[j] * v[j] * v[j];
            const double x = u[j] + 0.1 * (0.16 * LAPLACIAN(u, l, r) - uvv + 0.035 * (1 - u[j]));
            const double y = v[j] + 0.1 * (0.08 * LAPLACIAN(v, l, r) + uvv - 0.1 * v[j]);
            total += x * x + y * y, a[j] = 2 * x, b[j] = 2 * y;
        })
    }
    for (long i = 0; i < n; i++) {
        const double *u = us + i * n, *v = vs + i * n;
        const double *a = as + i * n, *upa = as + (i ? i - 1 : n - 1) * n;
        const double *downa = as + (i + 1 < n ? i + 1 : 0) * n;
        const double *b = bs + i * n, *upb = bs + (i ? i - 1 : n - 1) * n;
        const double *downb = bs + (i + 1 < n ? i + 1 : 0) * n;
        double *restrict gu = gus + i * n, *restrict gv = gvs + i * n;
        EACH(n, {
            const double c = 0.1 * (b[j] - a[j]);
            gu[j] = 0.9965 * a[j] + 0.016 * LAPLACIAN(a, l, r) + c * v[j] * v[j];
            gv[j] = 0.99 * b[j] + 0.008 * LAPLACIAN(b, l, r) + 2 * c * u[j] * v[j];
        })
    }
    return total;
}

double wave(long n, const double *us, const double *before, double *gus, double *gbs) {
    double total = 0;
    memset(gbs, 0, n * n * sizeof *gbs);
    for (long i = 1; i < n - 1; i++) {
        const double *u = us + i * n, *upu = u - n, *downu = u + n, *b = before + i * n;
        double *restrict gb = gbs + i * n;
        for (long j = 1; j < n - 1; j++) {
            const double new = 2 * u[j] - b[j] + 0.1 * LAPLACIAN(u, j - 1, j + 1);
            total += new * new, gb[j] = -2 * new;
        }
    }
    for (long j = 0; j < n; j++) {
        gus[j] = -0.1 * gbs[n + j], gus[(n - 1) * n + j] = -0.1 * gbs[(n - 2) * n + j];
        if (j == 0 || j == n - 1) continue;
        const double *b = gbs + j * n, *upb = b - n, *downb = b + n;
        double *restrict g = gus + j * n;
        g[0] = -0.1 * b[1], g[n - 1] = -0.1 * b[n - 2];
        for (long k = 1; k < n - 1; k++)
            g[k] = -1.6 * b[k] - 0.1 * (upb[k] + downb[k] + b[k - 1] + b[k + 1]);
    }
    return total;
}

double burgers(long n, const double *u, double *restrict g) {
    double total = 0;
    EACH(n, {
        (void)l;
        const double most = fmax(fabs(u[j]), fabs(u[r]));
        row[j] = 0.25 * (u[j] * u[j] + u[r] * u[r]) - 0.5 * most * (u[r] - u[j]);
    })
    EACH(n, {
        (void)r;
        const double y = u[j] - 0.1 * (row[j] - row[l]);
        total += y * y, column[j] = 2 * y;
    })
    EACH(n, {
        (void)l;
        const double f = -0.1 * (column[j] - column[r]), x = fabs(u[j]), y = fabs(u[r]);
        const double by = -0.5 * (u[r] - u[j]) * f, most = x > y ? x : y;
        g[j] = column[j] + f * 0.5 * (u[j] + most) + (x > y ? (u[j] > 0 ? by : -by) : 0);
        row[j] = f * 0.5 * (u[r] - most) + (y > x ? (u[r] > 0 ? by : -by) : 0);
    })
    EACH(n, { (void)r; g[j] += row[l]; })
    return total;
}
