/* CPU peak: what a group of processors reckons at most in single precision, estimated, for a chip that no
 * data sheet of ours names:
 *
 *      physical cores x clock x lanes of its widest vector unit x 2 (a multiplication and an addition)
 *
 * The clock is the highest that the machine tells. 4 lanes (SSE, NEON, VSX) where it tells no wider unit;
 * AVX and LASX have 8, AVX-512 has 16, SVE as many as the kernel gives to programs. One unit a core is
 * counted: cores with two are estimated at half, so that an estimate rather promises too little. */
#pragma once

#include "agent/inventory/hardware.h"
#include "agent/tree/tree.h"

/* cpu_peak_tflops() - @processors: of the group, threads counted; @first: one of them, as the kernel counts
 * Return: TFLOP/s; 0 = the clock is not known. */
double cpu_peak_tflops(const struct tree *tree, const struct hardware *hardware, unsigned processors,
                       unsigned first);
