/* A message is one line whatever it quotes, and is cut to its field. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A message is one line whatever it quotes: a hostile label cannot forge a second log line. */
static void one_line(char *s)
{
        for (; *s != '\0'; s++)
                if ((unsigned char) *s < 0x20 || *s == 0x7f)
                        *s = '?';
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
        va_list ap;

        if (err == NULL)
                return code;

        err->code = code;
        va_start(ap, fmt);
        (void) vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
        va_end(ap);
        one_line(err->msg);
        return code;
}

int err_wrap(struct err *err, int code, const char *fmt, ...)
{
        char inner[sizeof(err->msg)];
        va_list ap;
        int n;

        if (err == NULL)
                return code;

        memcpy(inner, err->msg, sizeof(inner));
        err->code = code;
        va_start(ap, fmt);
        n = vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t) n + 2 < sizeof(err->msg) && inner[0] != '\0')
                (void) snprintf(err->msg + n, sizeof(err->msg) - (size_t) n, ": %.*s",
                                (int) (sizeof(err->msg) - (size_t) n - 3), inner);
        one_line(err->msg);
        return code;
}
