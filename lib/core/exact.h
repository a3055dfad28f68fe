/* Exact: the numbers that people write, compared without rounding.
 *
 * A double that came from text stands for the shortest decimal that reads back as it: 0.1 is one tenth. Sums
 * and products of such decimals are fractions of whole numbers of up to WIDE_BITS bits. Pure; no heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXACT_LEAST 1e-30 /* the numbers taken are 0 or within EXACT_LEAST ... EXACT_MOST */
#define EXACT_MOST  1e30

#define WIDE_BITS  1280
#define WIDE_WORDS (WIDE_BITS / 64)

struct decimal {
        uint64_t digits; /* < 10^17 */
        int exponent;    /* value = digits x 10^exponent */
};

/* A whole number, 0 or more, little end first; words beyond `count` are not written. Callers stay within
 * WIDE_BITS by the ranges above: running over is a bug and is caught by assert. */
struct wide {
        size_t count; /* words in use; 0 = zero */
        uint64_t word[WIDE_WORDS];
};

struct fraction {
        struct wide numerator, denominator; /* denominator > 0 */
};

/* decimal_from_double() - Return: false, and *ret untouched, for a number that is not finite, is negative or
 * is outside the range above. */
bool decimal_from_double(double value, struct decimal *ret);
bool decimal_in_range(double value); /* would it? */

/* decimal_quick() - the same for a number in the range that has few digits, as what people write has: false,
 * and *ret untouched, where only decimal_from_double() knows. */
bool decimal_quick(double value, struct decimal *ret);

/* decimal_to_double() - the nearest double to digits x 10^exponent, for any 128-bit digits. */
double decimal_to_double(unsigned __int128 digits, int exponent);

struct wide wide_from_uint64(uint64_t value);
struct wide wide_multiply(const struct wide *a, const struct wide *b);
struct wide wide_multiply_uint64(const struct wide *a, uint64_t factor);
struct wide wide_add(const struct wide *a, const struct wide *b);
int wide_compare(const struct wide *a, const struct wide *b); /* -1, 0, 1 */

/* wide_from_decimal() - digits x 10^(exponent + shift); exponent + shift >= 0. */
struct wide wide_from_decimal(const struct decimal *decimal, int shift);
struct wide wide_power_of_ten(int exponent); /* exponent >= 0 */

struct fraction fraction_add(const struct fraction *a, const struct fraction *b);
int fraction_compare(const struct fraction *a, const struct fraction *b);
