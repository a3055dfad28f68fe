/* Decimal: the number that a person wrote, found again behind the double that it became.
 *
 * A double that came from text stands for the shortest decimal that reads back as it: the double
 * 0.1000000000000000055511... is one tenth, {1, -1}. Pure; no heap. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define DECIMAL_LEAST 1e-30 /* the numbers taken are 0 or within DECIMAL_LEAST ... DECIMAL_MOST */
#define DECIMAL_MOST  1e30

struct decimal {
        uint64_t digits; /* < 10^17 */
        int exponent;    /* value = digits x 10^exponent; -46 ... 30 */
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
