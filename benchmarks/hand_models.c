/* The larger workloads as a programmer of C writes them: products in tiles that registers hold, what
 * is elementwise as one loop, and no work on what is known to be zero. Sizes and the type of the
 * numbers are macros of the command line; hand_c_models.py names them. */

#include <math.h>
#include <string.h>

#ifdef SINGLE
typedef float real;
#define TANH tanhf
#define EXP expf
#define LOG logf
#else
typedef double real;
#define TANH tanh
#define EXP exp
#define LOG log
#endif

#ifdef __AVX512F__
enum { BYTES = 64, ROWS = 8 };
#else
enum { BYTES = 32, ROWS = 4 };
#endif
/* A tile has ROWS rows of three vectors; DEPTH terms of its sums are added in one go. */
enum { LANES = BYTES / sizeof(real), WIDTH = 3 * LANES, DEPTH = 192 };

typedef real vector __attribute__((vector_size(BYTES), aligned(sizeof(real)), may_alias));

#define UNROLLED _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline))

/* Columns in panels of WIDTH, with zeros at the end, of a (k x n) whose strides are given. */
static void pack(long k, long n, const real *restrict b, long row, long column, real *restrict to) {
    for (long j = 0; j < n; j += WIDTH) {
        const long width = n - j < WIDTH ? n - j : WIDTH;
        for (long l = 0; l < k; l++, to += WIDTH) {
            for (long c = 0; c < width; c++) to[c] = b[l * row + (j + c) * column];
            for (long c = width; c < WIDTH; c++) to[c] = 0;
        }
    }
}


INLINE void tile(const int rows, const int vectors, long k, long n, const real *a, long row,
                 long column, const real *b, real *out, long step, int add) {
    vector t[ROWS][3];
    UNROLLED for (int r = 0; r < rows; r++)
        UNROLLED for (int v = 0; v < vectors; v++) t[r][v] = (vector){0};
    for (long l = 0; l < k; l++, a += column, b += WIDTH)
        UNROLLED for (int r = 0; r < rows; r++)
            UNROLLED for (int v = 0; v < vectors; v++)
                t[r][v] += a[r * row] * *(const vector *)(b + v * LANES);
    UNROLLED for (int r = 0; r < rows; r++, out += step) {
        if (n == vectors * LANES) {
            UNROLLED for (int v = 0; v < vectors; v++) {
                vector *o = (vector *)(out + v * LANES);
                if (add) t[r][v] += *o;
                *o = t[r][v];
            }
            continue;
        }
        real line[WIDTH];
        UNROLLED for (int v = 0; v < vectors; v++) *(vector *)(line + v * LANES) = t[r][v];
        for (long c = 0; c < n; c++) out[c] = add ? out[c] + line[c] : line[c];
    }
}

INLINE void column_of_tiles(const int vectors, long m, long k, long n, const real *a, long row,
                            long column, const real *b, real *out, long step, int add) {
    long i = 0;
    for (; i + ROWS <= m; i += ROWS)
        tile(ROWS, vectors, k, n, a + i * row, row, column, b, out + i * step, step, add);
    for (; i + 2 <= m; i += 2)
        tile(2, vectors, k, n, a + i * row, row, column, b, out + i * step, step, add);
    if (i < m) tile(1, vectors, k, n, a + i * row, row, column, b, out + i * step, step, add);
}

/* out = a b, or out += a b, where `panels` are those of b, of `packed` rows, of which k are read. */
static void product(long m, long n, long k, const real *a, long row, long column,
                    const real *panels, long packed, real *out, long step, int add) {
    for (long j = 0; j < n; j += WIDTH, panels += packed * WIDTH) {
        const long width = n - j < WIDTH ? n - j : WIDTH;
        for (long l = 0; l < k; l += DEPTH) {
            const long depth = k - l < DEPTH ? k - l : DEPTH;
            const real *from = a + l * column, *b = panels + l * WIDTH;
            if (width <= LANES)
                column_of_tiles(1, m, depth, width, from, row, column, b, out + j, step, add || l);
            else if (width <= 2 * LANES)
                column_of_tiles(2, m, depth, width, from, row, column, b, out + j, step, add || l);
            else
                column_of_tiles(3, m, depth, width, from, row, column, b, out + j, step, add || l);
        }
    }
}

#ifdef CLASSIFIER
enum { MOST = WIDTH * (IN * (HIDDEN / WIDTH + 1) + B * (HIDDEN / WIDTH + 1)) };

