/* The C library counts the days; the grammar of RFC 3339 is read here, digit by digit. */
#include "base/timestamp.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "base/text.h"

#define USEC_PER_SEC 1000000u
#define END_OF_9999  253402300799 /* seconds: RFC 3339 has no year beyond it */

const char *timestamp_format(uint64_t usec, char text[TIMESTAMP_BYTES])
{
        time_t seconds = (time_t) (usec / USEC_PER_SEC);
        unsigned fraction = (unsigned) (usec % USEC_PER_SEC);
        char tail[16] = "Z";
        struct tm tm;

        text[0] = '\0';
        if (usec == 0 || seconds > END_OF_9999)
                return text;
        (void) gmtime_r(&seconds, &tm);
        if (fraction != 0)
                (void) text_format(tail, sizeof(tail), ".%06uZ", fraction);
        (void) text_format(text, TIMESTAMP_BYTES, "%04d-%02d-%02dT%02d:%02d:%02d%s", tm.tm_year + 1900,
                           tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, tail);
        return text;
}

/* Exactly `count` digits. Return: what follows them, or NULL. */
static const char *digits(const char *s, unsigned count, int *ret)
{
        *ret = 0;
        for (; count > 0; count--, s++) {
                if (*s < '0' || *s > '9')
                        return NULL;
                *ret = *ret * 10 + (*s - '0');
        }
        return s;
}

static const char *expect(const char *s, char c)
{
        return s != NULL && *s == c ? s + 1 : NULL;
}

static const char *parse_fraction(const char *s, unsigned *ret_usec)
{
        unsigned scale = USEC_PER_SEC / 10;

        *ret_usec = 0;
        if (*s != '.')
                return s;
        if (*++s < '0' || *s > '9')
                return NULL;
        for (; *s >= '0' && *s <= '9'; s++, scale /= 10)
                *ret_usec += scale * (unsigned) (*s - '0');
        return s;
}

static const char *parse_zone(const char *s, int *ret_seconds)
{
        int sign = *s == '-' ? -1 : 1, hours, minutes;

        *ret_seconds = 0;
        if (*s == 'Z' || *s == 'z')
                return s + 1;
        if (*s != '+' && *s != '-')
                return NULL;
        s = digits(s + 1, 2, &hours);
        s = expect(s, ':');
        s = s != NULL ? digits(s, 2, &minutes) : NULL;
        if (s == NULL || hours > 23 || minutes > 59)
                return NULL;
        *ret_seconds = sign * (hours * 3600 + minutes * 60);
        return s;
}

static const char *parse_clock(const char *s, struct tm *tm)
{
        s = digits(s, 2, &tm->tm_hour);
        s = expect(s, ':');
        s = s != NULL ? digits(s, 2, &tm->tm_min) : NULL;
        s = expect(s, ':');
        return s != NULL ? digits(s, 2, &tm->tm_sec) : NULL;
}

static bool in_range(const struct tm *tm)
{
        return tm->tm_year >= 1970 && tm->tm_mon >= 1 && tm->tm_mon <= 12 && tm->tm_mday >= 1 &&
               tm->tm_mday <= 31 && tm->tm_hour <= 23 && tm->tm_min <= 59 && tm->tm_sec <= 60;
}

int timestamp_parse(const char *text, uint64_t *ret_usec)
{
        struct tm tm = { 0 };
        const char *s = text;
        unsigned fraction;
        int zone;
        time_t seconds;

        if (text[0] == '\0') {
                *ret_usec = 0;
                return 0;
        }
        s = expect(digits(s, 4, &tm.tm_year), '-');
        s = s != NULL ? expect(digits(s, 2, &tm.tm_mon), '-') : NULL;
        s = s != NULL ? digits(s, 2, &tm.tm_mday) : NULL;
        if (s == NULL || (*s != 'T' && *s != 't' && *s != ' '))
                return -EINVAL;
        s = parse_clock(s + 1, &tm);
        s = s != NULL ? parse_fraction(s, &fraction) : NULL;
        s = s != NULL ? parse_zone(s, &zone) : NULL;
        if (s == NULL || *s != '\0' || !in_range(&tm))
                return -EINVAL;
        tm.tm_year -= 1900;
        tm.tm_mon -= 1;
        seconds = timegm(&tm) - zone;
        if (seconds < 0)
                return -EINVAL;
        *ret_usec = (uint64_t) seconds * USEC_PER_SEC + fraction;
        return 0;
}
