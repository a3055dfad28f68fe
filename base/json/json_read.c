/* The library first; then once more over a copy in which each part that it refuses was written over, within
 * its own bytes: a mended text is as long as it was. */
#include "base/json/json_read.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_scan.h"
#include "base/text.h"

#define INTEGER_BYTES 19 /* fewer digits always fit 64 bits */

/* At the backslash of an escape. Return: behind it; \u0000 and half a pair have become U+FFFD. */
static char *mend_escape(char *at, char *end)
{
        bool pair;
        int code;

        if (end - at < 2 || at[1] != 'u' || (code = json_scan_unicode(at, end)) < 0)
                return end - at < 2 ? end : at + 2;
        pair = code >= 0xd800 && code <= 0xdbff && json_scan_unicode(at + 6, end) >= 0xdc00 &&
               json_scan_unicode(at + 6, end) <= 0xdfff;
        if (code == 0 || (code >= 0xd800 && code <= 0xdfff && !pair))
                memcpy(at + 2, "fffd", 4);
        return at + (pair ? 12 : 6);
}

/* Behind the opening quote. Return: behind the closing one. */
static char *mend_string(char *at, char *end)
{
        while (at < end && *at != '"') {
                size_t length = (unsigned char) *at < 0x80 ? 1 : json_scan_utf8(at, end);

                if (*at == '\\') {
                        at = mend_escape(at, end);
                        continue;
                }
                if (length == 0 || (unsigned char) *at < 0x20)
                        *at = length == 0 ? '?' : ' ';
                at += length == 0 ? 1 : length;
        }
        return at < end ? at + 1 : end;
}

/* At the first byte of a number. The text is NUL-terminated, and no number holds what follows one. */
static char *mend_number(char *at)
{
        size_t bytes = strspn(at, "+-.0123456789eE");
        bool integer = memchr(at, '.', bytes) == NULL && memchr(at, 'e', bytes) == NULL &&
                       memchr(at, 'E', bytes) == NULL;
        char real[32];
        double value;

        if (integer && bytes < INTEGER_BYTES)
                return at + bytes;
        errno = 0;
        if (integer)
                (void) strtoll(at, NULL, 10);
        if (integer && errno != ERANGE)
                return at + bytes;
        value = strtod(at, NULL);
        if (!integer && !isinf(value))
                return at + bytes;
        if (isinf(value)) /* "1e309" is the shortest of them */
                (void) text_copy(real, sizeof(real), value < 0 ? "-1e308" : "1e308");
        else
                (void) text_format(real, sizeof(real), "%.9e", value);
        memset(at, ' ', bytes);
        for (size_t i = 0; real[i] != '\0'; i++)
                at[i] = real[i];
        return at + bytes;
}

/* At the bracket of a container. Return: behind its end, or the end of the text. */
static char *past_container(char *at, char *end)
{
        size_t depth = 0;

        for (; at < end; at++)
                if (*at == '{' || *at == '[')
                        depth++;
                else if ((*at == '}' || *at == ']') && --depth == 0)
                        return at + 1;
                else if (*at == '"')
                        at = mend_string(at + 1, end) - 1;
        return end;
}

static void mend(char *at, char *end)
{
        size_t depth = 0;

        while (at < end)
                if (*at == '"')
                        at = mend_string(at + 1, end);
                else if (*at == '-' || (*at >= '0' && *at <= '9'))
                        at = mend_number(at);
                else if ((*at == '{' || *at == '[') && depth == JSON_READ_DEPTH) {
                        char *after = past_container(at, end);

                        memset(at, ' ', (size_t) (after - at));
                        *at = '0';
                        at = after;
                } else {
                        depth += *at == '{' || *at == '[';
                        depth -= (*at == '}' || *at == ']') && depth > 0;
                        at++;
                }
}

json_t *json_read(const char *bytes, size_t size_bytes, size_t flags, struct err *err)
{
        json_error_t wrong;
        json_t *tree = json_loadb(bytes, size_bytes, flags, &wrong);
        CLEANUP(free_p) char *copy = tree == NULL ? malloc(size_bytes + 1) : NULL;

        if (tree != NULL)
                return tree;
        if (copy != NULL) {
                memcpy(copy, bytes, size_bytes);
                copy[size_bytes] = '\0';
                mend(copy, copy + size_bytes);
                tree = json_loadb(copy, size_bytes, flags, &wrong);
        }
        if (tree == NULL && (copy == NULL || json_error_code(&wrong) == json_error_out_of_memory))
                (void) err_set(err, -ENOMEM, "out of memory for %zu bytes of JSON", size_bytes);
        else if (tree == NULL)
                (void) err_set(err, -EBADMSG, "near byte %d: %s", wrong.position, wrong.text);
        return tree;
}
