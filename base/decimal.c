/* Finds the shortest decimal of a double: by one rounded division where it has few digits, by way of text
 * otherwise. */
#include "base/decimal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOUBLE_WHOLE_MAX 9007199254740992.0 /* 2^53: below it every whole number is a double */
#define QUICK_LEAST      1e-6               /* between these decimal_quick() finds all of up to 15 digits */
#define QUICK_MOST       1e15

/* The tens that a double holds exactly. */
static const double tens[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                               1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

/* Shortest decimal by way of text, for what the quick way does not reach: 15, 16 or 17 digits. */
static void decimal_from_text(double value, struct decimal *ret)
{
        char text[40];
        char *mantissa_end;
        uint64_t digits = 0;
        int exponent, precision = value > QUICK_LEAST && value < QUICK_MOST ? 15 : 14;

        do /* 17 digits tell every double */
                (void) snprintf(text, sizeof(text), "%.*e", precision++, value);
        while (strtod(text, NULL) != value);
        mantissa_end = strchr(text, 'e');
        assert(mantissa_end != NULL);
        exponent = (int) strtol(mantissa_end + 1, NULL, 10);
        for (const char *c = text; c < mantissa_end; c++)
                if (c != text + 1) /* the point */
                        digits = digits * 10 + (uint64_t) (*c - '0');
        exponent -= (int) (mantissa_end - text) - 2;
        while (digits % 10 == 0) {
                digits /= 10;
                exponent++;
        }
        *ret = (struct decimal){ .digits = digits, .exponent = exponent };
}

bool decimal_in_range(double value)
{
        return value == 0 || (value >= DECIMAL_LEAST && value <= DECIMAL_MOST);
}

bool decimal_quick(double value, struct decimal *ret)
{
        /* whole / ten^k is rounded once, as reading the text is: equal means that this is the text */
        for (size_t k = 0; k < sizeof(tens) / sizeof(tens[0]); k++) {
                double whole = rint(value * tens[k]);

                if (whole >= DOUBLE_WHOLE_MAX)
                        break;
                if (whole / tens[k] == value) {
                        *ret = (struct decimal){ .digits = (uint64_t) whole, .exponent = -(int) k };
                        return true;
                }
        }
        return false;
}

bool decimal_from_double(double value, struct decimal *ret)
{
        if (!decimal_in_range(value))
                return false;
        if (!decimal_quick(value, ret))
                decimal_from_text(value, ret);
        return true;
}

double decimal_to_double(unsigned __int128 digits, int exponent)
{
        char text[64];
        size_t at = sizeof(text) - 12;

        (void) snprintf(text + at, 12, "e%d", exponent);
        do {
                text[--at] = (char) ('0' + (int) (digits % 10));
                digits /= 10;
        } while (digits != 0);
        return strtod(text + at, NULL);
}
