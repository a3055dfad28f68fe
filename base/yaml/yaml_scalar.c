/* The words and numbers of the core schema, and those of older YAML that must be quoted. */
#include "base/yaml/yaml_scalar.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static bool is_one_of(const char *s, const char *const *words)
{
        for (; *words != NULL; words++)
                if (strcmp(s, *words) == 0)
                        return true;
        return false;
}

static bool is_digits(const char *s, const char *digits)
{
        return *s != '\0' && s[strspn(s, digits)] == '\0';
}

/* looks_decimal() - [-+]? ( digits [. digits*] | . digits ) [eE [-+]? digits] */
static bool looks_decimal(const char *s)
{
        size_t whole, fraction = 0;

        s += *s == '-' || *s == '+';
        whole = strspn(s, "0123456789");
        s += whole;
        if (*s == '.') {
                fraction = strspn(s + 1, "0123456789");
                s += 1 + fraction;
        }
        if (whole + fraction == 0)
                return false;
        if (*s == 'e' || *s == 'E') {
                s++;
                s += *s == '-' || *s == '+';
                return is_digits(s, "0123456789");
        }
        return *s == '\0';
}

static json_t *real(const char *s)
{
        double value = strtod(s, NULL); /* looks_decimal() saw the whole of it; the locale is C */

        return isfinite(value) ? json_real(value) : NULL;
}

static json_t *decimal(const char *s)
{
        const char *digits = s + (*s == '+');
        int64_t value;

        if (is_digits(digits + (*digits == '-'), "0123456789") && text_parse_int64(digits, &value) == 0)
                return json_integer(value);
        return real(s); /* has a point or an exponent, or is too long for 64 bits */
}

static json_t *based(const char *s)
{
        uint64_t value;

        if (s[1] == 'x')
                return text_parse_hex64(s, &value) == 0 && value <= INT64_MAX
                               ? json_integer((json_int_t) value)
                               : NULL;
        errno = 0;
        value = strtoull(s + 2, NULL, 8);
        return errno == 0 && value <= INT64_MAX ? json_integer((json_int_t) value) : NULL;
}

static bool has_leading_zero(const char *s)
{
        s += *s == '-' || *s == '+';
        return s[0] == '0' && s[1] >= '0' && s[1] <= '9' && is_digits(s, "0123456789");
}

static const char *const nulls[] = { "", "~", "null", "Null", "NULL", NULL };
static const char *const trues[] = { "true", "True", "TRUE", NULL };
static const char *const falses[] = { "false", "False", "FALSE", NULL };
static const char *const not_finite[] = { ".inf",  ".Inf", ".INF", "+.inf", "-.inf", "-.Inf",
                                          "-.INF", ".nan", ".NaN", ".NAN",  NULL };

json_t *yaml_scalar_read(const char *word, const char **ret_why)
{
        *ret_why = "a number too large, or text that is not UTF-8";
        if (is_one_of(word, nulls))
                return json_null();
        if (is_one_of(word, trues))
                return json_true();
        if (is_one_of(word, falses))
                return json_false();
        if (is_one_of(word, not_finite)) {
                *ret_why = "infinite and undefined numbers are not allowed";
                return NULL;
        }
        if (has_leading_zero(word)) {
                *ret_why = "a number with a leading zero is octal to some readers and decimal to others: "
                           "write 0o.. "
                           "for octal, or quote it";
                return NULL;
        }
        if ((word[0] == '0' && word[1] == 'x' && is_digits(word + 2, "0123456789abcdefABCDEF")) ||
            (word[0] == '0' && word[1] == 'o' && is_digits(word + 2, "01234567")))
                return based(word);
        return looks_decimal(word) ? decimal(word) : json_string(word);
}

bool yaml_scalar_needs_quotes(const char *text)
{
        static const char *const words[] = { "y",  "Y",  "yes", "Yes", "YES", "n",   "N",   "no", "No",
                                             "NO", "on", "On",  "ON",  "off", "Off", "OFF", "<<", NULL };

        return is_one_of(text, nulls) || is_one_of(text, trues) || is_one_of(text, falses) ||
               is_one_of(text, not_finite) || is_one_of(text, words) ||
               strchr("0123456789+-.", *text) != NULL;
}
