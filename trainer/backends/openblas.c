/* What the CPU can do decides, where the library does not know it. */
#include "trainer/backends/openblas.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* From OpenBLAS's own cblas.h; declared there under names that differ between packages. */
extern void openblas_set_num_threads(int threads);
extern char *openblas_get_corename(void);

/* OpenBLAS chooses its kernels by CPU model when it is loaded. A model that is newer than the library gets
 * the slowest ones, 3 to 8 times slower than the machine; what the CPU can do decides better. */
static const char *better_kernels(void)
{
#if defined(__x86_64__)
        static const char *const slow[] = { "Prescott", "Core2",   "Penryn", "Dunnington",
                                            "Atom",     "Nehalem", "Unknown" };
        const char *chosen = openblas_get_corename();
        bool fallen_back = false;

        for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
                fallen_back = fallen_back || strcmp(chosen, slow[i]) == 0;
        if (fallen_back && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
                return "SkylakeX";
        if (fallen_back && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
                return "Haswell";
#endif
        return NULL;
}

void openblas_choose_kernels(char **argv)
{
        const char *kernels = getenv("OPENBLAS_CORETYPE") == NULL ? better_kernels() : NULL;

        if (kernels == NULL || setenv("OPENBLAS_CORETYPE", kernels, 0) < 0)
                return;
        (void) execv("/proc/self/exe", argv); /* failing that, the slow ones work too */
}

void openblas_use_threads(size_t threads)
{
        if (getenv("OPENBLAS_NUM_THREADS") == NULL && getenv("OMP_NUM_THREADS") == NULL)
                openblas_set_num_threads((int) threads);
}