double classifier(const real *x, const long *labels, const real *w1, const real *b1, const real *w2,
                  const real *b2, real *g1, real *gb1, real *g2, real *gb2) {
    static real h[B * HIDDEN], back[B * HIDDEN], s[B * OUT], total[B], panels[MOST];
    double loss = 0;
    pack(IN, HIDDEN, w1, HIDDEN, 1, panels);
    product(B, HIDDEN, IN, x, IN, 1, panels, IN, h, HIDDEN, 0);
    for (long i = 0; i < B; i++)
        for (long j = 0; j < HIDDEN; j++) h[i * HIDDEN + j] = TANH(h[i * HIDDEN + j] + b1[j]);
    pack(HIDDEN, OUT, w2, OUT, 1, panels);
    product(B, OUT, HIDDEN, h, HIDDEN, 1, panels, HIDDEN, s, OUT, 0);
    for (long i = 0; i < B; i++) {
        real *z = s + i * OUT, top = -INFINITY;
        for (long j = 0; j < OUT; j++) z[j] += b2[j], top = z[j] > top ? z[j] : top;
        for (long j = 0; j < OUT; j++) z[j] -= top;
        loss -= z[labels[i]];
    }
    for (long k = 0; k < B * OUT; k++) s[k] = EXP(s[k]);
    for (long i = 0; i < B; i++) {
        real t = 0;
        for (long j = 0; j < OUT; j++) t += s[i * OUT + j];
        total[i] = t;
    }
    memset(gb2, 0, OUT * sizeof *gb2);
    for (long i = 0; i < B; i++) {
        real *z = s + i * OUT;
        const real share = 1 / (total[i] * B);
        for (long j = 0; j < OUT; j++) z[j] *= share;
        z[labels[i]] -= (real)1 / B;
        for (long j = 0; j < OUT; j++) gb2[j] += z[j];
    }
    for (long i = 0; i < B; i++) total[i] = LOG(total[i]);
    for (long i = 0; i < B; i++) loss += total[i];
    pack(B, OUT, s, OUT, 1, panels);
    product(HIDDEN, OUT, B, h, 1, HIDDEN, panels, B, g2, OUT, 0);
    pack(OUT, HIDDEN, w2, 1, OUT, panels);
    product(B, HIDDEN, OUT, s, OUT, 1, panels, OUT, back, HIDDEN, 0);
    memset(gb1, 0, HIDDEN * sizeof *gb1);
    for (long i = 0; i < B; i++)
        for (long j = 0; j < HIDDEN; j++) {
            const long k = i * HIDDEN + j;
            back[k] *= 1 - h[k] * h[k];
            gb1[j] += back[k];
        }
    pack(B, HIDDEN, back, HIDDEN, 1, panels);
    product(IN, HIDDEN, B, x, 1, IN, panels, B, g1, HIDDEN, 0);
    return loss / B;
}
#endif

#ifdef MIXTURE
/* Samples of a block lie beside each other, so that vectors are of samples. Rows of a factor end
 * with their tile: what is right of the diagonal's tile is never multiplied. */
enum { S = 2 * WIDTH, LOWER = D * (D - 1) / 2, PANEL = WIDTH * (D / WIDTH + 1) };

static real log_sum(const real *x, long n, real *share) {
    real top = -INFINITY, total = 0;
    for (long i = 0; i < n; i++) top = x[i] > top ? x[i] : top;
    for (long i = 0; i < n; i++) share[i] = EXP(x[i] - top), total += share[i];
    for (long i = 0; i < n; i++) share[i] /= total;
    return top + LOG(total);
}

static real sum_of(const real *x) {
    vector t = {0};
    real total = 0;
    for (long s = 0; s < S; s += LANES) t += *(const vector *)(x + s);
    for (int c = 0; c < LANES; c++) total += t[c];
    return total;
}

