/* DRA version: a driver's version as an attribute has to have it: strict semver, or the whole slice is
 * refused. */
#include "plugin/dra/dra_version.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

#define NUMBER_DIGITS_MAX 18 /* of a number that every reader holds in 64 bits */

/* Reads the number at *at. Return: false, and 0, where there is none, or one too long. */
static bool read_number(const char **at, uint64_t *ret)
{
        size_t n = 0;

        *ret = 0;
        while (isdigit((unsigned char) (*at)[n]))
                n++;
        if (n == 0 || n > NUMBER_DIGITS_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                *ret = *ret * 10 + (uint64_t) ((*at)[i] - '0');
        *at += n;
        return true;
}

void dra_version_of(const char *version, char ret[DRA_VERSION_BYTES])
{
        uint64_t numbers[3] = { 0 };

        version += *version == 'v' || *version == 'V';
        for (size_t i = 0; i < 3 && read_number(&version, &numbers[i]); i++) {
                if (*version != '.')
                        break;
                version++;
        }
        (void) text_format(ret, DRA_VERSION_BYTES, "%ju.%ju.%ju", (uintmax_t) numbers[0],
                           (uintmax_t) numbers[1], (uintmax_t) numbers[2]);
}
