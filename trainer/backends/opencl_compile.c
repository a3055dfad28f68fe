/* How long a call may take that only enqueues, and what is said when it takes longer. */
#include "trainer/backends/opencl_compile.h"

#include <stdio.h>

#include "io/clock.h"

double opencl_compile_clock(void)
{
        return (double) clock_monotonic_usec() / 1e6;
}

void opencl_compile_note(double begin_s, bool *said)
{
        if (*said || opencl_compile_clock() - begin_s < 1)
                return;
        *said = true;
        (void) fprintf(stderr,
                       "remuda-train-opencl: the device's kernels are being compiled, which may take a "
                       "minute or two; its driver keeps them (PoCL: in ~/.cache/pocl), the next run begins "
                       "at once\n");
}
