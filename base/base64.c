/* Four digits are three bytes; what is no digit where one belongs makes the whole text invalid. */
#include "base/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int value_of(char c)
{
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (c >= '0' && c <= '9')
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Return: bytes written, or SIZE_MAX. */
static size_t decode(const char *text, char *out)
{
        uint32_t bits = 0;
        unsigned digits = 0, padding = 0;
        size_t size = 0;

        for (; *text != '\0'; text++) {
                if (*text == '\n' || *text == '\r')
                        continue;
                if (*text != '=' && (padding > 0 || value_of(*text) < 0))
                        return SIZE_MAX;
                padding += *text == '=';
                bits = bits << 6 | (*text == '=' ? 0u : (uint32_t) value_of(*text));
                if (++digits % 4 != 0)
                        continue;
                out[size++] = (char) (bits >> 16);
                out[size++] = (char) (bits >> 8);
                out[size++] = (char) bits;
        }
        return digits % 4 == 0 && padding <= 2 ? size - padding : SIZE_MAX;
}

char *base64_decode(const char *text, size_t *ret_size_bytes)
{
        char *out = malloc(strlen(text) / 4 * 3 + 4);
        size_t size = out != NULL ? decode(text, out) : SIZE_MAX;

        if (size == SIZE_MAX) {
                free(out);
                return NULL;
        }
        out[size] = '\0';
        *ret_size_bytes = size;
        return out;
}
