/* Special functions of elements: parts of native kernels, taken as they are needed.
 *
 * What the marks mean is told in parts.py. Formulas and numbers are those of the package's
 * `approximations`, where their sources are; float goes by double. */

/* = */
/* log(gamma(x)) - (x - 1/2) log(x) + x - log(2 pi)/2 for x >= 8.5. DLMF 5.11.1. */
static inline double pg_stirling(double x) {
    const double inverse = 1.0 / x, z = inverse * inverse;
    double p = 0.17964437236883057;
    p = p * z - 0.029550653594771242;
    p = p * z + 0.00641025641025641;
    p = p * z - 0.0019175269175269176;
    p = p * z + 0.0008417508417508417;
    p = p * z - 0.0005952380952380953;
    p = p * z + 0.0007936507936507937;
    p = p * z - 0.002777777777777778;
    p = p * z + 0.08333333333333333;
    return inverse * p;
}

/* = */
/* How far 0 <= x < 8.5 is from a whole number. gamma(x) is `factor` gamma(2 + that), or one through
 * it for a whole number below 2. */
static inline double pg_to_two(double x, double *factor, int *falls) {
    const double whole = rint(x);
    double f = whole == 1.0 ? x : whole == 0.0 ? x * (x + 1.0) : 1.0;
    for (int k = 1; k < 7; k++)
        if (whole > k + 1) f *= x - k;
    *factor = f;
    *falls = whole < 2.0;
    return x - whole;
}

/* = */
static inline double pg_gammaln_of(double given) {
    const double x = fabs(given);
    double result;
    if (x < 8.5) {
        double factor;
        int falls;
        const double t = pg_to_two(x, &factor, &falls);
        double p = 2.7475390051909663e-07;
        p = p * t - 5.811277768921246e-07;
        p = p * t + 9.242852225162277e-07;
        p = p * t - 1.9743106888421067e-06;
        p = p * t + 4.3828545383846665e-06;
        p = p * t - 9.45628851510172e-06;
        p = p * t + 2.050601970174762e-05;
        p = p * t - 4.4923727564247656e-05;
        p = p * t + 9.945761692157133e-05;
        p = p * t - 0.00022315497746292723;
        p = p * t + 0.0005096695196526673;
        p = p * t - 0.0011927539009983087;
        p = p * t + 0.002890510330865901;
        p = p * t - 0.007385551028935545;
        p = p * t + 0.02058080842778338;
        p = p * t - 0.06735230105319563;
        p = p * t + 0.3224670334241132;
        p = p * t + 0.42278433509846713;
        result = t * p + (falls ? -log(factor) : log(factor));
    } else {
        result = (x - 0.5) * (log(x) - 1.0) + (0.4189385332046727 + pg_stirling(x));
    }
    if (given < 0.0) {
        /* DLMF 5.5.3. */
        if (x == INFINITY) return -INFINITY;
        const double sine = fabs(sin(3.141592653589793 * (x - rint(x))));
        return 1.1447298858494002 - log(x * sine) - result;
    }
    return result;
}

/* = f */
static inline T pg_gammaln_T(T x) { return (T)pg_gammaln_of((double)x); }

/* = */
static inline double pg_gamma_of(double given) {
    const double x = fabs(given);
    double first, second = 1.0;
    if (given == 0.0) return copysign(INFINITY, given);
    if (x < 8.5) {
        double factor;
        int falls;
        const double t = pg_to_two(x, &factor, &falls);
        double p = -5.085355881064242e-06;
        p = p * t + 1.0167926427102734e-05;
        p = p * t - 1.4605147247966914e-05;
        p = p * t + 2.9194145041417985e-05;
        p = p * t - 6.095630515446432e-05;
        p = p * t + 0.00012200059419124122;
        p = p * t - 0.0002409169950366213;
        p = p * t + 0.0004903395755189122;
        p = p * t - 0.0009195759739844205;
        p = p * t + 0.002103937610469369;
        p = p * t - 0.002852645716731871;
        p = p * t + 0.011154045509310614;
        p = p * t - 0.00026698207129733937;
        p = p * t + 0.0742490107586179;
        p = p * t + 0.08157691924711025;
        p = p * t + 0.41184033042639173;
        p = p * t + 0.4227843350984671;
        p = p * t + 1.0;
        first = falls ? p / factor : p * factor;
    } else {
        /* Neither factor overflows. */
        const double large = x > 200.0 ? 200.0 : x;
        second = pow(large, 0.5 * large - 0.25);
        first = second * exp(-large) * (2.5066282746310007 * exp(pg_stirling(large)));
    }
    if (given < 0.0) {
        const double whole = rint(x);
        const double even = fmod(whole, 2.0) == 0.0 ? -1.0 : 1.0;
        const double sine = even * sin(3.141592653589793 * (x - whole));
        if (sine == 0.0 || x == INFINITY) return (double)NAN;
        return 3.141592653589793 / (x * sine) / first / second;
    }
    return x != x ? x : first * second;
}

