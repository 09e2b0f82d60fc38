/* Functions of whole arrays: parts of native kernels, taken as they are needed.
 *
 * What the marks mean is told in parts.py. Arrays are in row-major order, without gaps. */
