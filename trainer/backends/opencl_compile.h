/* OpenCL compile: a call that should only enqueue and took a second was the device's compiler, of which the
 * user is told. */
#pragma once

#include <stdbool.h>

double opencl_compile_clock(void); /* seconds */

/* opencl_compile_note() - tells, once, of a call that began then and has returned. */
void opencl_compile_note(double begin_s, bool *said);
