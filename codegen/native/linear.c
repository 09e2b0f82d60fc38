/* Systems of linear equations and factorisations of small matrices: parts of native kernels, taken
 * as they are needed. What the marks mean is told in parts.py. */