double mixture(const real *alphas, const real *means, const real *factors, const real *samples,
               real *g_alphas, real *g_means, real *g_factors) {
    static real factor[K][D][D], outer[K][D][D], shift[K][D], total[K][D], offset[K], weight[K];
    static real y[K][D][S], w[K][S], top[S], sum[S], x[S][D], across[D * S], along[S * PANEL];
    const long width = D + LOWER;
    double prior = 0, fit = 0;
    for (long k = 0; k < K; k++) {
        const real *f = factors + k * width, *below = f + D;
        offset[k] = alphas[k];
        for (long i = 0; i < D; i++) offset[k] += f[i], factor[k][i][i] = EXP(f[i]);
        for (long j = 0; j < D; j++)
            for (long i = j + 1; i < D; i++) factor[k][i][j] = *below++;
        for (long i = 0; i < D; i++) {
            real t = 0;
            for (long j = 0; j <= i; j++) {
                prior += factor[k][i][j] * factor[k][i][j];
                t += factor[k][i][j] * means[k * D + j];
            }
            shift[k][i] = t;
        }
    }
    memset(outer, 0, sizeof outer);
    memset(total, 0, sizeof total);
    memset(weight, 0, sizeof weight);
    for (long first = 0; first < N; first += S) {
        const long m = N - first < S ? N - first : S;
        if (m < S) memset(x, 0, sizeof x);
        memcpy(x, samples + first * D, m * D * sizeof(real));
        pack(D, S, x[0], 1, D, across);
        pack(S, D, x[0], D, 1, along);
        for (long s = 0; s < S; s++) top[s] = -INFINITY, sum[s] = 0;
        for (long k = 0; k < K; k++) {
            for (long i = 0; i < D; i += ROWS) {
                const long rows = D - i < ROWS ? D - i : ROWS;
                product(rows, S, i + rows, factor[k][i], D, 1, across, D, y[k][i], S, 0);
            }
            for (long s = 0; s < S; s++) w[k][s] = 0;
            for (long i = 0; i < D; i++)
                for (long s = 0; s < S; s++) {
                    y[k][i][s] -= shift[k][i];
                    w[k][s] += y[k][i][s] * y[k][i][s];
                }
            for (long s = 0; s < S; s++) {
                w[k][s] = offset[k] - (real)0.5 * w[k][s];
                top[s] = w[k][s] > top[s] ? w[k][s] : top[s];
            }
        }
        for (long k = 0; k < K; k++)
            for (long s = 0; s < S; s++) w[k][s] = EXP(w[k][s] - top[s]), sum[s] += w[k][s];
        for (long s = 0; s < m; s++) fit += top[s];
        for (long s = 0; s < S; s++) top[s] = LOG(sum[s]), sum[s] = s < m ? 1 / sum[s] : 0;
        for (long s = 0; s < m; s++) fit += top[s];
        for (long k = 0; k < K; k++) {
            for (long s = 0; s < S; s++) w[k][s] *= sum[s];
            weight[k] += sum_of(w[k]);
            for (long i = 0; i < D; i++) {
                for (long s = 0; s < S; s++) y[k][i][s] *= w[k][s];
                total[k][i] += sum_of(y[k][i]);
            }
            for (long i = 0; i < D; i += ROWS) {
                const long rows = D - i < ROWS ? D - i : ROWS;
                product(rows, i + rows, S, y[k][i], S, 1, along, S, outer[k][i], D, 1);
            }
        }
    }
    const double norm = log_sum(alphas, K, g_alphas);
    for (long k = 0; k < K; k++) {
        real *f = g_factors + k * width, *below = f + D;
        const real *mean = means + k * D;
        g_alphas[k] = weight[k] - N * g_alphas[k];
        for (long j = 0; j < D; j++) {
            real t = 0;
            for (long i = j; i < D; i++) {
                const real entry = factor[k][i][j];
                const real slope = total[k][i] * mean[j] - outer[k][i][j] + entry;
                t += total[k][i] * entry;
                if (i == j)
                    f[j] = slope * entry + weight[k];
                else
                    *below++ = slope;
            }
            g_means[k * D + j] = t;
        }
    }
    return fit - N * norm + 0.5 * prior;
}
#endif

#ifdef LSTM
enum { SIZE = B * H, GATES = 4 * H, BIG = WIDTH * (GATES / WIDTH + 1) };

