/* Functions that files of C have with them which need nothing but the C library. Definitions begin
 * in the first column; a comment before one goes with it. */

/* 1 / (1 + exp(-x)), which does not overflow. */
static double pg_sigmoid(double x) {
    const double e = exp(-fabs(x));
    return x >= 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}

/* 1 / (1 + exp(-x)), which does not overflow. */
static float pg_sigmoidf(float x) {
    const float e = expf(-fabsf(x));
    return x >= 0.0f ? 1.0f / (1.0f + e) : e / (1.0f + e);
}
