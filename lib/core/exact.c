#include "core/exact.h"

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
        int exponent, first = value > QUICK_LEAST && value < QUICK_MOST ? 16 : 15;

        for (int precision = first; precision <= 17; precision++) {
                (void) snprintf(text, sizeof(text), "%.*e", precision - 1, value);
                if (strtod(text, NULL) == value)
                        break;
        }
        mantissa_end = strchr(text, 'e');
        assert(mantissa_end != NULL);
        exponent = (int) strtol(mantissa_end + 1, NULL, 10);
        for (const char *c = text; c < mantissa_end; c++)
                if (*c >= '0' && *c <= '9') /* the point, whatever the locale's, is the second character */
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
        return value == 0 || (value >= EXACT_LEAST && value <= EXACT_MOST);
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

struct wide wide_from_uint64(uint64_t value)
{
        struct wide wide;

        wide.count = value != 0;
        wide.word[0] = value;
        return wide;
}

struct wide wide_multiply_uint64(const struct wide *a, uint64_t factor)
{
        struct wide product;
        uint64_t carry = 0;

        product.count = 0;
        if (factor == 0)
                return product;
        for (size_t i = 0; i < a->count; i++) {
                unsigned __int128 sum = (unsigned __int128) a->word[i] * factor + carry;

                product.word[i] = (uint64_t) sum;
                carry = (uint64_t) (sum >> 64);
        }
        product.count = a->count;
        if (carry != 0) {
                assert(product.count < WIDE_WORDS);
                product.word[product.count++] = carry;
        }
        return product;
}

struct wide wide_multiply(const struct wide *a, const struct wide *b)
{
        struct wide product;

        product.count = 0;
        if (a->count == 0 || b->count == 0)
                return product;
        product.count = a->count + b->count;
        assert(product.count <= WIDE_WORDS);
        memset(product.word, 0, product.count * sizeof(product.word[0]));
        for (size_t i = 0; i < a->count; i++) {
                uint64_t carry = 0;

                for (size_t j = 0; j < b->count; j++) {
                        unsigned __int128 sum =
                                (unsigned __int128) a->word[i] * b->word[j] + product.word[i + j] + carry;

                        product.word[i + j] = (uint64_t) sum;
                        carry = (uint64_t) (sum >> 64);
                }
                product.word[i + b->count] = carry;
        }
        if (product.word[product.count - 1] == 0)
                product.count--;
        return product;
}

struct wide wide_add(const struct wide *a, const struct wide *b)
{
        const struct wide *longer = a->count >= b->count ? a : b;
        const struct wide *shorter = longer == a ? b : a;
        struct wide sum;
        uint64_t carry = 0;

        for (size_t i = 0; i < longer->count; i++) {
                unsigned __int128 word = (unsigned __int128) longer->word[i] + carry;

                if (i < shorter->count)
                        word += shorter->word[i];
                sum.word[i] = (uint64_t) word;
                carry = (uint64_t) (word >> 64);
        }
        sum.count = longer->count;
        if (carry != 0) {
                assert(sum.count < WIDE_WORDS);
                sum.word[sum.count++] = carry;
        }
        return sum;
}

int wide_compare(const struct wide *a, const struct wide *b)
{
        if (a->count != b->count)
                return a->count < b->count ? -1 : 1;
        for (size_t i = a->count; i-- > 0;)
                if (a->word[i] != b->word[i])
                        return a->word[i] < b->word[i] ? -1 : 1;
        return 0;
}

static struct wide multiply_by_power_of_ten(struct wide wide, int exponent)
{
        assert(exponent >= 0);
        for (; exponent >= 19; exponent -= 19)
                wide = wide_multiply_uint64(&wide, UINT64_C(10000000000000000000));
        for (; exponent > 0; exponent--)
                wide = wide_multiply_uint64(&wide, 10);
        return wide;
}

struct wide wide_power_of_ten(int exponent)
{
        return multiply_by_power_of_ten(wide_from_uint64(1), exponent);
}

struct wide wide_from_decimal(const struct decimal *decimal, int shift)
{
        return multiply_by_power_of_ten(wide_from_uint64(decimal->digits), decimal->exponent + shift);
}

struct fraction fraction_add(const struct fraction *a, const struct fraction *b)
{
        struct wide left = wide_multiply(&a->numerator, &b->denominator);
        struct wide right = wide_multiply(&b->numerator, &a->denominator);

        return (struct fraction){ .numerator = wide_add(&left, &right),
                                  .denominator = wide_multiply(&a->denominator, &b->denominator) };
}

int fraction_compare(const struct fraction *a, const struct fraction *b)
{
        struct wide left = wide_multiply(&a->numerator, &b->denominator);
        struct wide right = wide_multiply(&b->numerator, &a->denominator);

        return wide_compare(&left, &right);
}