double lstm(const real *x, const real *targets, const real *w_input, const real *w_state,
            const real *bias, real *g_input, real *g_state, real *g_bias) {
    static real g[T][B][GATES], slope[T][B][GATES], state[T + 1][B][H], cell[T + 1][B][H];
    static real bent[T][B][H], d_state[B][H], d_cell[B][H];
    static real forward[H * BIG], back[GATES * WIDTH * (H / WIDTH + 1)], all[T * B * BIG];
    double loss = 0;
    pack(H, GATES, w_input, GATES, 1, all);
    product(T * B, GATES, H, x, H, 1, all, H, g[0][0], GATES, 0);
    pack(H, GATES, w_state, GATES, 1, forward);
    for (long t = 0; t < T; t++) {
        if (t) product(B, GATES, H, state[t][0], H, 1, forward, H, g[t][0], GATES, 1);
        for (long b = 0; b < B; b++) {
            real *restrict z = g[t][b], *restrict d = slope[t][b];
            const real *restrict before = cell[t][b], *restrict wanted = targets + (t * B + b) * H;
            real *restrict after = cell[t + 1][b], *restrict out = state[t + 1][b];
            real *restrict bend = bent[t][b], error = 0;
            for (long j = 0; j < H; j++) {
                const real i = (real)0.5 * TANH((real)0.5 * (z[j] + bias[j])) + (real)0.5;
                const real f = (real)0.5 * TANH((real)0.5 * (z[H + j] + bias[H + j])) + (real)0.5;
                const real o =
                    (real)0.5 * TANH((real)0.5 * (z[2 * H + j] + bias[2 * H + j])) + (real)0.5;
                const real c = TANH(z[3 * H + j] + bias[3 * H + j]);
                const real next = f * before[j] + i * c, y = TANH(next);
                after[j] = next, out[j] = o * y, z[H + j] = f;
                d[j] = i * (1 - i) * c, d[H + j] = f * (1 - f) * before[j];
                d[2 * H + j] = o * (1 - o) * y, d[3 * H + j] = (1 - c * c) * i;
                bend[j] = o * (1 - y * y);
            }
            for (long j = 0; j < H; j++) error += (out[j] - wanted[j]) * (out[j] - wanted[j]);
            loss += error;
        }
    }
    memset(d_cell, 0, sizeof d_cell);
    memset(d_state, 0, sizeof d_state);
    memset(g_bias, 0, GATES * sizeof *g_bias);
    pack(GATES, H, w_state, 1, GATES, back);
    for (long t = T - 1; t >= 0; t--) {
        if (t < T - 1)
            product(B, H, GATES, slope[t + 1][0], GATES, 1, back, GATES, d_state[0], H, 0);
        for (long b = 0; b < B; b++) {
            real *restrict d = slope[t][b], *restrict dc = d_cell[b];
            const real *restrict out = state[t + 1][b], *restrict wanted = targets + (t * B + b) * H;
            const real *restrict f = g[t][b] + H, *restrict bend = bent[t][b];
            for (long j = 0; j < H; j++) {
                const real e = d_state[b][j] + (real)(2.0 / (T * SIZE)) * (out[j] - wanted[j]);
                const real c = dc[j] + e * bend[j];
                d[j] *= c, d[H + j] *= c, d[2 * H + j] *= e, d[3 * H + j] *= c;
                dc[j] = c * f[j];
            }
            for (long j = 0; j < GATES; j++) g_bias[j] += d[j];
        }
    }
    pack(T * B, GATES, slope[0][0], GATES, 1, all);
    product(H, GATES, T * B, x, 1, H, all, T * B, g_input, GATES, 0);
    product(H, GATES, T * B, state[0][0], 1, H, all, T * B, g_state, GATES, 0);
    return loss / (T * SIZE);
}
#endif

#ifdef ATOMS
double atoms(const real *places, real *out) {
    static real x[3][N], g[3][N];
    real total = 0;
    for (long i = 0; i < N; i++)
        for (int c = 0; c < 3; c++) x[c][i] = places[3 * i + c];
    memset(g, 0, sizeof g);
    for (long i = 0; i < N; i++) {
        const real xi = x[0][i], yi = x[1][i], zi = x[2][i];
        real gx = 0, gy = 0, gz = 0;
        for (long j = i + 1; j < N; j++) {
            const real dx = xi - x[0][j], dy = yi - x[1][j], dz = zi - x[2][j];
            const real near = 1 / (dx * dx + dy * dy + dz * dz), s = near * near * near;
            const real pull = (24 * s - 48 * s * s) * near;
            total += s * s - s;
            gx += pull * dx, gy += pull * dy, gz += pull * dz;
            g[0][j] -= pull * dx, g[1][j] -= pull * dy, g[2][j] -= pull * dz;
        }
        g[0][i] += gx, g[1][i] += gy, g[2][i] += gz;
    }
    for (long i = 0; i < N; i++)
        for (int c = 0; c < 3; c++) out[3 * i + c] = g[c][i];
    return 4 * total;
}
#endif

