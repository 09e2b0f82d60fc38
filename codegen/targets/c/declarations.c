/* Declarations of functions that are compiled apart: of runtime.c, products.c, crew.c, and of the
 * families of elementary.c. A run of elements is a pointer, and the step to the next one. */

/* = f */
extern void pg_matmul_T(T *restrict, const T *, long, long, const T *, long, long, long, long, long);

/* = f */
extern void pg_onto_T(T *restrict, const T *, long, long, const T *, long, long, long, long, long);

/* = f */
extern void pg_product_T(T *restrict, const T *, long, long, const T *, long, long, long, long, long);

/* = f */
extern void pg_added_T(T *restrict, const T *, long, long, const T *, long, long, long, long, long);

/* = fiu */
extern T pg_sum_T(const T *, long, long);

/* = fiu */
extern T pg_prod_T(const T *, long, long, T);

/* = fiu */
extern T pg_max_T(const T *, long, long);

/* = fiu */
extern T pg_min_T(const T *, long, long);

/* = */
extern void pg_exp(double *, const double *, long);

/* = */
extern void pg_expf(float *, const float *, long);

/* = */
extern void pg_expm1(double *, const double *, long);

/* = */
extern void pg_expm1f(float *, const float *, long);

/* = */
extern void pg_log(double *, const double *, long);

/* = */
extern void pg_logf(float *, const float *, long);

/* = */
extern void pg_log1p(double *, const double *, long);

/* = */
extern void pg_log1pf(float *, const float *, long);

/* = */
extern void pg_sin(double *, const double *, long);

/* = */
extern void pg_sinf(float *, const float *, long);

/* = */
extern void pg_cos(double *, const double *, long);

/* = */
extern void pg_cosf(float *, const float *, long);

/* = */
extern void pg_tan(double *, const double *, long);

/* = */
extern void pg_tanf(float *, const float *, long);

/* = */
extern void pg_sinh(double *, const double *, long);

/* = */
extern void pg_sinhf(float *, const float *, long);

/* = */
extern void pg_cosh(double *, const double *, long);

/* = */
extern void pg_coshf(float *, const float *, long);

/* = */
extern void pg_tanh(double *, const double *, long);

/* = */
extern void pg_tanhf(float *, const float *, long);

/* = */
extern void pg_asin(double *, const double *, long);

/* = */
extern void pg_asinf(float *, const float *, long);

/* = */
extern void pg_acos(double *, const double *, long);

/* = */
extern void pg_acosf(float *, const float *, long);

/* = */
extern void pg_atan(double *, const double *, long);

/* = */
extern void pg_atanf(float *, const float *, long);

/* = */
extern void pg_asinh(double *, const double *, long);

/* = */
extern void pg_asinhf(float *, const float *, long);

/* = */
extern void pg_acosh(double *, const double *, long);

/* = */
extern void pg_acoshf(float *, const float *, long);

/* = */
extern void pg_atanh(double *, const double *, long);

/* = */
extern void pg_atanhf(float *, const float *, long);

/* = */
extern void pg_erf(double *, const double *, long);

/* = */
extern void pg_erff(float *, const float *, long);

/* = */
extern void pg_erfc(double *, const double *, long);

/* = */
extern void pg_erfcf(float *, const float *, long);

/* = */
extern void pg_sigmoid(double *, const double *, long);

/* = */
extern void pg_sigmoidf(float *, const float *, long);

/* = */
extern void pg_pow(double *, const double *, long, const double *, long, long);

/* = */
extern void pg_powf(float *, const float *, long, const float *, long, long);

/* = */
extern void pg_atan2(double *, const double *, long, const double *, long, long);

/* = */
extern void pg_atan2f(float *, const float *, long, const float *, long, long);

/* = */
extern void pg_logaddexp(double *, const double *, long, const double *, long, long);

/* = */
extern void pg_logaddexpf(float *, const float *, long, const float *, long, long);

/* = */
extern int (*pg_stop)(void);

/* = */
extern int pg_share(int (*)(void *const *, char *, long), void *const *, char *, long, long);
