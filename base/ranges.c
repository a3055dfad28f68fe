/* Numbers and pairs of numbers between commas. */
#include "base/ranges.h"

#include <errno.h>
#include <string.h>

/* A number of at most nine digits. Return: what follows it, or NULL. */
static const char *number(const char *s, unsigned *ret)
{
        size_t length = strspn(s, "0123456789");

        if (length == 0 || length > 9)
                return NULL;
        *ret = 0;
        for (size_t i = 0; i < length; i++)
                *ret = *ret * 10 + (unsigned) (s[i] - '0');
        return s + length;
}

int ranges_parse(const char *text, unsigned *ret, size_t max)
{
        size_t count = 0;

        for (const char *s = text; *s != '\0';) {
                unsigned first, last;

                s = number(s, &first);
                if (s == NULL)
                        return -EINVAL;
                last = first;
                if (*s == '-')
                        s = number(s + 1, &last);
                if (s == NULL || last < first || last - first >= RANGES_MAX - count)
                        return -EINVAL;
                for (unsigned value = first; value <= last; value++, count++)
                        if (count < max)
                                ret[count] = value;
                if (*s == ',' && s[1] != '\0')
                        s++;
                else if (*s != '\0')
                        return -EINVAL;
        }
        return (int) count;
}
