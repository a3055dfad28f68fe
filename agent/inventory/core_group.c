/* The chips' rows, and the names that a kernel may give each. */
#include "agent/inventory/core_group.h"

#include <string.h>

#include "base/cleanup.h"

#define NAMES 3

/* The first row with a name in the text counts: a name that begins with another's stands before it. */
/* clang-format off */
static const struct {
        const char *names[NAMES];
        struct core_group group;
} rows[] = {
        { { "SW26010-Pro", "SW26010P", "SW39000" },
          { "SW26010-Pro", 6, 64, (size_t) 256 << 10, (uint64_t) 16 << 30, 51.2, 9.2, 2.3 } },
        { { "SW26010" },
          { "SW26010", 4, 64, (size_t) 64 << 10, (uint64_t) 8 << 30, 34.1, 0, 0.765 } },
};
/* clang-format on */

const struct core_group *core_group_find(const char *text)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                for (size_t n = 0; n < NAMES && rows[i].names[n] != NULL; n++)
                        if (strcasestr(text, rows[i].names[n]) != NULL)
                                return &rows[i].group;
        return NULL;
}