#ifdef BLOCK
enum { DEEP = D / HEADS, MIX = 3 * D, UP = 4 * D, MOST = (MIX + UP + R + D) * (UP + R + 2 * WIDTH) };

static real panels[MOST];

/* Rows of mean 0 and variance 1, factors that made them so, and what is scaled and shifted. */
static void normalise(const real *x, const real *scale, const real *shift, real *rows, real *factor,
                      real *out) {
    for (long i = 0; i < R; i++, x += D, rows += D, out += D) {
        real mean = 0, spread = 0;
        for (long j = 0; j < D; j++) mean += x[j];
        mean /= D;
        for (long j = 0; j < D; j++) rows[j] = x[j] - mean, spread += rows[j] * rows[j];
        factor[i] = 1 / (real)sqrt(spread / D + (real)EPSILON);
        for (long j = 0; j < D; j++) {
            rows[j] *= factor[i];
            out[j] = rows[j] * scale[j] + shift[j];
        }
    }
}

/* Adds to `out` the cotangents of what went in, from those of what came out. */
static void normalise_back(const real *g, const real *scale, const real *rows, const real *factor,
                           real *out, real *restrict d_scale, real *restrict d_shift) {
    memset(d_scale, 0, D * sizeof(real));
    memset(d_shift, 0, D * sizeof(real));
    for (long i = 0; i < R; i++, g += D, rows += D, out += D) {
        real sum = 0, along = 0;
        for (long j = 0; j < D; j++) {
            const real s = g[j] * scale[j];
            d_scale[j] += g[j] * rows[j], d_shift[j] += g[j];
            sum += s, along += s * rows[j];
        }
        for (long j = 0; j < D; j++)
            out[j] += factor[i] * (g[j] * scale[j] - sum / D - rows[j] * (along / D));
    }
}

/* out = a w + b for rows of a; gradients of w and b, and of a, by the cotangents g of out. */
static void layer(long n, long m, const real *a, const real *w, const real *b, real *out) {
    pack(n, m, w, m, 1, panels);
    for (long i = 0; i < R; i++) memcpy(out + i * m, b, m * sizeof(real));
    product(R, m, n, a, n, 1, panels, n, out, m, 1);
}

static void layer_back(long n, long m, const real *a, const real *w, const real *g, real *da,
                       real *dw, real *restrict db) {
    memset(db, 0, m * sizeof(real));
    for (long i = 0; i < R; i++)
        for (long j = 0; j < m; j++) db[j] += g[i * m + j];
    pack(R, m, g, m, 1, panels);
    product(n, m, R, a, 1, n, panels, R, dw, m, 0);
    pack(m, n, w, 1, m, panels);
    product(R, n, m, g, m, 1, panels, m, da, n, 0);
}