/* = f */
static inline T pg_gamma_T(T x) { return (T)pg_gamma_of((double)x); }

/* = */
/* DLMF 5.11.2 and 5.5.2. */
static inline double pg_digamma_above(double x) {
    if (!(x < 10.0)) {
        const double inverse = 1.0 / x, z = inverse * inverse;
        double p = -0.4432598039215686;
        p = p * z + 0.08333333333333333;
        p = p * z - 0.021092796092796094;
        p = p * z + 0.007575757575757576;
        p = p * z - 0.004166666666666667;
        p = p * z + 0.003968253968253968;
        p = p * z - 0.008333333333333333;
        p = p * z + 0.08333333333333333;
        return log(x) - 0.5 * inverse - z * p;
    }
    const double whole = floor(x), base = x - (whole - 1.0), s = base - 1.5;
    /* By the root between 1 and 2, which is the sum of two numbers. */
    double p = -0.00017312261802727394;
    p = p * s + 0.00025968482126430747;
    p = p * s - 0.00015148586836773365;
    p = p * s + 0.0002272331660987376;
    p = p * s - 0.0004821990530566789;
    p = p * s + 0.0007233266279287554;
    p = p * s - 0.0010376374098418604;
    p = p * s + 0.0015566317474486838;
    p = p * s - 0.002345267632540769;
    p = p * s + 0.003519006401502276;
    p = p * s - 0.005279964873257405;
    p = p * s + 0.007926944646403797;
    p = p * s - 0.011908218001568644;
    p = p * s + 0.0179072524394512;
    p = p * s - 0.02697579675613825;
    p = p * s + 0.04076083381242074;
    p = p * s - 0.061922133273064534;
    p = p * s + 0.09498872445494122;
    p = p * s - 0.14840492305390884;
    p = p * s + 0.2405424842407742;
    p = p * s - 0.4236274212814605;
    p = p * s + 0.951055876031833;
    double steps = whole == 0.0 ? -1.0 / x : 0.0;
    for (int k = 1; k < 9; k++)
        if (whole > k) steps += 1.0 / (x - k);
    return (base - 1.4616321449683622 - 9.549995429965697e-17) * p + steps;
}

/* = */
static inline double pg_digamma_of(double x) {
    if (x == 0.0) return -copysign(INFINITY, x);
    if (!(x < 0.0)) return pg_digamma_above(x);
    const double tangent = tan(3.141592653589793 * (x - rint(x)));
    return tangent == 0.0 ? (double)NAN : pg_digamma_above(1.0 - x) - 3.141592653589793 / tangent;
}

/* = f */
static inline T pg_digamma_T(T x) { return (T)pg_digamma_of((double)x); }

/* = */
/* gamma(z + m) / gamma(z), by logarithms; at poles 0, infinite, or their ratio. */
static inline double pg_poch_of(double z, double m) {
    const double end = z + m;
    const int below = z <= 0.0 && z > -INFINITY && z == floor(z);
    const int above = end <= 0.0 && end > -INFINITY && end == floor(end);
    double odd = 1.0;
    if (below && above) {
        odd = fmod(m, 2.0) == 0.0 ? 1.0 : -1.0;
        return odd * exp(pg_gammaln_of(1.0 - z) - pg_gammaln_of(1.0 - end));
    }
    if (below && fabs(m) < INFINITY) return 0.0;
    if (above && fabs(z) < INFINITY) return INFINITY;
    if (z < 0.0) odd *= z == floor(z) ? (double)NAN : fmod(floor(z), 2.0) == 0.0 ? 1.0 : -1.0;
    if (end < 0.0)
        odd *= end == floor(end) ? (double)NAN : fmod(floor(end), 2.0) == 0.0 ? 1.0 : -1.0;
    return odd * exp(pg_gammaln_of(end) - pg_gammaln_of(z));
}

/* = f */
static inline T pg_poch_T(T z, T m) { return (T)pg_poch_of((double)z, (double)m); }

/* = */
/* exp(x x) erfc(x) for x >= 0. */
static inline double pg_erfcx_above(double x) {
    if (x > 1e8) return 0.5641895835477563 / x;
    const double t = (x - 3.0) / (x + 3.0);
    double p = -2.5208846559132343e-11;
    p = p * t + 8.373239801913565e-10;
    p = p * t + 1.1435382719942424e-09;
    p = p * t - 8.205287217548862e-09;
    p = p * t - 1.3744637271614611e-08;
    p = p * t + 4.1031674722876435e-08;
    p = p * t + 1.0252159854733823e-07;
    p = p * t - 1.4042772727671948e-07;
    p = p * t - 6.172971639709339e-07;
    p = p * t + 3.5571413343395913e-07;
    p = p * t + 3.4728430145951554e-06;
    p = p * t - 7.307985940695724e-07;
    p = p * t - 2.010075903780886e-05;
    p = p * t + 4.949184182276066e-06;
    p = p * t + 0.00012509940933306624;
    p = p * t - 0.00010515971612176149;
    p = p * t - 0.0007798322831260387;
    p = p * t + 0.0018886903443894542;
    p = p * t + 0.0025293918173706497;
    p = p * t - 0.023770514917107986;
    p = p * t + 0.06830802734389313;
    p = p * t - 0.11927366341538978;
    p = p * t + 0.12964515870276316;
    p = p * t - 0.04756229435344912;
    p = p * t - 0.1356211061245812;
    p = p * t + 1.2530080582697296;
    return p / (1.0 + 2.0 * x);
}

