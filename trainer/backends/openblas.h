/* OpenBLAS of the cpu backend: which of its kernels, on how many threads. */
#pragma once

#include <stddef.h>

/* openblas_choose_kernels() - first thing in main(): starts the program anew where the library, older than
 * the CPU, chose slow ones. */
void openblas_choose_kernels(char **argv);

/* openblas_use_threads() - unless the user's environment says how many. */
void openblas_use_threads(size_t threads);