double block(const real *x, const real *targets, const real *s1, const real *m1, const real *w_mix,
             const real *b_mix, const real *w_read, const real *b_read, const real *s2,
             const real *m2, const real *w_up, const real *b_up, const real *w_down,
             const real *b_down, real *g_s1, real *g_m1, real *g_mix, real *gb_mix, real *g_read,
             real *gb_read, real *g_s2, real *g_m2, real *g_up, real *gb_up, real *g_down,
             real *gb_down) {
    static real rows1[R * D], factor1[R], h1[R * D], rows2[R * D], factor2[R], h2[R * D];
    static real mixed[R * MIX], d_mixed[R * MIX], p[HEADS][R][R], dp[R][R], read[R * D];
    static real middle[R * D], z[R * UP], u[R * UP], slope[R * UP], y[R * D], du[R * UP];
    static real d_read[R * D], d_h[R * D];
    const real share = 1 / (real)sqrt((double)DEEP);
    real loss = 0;
    normalise(x, s1, m1, rows1, factor1, h1);
    layer(D, MIX, h1, w_mix, b_mix, mixed);
    for (long h = 0; h < HEADS; h++) {
        const real *q = mixed + h * DEEP, *k = q + D, *v = k + D;
        pack(DEEP, R, k, 1, MIX, panels);
        product(R, R, DEEP, q, MIX, 1, panels, DEEP, p[h][0], R, 0);
        for (long i = 0; i < R; i++) {
            real *s = p[h][i], top = s[0], total = 0;
            for (long j = 0; j < R; j++) top = s[j] > top ? s[j] : top;
            for (long j = 0; j < R; j++) s[j] = EXP((s[j] - top) * share);
            for (long j = 0; j < R; j++) total += s[j];
            total = 1 / total;
            for (long j = 0; j < R; j++) s[j] *= total;
        }
        pack(R, DEEP, v, MIX, 1, panels);
        product(R, DEEP, R, p[h][0], R, 1, panels, R, read + h * DEEP, D, 0);
    }
    layer(D, D, read, w_read, b_read, middle);
    for (long i = 0; i < R * D; i++) middle[i] += x[i];
    normalise(middle, s2, m2, rows2, factor2, h2);
    layer(D, UP, h2, w_up, b_up, z);
    for (long i = 0; i < R * UP; i++) {
        const real s = z[i] * z[i];
        const real t = TANH((real)STEEPNESS * z[i] * (1 + (real)BENDING * s));
        const real rise = (real)STEEPNESS * (1 + 3 * (real)BENDING * s);
        u[i] = (real)0.5 * z[i] * (1 + t);
        slope[i] = (real)0.5 * (1 + t) * (1 + z[i] * (1 - t) * rise);
    }
    layer(UP, D, u, w_down, b_down, y);
    for (long i = 0; i < R * D; i++) {
        y[i] += middle[i] - targets[i];
        loss += y[i] * y[i];
        y[i] *= (real)2 / (R * D);
    }
    layer_back(UP, D, u, w_down, y, du, g_down, gb_down);
    for (long i = 0; i < R * UP; i++) du[i] *= slope[i];
    layer_back(D, UP, h2, w_up, du, d_h, g_up, gb_up);
    normalise_back(d_h, s2, rows2, factor2, y, g_s2, g_m2);
    layer_back(D, D, read, w_read, y, d_read, g_read, gb_read);
    for (long h = 0; h < HEADS; h++) {
        const real *q = mixed + h * DEEP, *k = q + D, *v = k + D, *g = d_read + h * DEEP;
        real *dq = d_mixed + h * DEEP, *dk = dq + D, *dv = dk + D;
        pack(R, DEEP, g, D, 1, panels);
        product(R, DEEP, R, p[h][0], 1, R, panels, R, dv, MIX, 0);
        pack(DEEP, R, v, 1, MIX, panels);
        product(R, R, DEEP, g, D, 1, panels, DEEP, dp[0], R, 0);
        for (long i = 0; i < R; i++) {
            const real *s = p[h][i];
            real along = 0;
            for (long j = 0; j < R; j++) along += dp[i][j] * s[j];
            for (long j = 0; j < R; j++) dp[i][j] = s[j] * (dp[i][j] - along) * share;
        }
        pack(R, DEEP, k, MIX, 1, panels);
        product(R, DEEP, R, dp[0], R, 1, panels, R, dq, MIX, 0);
        pack(R, DEEP, q, MIX, 1, panels);
        product(R, DEEP, R, dp[0], 1, R, panels, R, dk, MIX, 0);
    }
    layer_back(D, MIX, h1, w_mix, d_mixed, d_h, g_mix, gb_mix);
    normalise_back(d_h, s1, rows1, factor1, y, g_s1, g_m1);
    return loss / (R * D);
}
#endif

#ifdef PINN
/* A block of points: the value, its derivatives by t, by x and by x twice as 4 S rows of one matrix,
 * whose columns are filled up to whole vectors. */
enum { S = 256 / sizeof(real), MP = (M + LANES - 1) / LANES * LANES, ROWS4 = 4 * S, ONE = S * MP };
enum { PACKED = M * WIDTH * (MP / WIDTH + 1), LAYERS = HIDDEN - 1 };

static real bias[HIDDEN][MP], g_bias[HIDDEN][MP], inner[LAYERS][M][MP], g_inner[LAYERS][M][MP];
static real forward[LAYERS][PACKED], back[LAYERS][PACKED], first[2][MP], g_first[2][MP];
static real last[MP], g_last[MP], g_level;

static void prepare(const real *const *w) {
    for (long k = 0; k < HIDDEN; k++) memcpy(bias[k], w[2 * k + 1], M * sizeof(real));
    for (long k = 0; k < LAYERS; k++) {
        pack(M, M, w[2 * k + 2], M, 1, forward[k]);
        pack(M, M, w[2 * k + 2], 1, M, back[k]);
    }
    for (long j = 0; j < M; j++) {
        first[0][j] = w[0][j], first[1][j] = w[0][M + j], last[j] = w[2 * HIDDEN][j];
    }
    memset(g_bias, 0, sizeof g_bias);
    memset(g_inner, 0, sizeof g_inner);
    memset(g_first, 0, sizeof g_first);
    memset(g_last, 0, sizeof g_last);
    g_level = 0;
}