/* = */
static inline double pg_erfcx_of(double x) {
    const double found = pg_erfcx_above(fabs(x));
    if (!(x < 0.0)) return found;
    if (x < -27.0) return INFINITY;
    /* The head has so few bits that its square is exact. */
    const double head = (double)(float)x;
    return 2.0 * (exp(head * head) * exp((x - head) * (x + head))) - found;
}

/* = f */
static inline T pg_erfcx_T(T x) { return (T)pg_erfcx_of((double)x); }

/* = */
/* The inverse of erf for |x| <= 1/2. */
static inline double pg_erfinv_near(double x) {
    const double z = x * x;
    double p = 0.11314166859237805;
    p = p * z - 0.07607360776461179;
    p = p * z + 0.0734502053961959;
    p = p * z + 0.008446011583790524;
    p = p * z + 0.03159332043387681;
    p = p * z + 0.031145242581392795;
    p = p * z + 0.036522988083142235;
    p = p * z + 0.04283257848216029;
    p = p * z + 0.05173148498700455;
    p = p * z + 0.06495961132717862;
    p = p * z + 0.08655212936268364;
    p = p * z + 0.1275561753044084;
    p = p * z + 0.23201366653465907;
    p = p * z + 0.886226925452758;
    return x * p;
}

/* = */
/* The inverse of erfc for 0 <= q <= 1/2: a first guess, and one step of Halley's method. */
static inline double pg_erfcinv_tail(double q) {
    if (q == 0.0) return INFINITY;
    const double logarithm = log(q), root = sqrt(-logarithm), z = 1.0 / (1.0 + root);
    double p = 39.328678932566916;
    p = p * z - 121.88515033133058;
    p = p * z + 158.42740450314705;
    p = p * z - 115.35501710955468;
    p = p * z + 55.201796537872745;
    p = p * z - 18.03215028939699;
    p = p * z + 3.6271255211978706;
    p = p * z - 1.7640967289938658;
    p = p * z - 0.019698263327909596;
    p = p * z + 1.0001602072667735;
    const double y = root * p, scaled = pg_erfcx_above(y);
    const double excess = y * y - log(scaled) + logarithm, slope = 1.1283791670955126 / scaled;
    return y - 2.0 * excess / (2.0 * slope - excess * (slope - 2.0 * y));
}

/* = */
static inline double pg_erfinv_of(double x) {
    const double size = fabs(x);
    if (!(size > 0.5)) return pg_erfinv_near(x);
    return size > 1.0 ? (double)NAN : copysign(pg_erfcinv_tail(1.0 - size), x);
}

/* = f */
static inline T pg_erfinv_T(T x) { return (T)pg_erfinv_of((double)x); }

/* = */
static inline double pg_erfcinv_of(double x) {
    if (!(fabs(1.0 - x) > 0.5)) return pg_erfinv_near(1.0 - x);
    if (x < 0.0 || x > 2.0) return (double)NAN;
    return copysign(pg_erfcinv_tail(x < 2.0 - x ? x : 2.0 - x), 1.0 - x);
}

/* = f */
static inline T pg_erfcinv_T(T x) { return (T)pg_erfcinv_of((double)x); }

/* = */
static inline double pg_log_ndtr_of(double x) {
    const double scaled = 0.5 * pg_erfcx_above(fabs(x) * 0.7071067811865476);
    if (x < -1.0) return log(scaled) - 0.5 * x * x;
    /* The head has so few bits that its square is exact. */
    const double c = x > 40.0 ? 40.0 : x, head = (double)(float)c;
    const double small = scaled * (exp(-0.5 * head * head) * exp(-0.5 * (c - head) * (c + head)));
    return log1p(-(x < 0.0 ? 1.0 - small : small));
}

/* = f */
static inline T pg_log_ndtr_T(T x) { return (T)pg_log_ndtr_of((double)x); }

/* = f */
static inline T pg_xlogy_T(T x, T y) { return x == 0 && y == y ? x : x * log_F(y); }

/* = f */
static inline T pg_xlog1py_T(T x, T y) { return x == 0 && y == y ? x : x * log1p_F(y); }

/* = */
/* log(x / (1 - x)), with all its digits near 1/2, too. */
static inline double pg_logit_of(double x) {
    const double twice = 2.0 * x - 1.0, rest = 1.0 - x;
    return fabs(twice) < 0.5 ? log1p(twice / rest) : log(x / rest);
}

/* = f */
static inline T pg_logit_T(T x) { return (T)pg_logit_of((double)x); }
