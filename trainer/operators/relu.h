/* ReLU: the activation of the shipped models, a rectifier with a rounded corner.
 *
 * f(x) = 0 below 0, x^2 / 2k up to the knee k, x - k/2 above. Its slope has no jump: where a plain rectifier
 * gives one sample's gradient or none depending on the last bit of a sum, and two orders of adding thereby
 * come apart, this one gives nearly the same. The slope is known from the result alone, so nothing else need
 * be kept for backward. Pure. */
#pragma once

#include <math.h>

#define RELU_KNEE 0.5F

static inline float relu_of(float x)
{
        float low = x > 0 ? x : 0, part = low < RELU_KNEE ? low : RELU_KNEE;

        return part * part * (0.5F / RELU_KNEE) + (low - part);
}

/* relu_slope() - of a result y = relu_of(x). */
static inline float relu_slope(float y)
{
        float square = y * (2 / RELU_KNEE);

        return sqrtf(square < 1 ? square : 1);
}