static void activate(const real *restrict b, real *restrict z, real *restrict a,
                     real *restrict slope, real *restrict bend) {
    for (long i = 0; i < S; i++)
        for (long j = 0; j < MP; j++) {
            const long k = i * MP + j;
            const real t = TANH(z[k] + b[j]), d = 1 - t * t, e = -2 * t * d, zx = z[2 * ONE + k];
            a[k] = t, slope[k] = d, bend[k] = e;
            a[ONE + k] = d * z[ONE + k];
            a[2 * ONE + k] = d * zx;
            a[3 * ONE + k] = d * z[3 * ONE + k] + e * zx * zx;
        }
}

static void activate_back(const real *restrict z, const real *restrict a,
                          const real *restrict slope, const real *restrict bend,
                          real *restrict g, real *restrict gb) {
    for (long i = 0; i < S; i++)
        for (long j = 0; j < MP; j++) {
            const long k = i * MP + j;
            const real d = slope[k], e = bend[k], third = -2 * (d * d + a[k] * e);
            const real zt = z[ONE + k], zx = z[2 * ONE + k], zxx = z[3 * ONE + k];
            const real gt = g[ONE + k], gx = g[2 * ONE + k], gxx = g[3 * ONE + k];
            g[k] = d * g[k] + e * (zt * gt + zx * gx + zxx * gxx) + third * zx * zx * gxx;
            gb[j] += g[k];
            g[ONE + k] = d * gt;
            g[2 * ONE + k] = d * gx + 2 * e * zx * gxx;
            g[3 * ONE + k] = d * gxx;
        }
}

static real along(const real *a) {
    vector t = {0};
    real sum = 0;
    for (long j = 0; j < MP; j += LANES) t += *(const vector *)(a + j) * *(const vector *)(last + j);
    for (int c = 0; c < LANES; c++) sum += t[c];
    return sum;
}

static real residuals(const real *points, long m, real level) {
    static real z[HIDDEN][ROWS4 * MP], a[HIDDEN][ROWS4 * MP], slope[HIDDEN][ONE], bend[HIDDEN][ONE];
    static real g[2][ROWS4 * MP], x[S], t[S], u[ROWS4], panels[ROWS4 * WIDTH * (MP / WIDTH + 1)];
    real loss = 0;
    for (long i = 0; i < S; i++)
        x[i] = i < m ? points[2 * i] : 0, t[i] = i < m ? points[2 * i + 1] : 0;
    for (long i = 0; i < S; i++)
        for (long j = 0; j < MP; j++) {
            const long k = i * MP + j;
            z[0][k] = x[i] * first[0][j] + t[i] * first[1][j];
            z[0][ONE + k] = first[1][j], z[0][2 * ONE + k] = first[0][j], z[0][3 * ONE + k] = 0;
        }
    activate(bias[0], z[0], a[0], slope[0], bend[0]);
    for (long k = 1; k < HIDDEN; k++) {
        product(ROWS4, MP, M, a[k - 1], MP, 1, forward[k - 1], M, z[k], MP, 0);
        activate(bias[k], z[k], a[k], slope[k], bend[k]);
    }
    for (long i = 0; i < ROWS4; i++) u[i] = along(a[HIDDEN - 1] + i * MP);
    for (long i = 0; i < S; i++) {
        const real v = u[i] + level, ut = u[S + i], ux = u[2 * S + i], uxx = u[3 * S + i];
        const real r = i < m ? ut + v * ux - (real)VISCOSITY * uxx : 0, d = r * (real)(2.0 / N);
        loss += r * r;
        u[i] = d * ux, u[S + i] = d, u[2 * S + i] = d * v, u[3 * S + i] = -(real)VISCOSITY * d;
        g_level += u[i];
    }
    real *now = g[0], *next = g[1];
    for (long i = 0; i < ROWS4; i++)
        for (long j = 0; j < MP; j++) {
            g_last[j] += u[i] * a[HIDDEN - 1][i * MP + j];
            now[i * MP + j] = u[i] * last[j];
        }
    for (long k = HIDDEN - 1; k > 0; k--) {
        activate_back(z[k], a[k], slope[k], bend[k], now, g_bias[k]);
        pack(ROWS4, MP, now, MP, 1, panels);
        product(M, MP, ROWS4, a[k - 1], 1, MP, panels, ROWS4, g_inner[k - 1][0], MP, 1);
        product(ROWS4, MP, M, now, MP, 1, back[k - 1], M, next, MP, 0);
        real *const done = now;
        now = next, next = done;
    }
    activate_back(z[0], a[0], slope[0], bend[0], now, g_bias[0]);
    for (long i = 0; i < S; i++)
        for (long j = 0; j < MP; j++) {
            g_first[0][j] += x[i] * now[i * MP + j] + now[2 * ONE + i * MP + j];
            g_first[1][j] += t[i] * now[i * MP + j] + now[ONE + i * MP + j];
        }
    return loss;
}

