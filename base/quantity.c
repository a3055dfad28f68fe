/* A decimal number and its suffix, exactly or not at all; what would overflow is an error. */
#include "base/quantity.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* clang-format off */
static const struct {
        const char *suffix;
        int tens, twos; /* x 10^tens x 2^twos */
} suffixes[] = {
        { "", 0, 0 },    { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },  { "k", 3, 0 },   { "M", 6, 0 },
        { "G", 9, 0 },   { "T", 12, 0 },  { "P", 15, 0 },  { "E", 18, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
        { "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
};
/* clang-format on */

struct decimal {
        __int128 digits; /* value = digits x 10^tens */
        int tens;
};

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* Digits with at most one point among them. Moves *text past them. Return: 0, -EINVAL or -ERANGE. */
static int parse_digits(const char **text, struct decimal *ret)
{
        const __int128 limit = (__int128) 1 << 100;
        size_t digits = 0;
        bool point = false;

        for (; is_digit(**text) || (**text == '.' && !point); (*text)++) {
                if (**text == '.') {
                        point = true;
                        continue;
                }
                if (ret->digits > limit)
                        return -ERANGE;
                ret->digits = ret->digits * 10 + (**text - '0');
                ret->tens -= point;
                digits++;
        }
        return digits > 0 ? 0 : -EINVAL;
}

static int parse_exponent(const char *text, int *ret)
{
        bool negative = *text == '-';
        int value = 0;

        if (*text == '-' || *text == '+')
                text++;
        if (!is_digit(*text))
                return -EINVAL;
        for (; is_digit(*text); text++)
                value = value < 1000 ? value * 10 + (*text - '0') : value;
        *ret = negative ? -value : value;
        return *text == '\0' ? 0 : -EINVAL;
}

static int parse_suffix(const char *text, int *tens, int *twos)
{
        *tens = *twos = 0;
        if ((*text == 'e' || *text == 'E') && text[1] != '\0' && text[1] != 'i')
                return parse_exponent(text + 1, tens);
        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++)
                if (strcmp(suffixes[i].suffix, text) == 0) {
                        *tens = suffixes[i].tens;
                        *twos = suffixes[i].twos;
                        return 0;
                }
        return -EINVAL;
}

static int scale(struct decimal value, bool negative, int64_t *ret)
{
        const __int128 largest = INT64_MAX;
        bool rest = false;

        for (; value.tens > 0 && value.digits != 0; value.tens--) {
                if (value.digits > largest)
                        return -ERANGE;
                value.digits *= 10;
        }
        for (; value.tens < 0 && value.digits != 0; value.tens++) {
                rest = rest || value.digits % 10 != 0;
                value.digits /= 10;
        }
        value.digits += rest && !negative;
        if (value.digits > largest)
                return -ERANGE;
        *ret = negative ? -(int64_t) value.digits : (int64_t) value.digits;
        return 0;
}

/* The value x 10^more. */
static int parse(const char *text, int more, int64_t *ret)
{
        struct decimal value = { 0 };
        bool negative = *text == '-';
        int tens, twos, r;

        if (*text == '-' || *text == '+')
                text++;
        r = parse_digits(&text, &value);
        if (r == 0)
                r = parse_suffix(text, &tens, &twos);
        if (r != 0)
                return r;
        for (; twos > 0; twos--) {
                if (value.digits > (__int128) 1 << 120)
                        return -ERANGE;
                value.digits *= 2;
        }
        value.tens += tens + more;
        return scale(value, negative, ret);
}

int quantity_parse(const char *text, int64_t *ret)
{
        return parse(text, 0, ret);
}

int quantity_parse_milli(const char *text, int64_t *ret)
{
        return parse(text, 3, ret);
}
