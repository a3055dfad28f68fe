/* Ramp: the activation of the shipped models, a rectifier with a rounded corner.
 *
 * f(x) = 0 below 0, x^2 / 2k up to the knee k, x - k/2 above. Its slope has no jump: where a plain rectifier
 * gives one sample's gradient or none depending on the last bit of a sum, and two orders of adding thereby
 * come apart, the ramp gives nearly the same. The slope is known from the result alone, so nothing else need
 * be kept for backward. Pure. */
#pragma once

#include <math.h>

#define RAMP_KNEE 0.5F

static inline float ramp_of(float x)
{
        float low = x > 0 ? x : 0, part = low < RAMP_KNEE ? low : RAMP_KNEE;

        return part * part * (0.5F / RAMP_KNEE) + (low - part);
}

/* ramp_slope() - of a result y = ramp_of(x). */
static inline float ramp_slope(float y)
{
        float square = y * (2 / RAMP_KNEE);

        return sqrtf(square < 1 ? square : 1);
}