#ifdef EDGE
static double edges(const real *places, const real *known, real level) {
    static real a[HIDDEN][EDGE * MP], g[2][EDGE * MP], d[EDGE];
    static real panels[EDGE * WIDTH * (MP / WIDTH + 1)];
    real loss = 0;
    for (long i = 0; i < EDGE; i++)
        for (long j = 0; j < MP; j++)
            a[0][i * MP + j] = places[2 * i] * first[0][j] + places[2 * i + 1] * first[1][j];
    for (long k = 0; k < HIDDEN; k++) {
        if (k) product(EDGE, MP, M, a[k - 1], MP, 1, forward[k - 1], M, a[k], MP, 0);
        for (long i = 0; i < EDGE; i++)
            for (long j = 0; j < MP; j++) a[k][i * MP + j] = TANH(a[k][i * MP + j] + bias[k][j]);
    }
    real *now = g[0], *next = g[1];
    for (long i = 0; i < EDGE; i++) {
        const real error = along(a[HIDDEN - 1] + i * MP) + level - known[i];
        loss += error * error, d[i] = error * (real)(2.0 / EDGE), g_level += d[i];
        for (long j = 0; j < MP; j++) {
            g_last[j] += d[i] * a[HIDDEN - 1][i * MP + j];
            now[i * MP + j] = d[i] * last[j];
        }
    }
    for (long k = HIDDEN - 1; k >= 0; k--) {
        for (long i = 0; i < EDGE; i++)
            for (long j = 0; j < MP; j++) {
                const real t = a[k][i * MP + j];
                now[i * MP + j] *= 1 - t * t;
                g_bias[k][j] += now[i * MP + j];
            }
        if (!k) break;
        pack(EDGE, MP, now, MP, 1, panels);
        product(M, MP, EDGE, a[k - 1], 1, MP, panels, EDGE, g_inner[k - 1][0], MP, 1);
        product(EDGE, MP, M, now, MP, 1, back[k - 1], M, next, MP, 0);
        real *const done = now;
        now = next, next = done;
    }
    for (long i = 0; i < EDGE; i++)
        for (long j = 0; j < MP; j++) {
            g_first[0][j] += places[2 * i] * now[i * MP + j];
            g_first[1][j] += places[2 * i + 1] * now[i * MP + j];
        }
    return loss / EDGE;
}
#endif

/* `w` has weights and biases in turn, and `g` where their gradients go. */
double pinn(const real *points, const real *places, const real *known, const real *const *w,
            real *const *g) {
    double loss = 0, edge = 0;
    const real level = w[2 * HIDDEN + 1][0];
    prepare(w);
    for (long i = 0; i < N; i += S)
        loss += residuals(points + 2 * i, N - i < S ? N - i : S, level);
#ifdef EDGE
    edge = edges(places, known, level);
#else
    (void)places, (void)known;
#endif
    memcpy(g[0], g_first[0], M * sizeof(real));
    memcpy(g[0] + M, g_first[1], M * sizeof(real));
    for (long k = 0; k < HIDDEN; k++) memcpy(g[2 * k + 1], g_bias[k], M * sizeof(real));
    for (long k = 0; k < LAYERS; k++)
        for (long i = 0; i < M; i++)
            memcpy(g[2 * k + 2] + i * M, g_inner[k][i], M * sizeof(real));
    memcpy(g[2 * HIDDEN], g_last, M * sizeof(real));
    g[2 * HIDDEN + 1][0] = g_level;
    return loss / N + edge;
}
#endif
