/* Device ids: what the id of a partition says of its chip. */
#include "agent/inventory/device_ids.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

static bool is_in_word(char c)
{
        return isalnum((unsigned char) c) != 0;
}

static bool is_part_of(const char *part, const char *whole)
{
        const char *at = whole[0] == '\0' ? NULL : strstr(part, whole);

        for (; at != NULL; at = strstr(at + 1, whole))
                if ((at == part || !is_in_word(at[-1])) && !is_in_word(at[strlen(whole)]))
                        return true;
        return false;
}

bool device_ids_overlap(const char *a, const char *b)
{
        return is_part_of(a, b) || is_part_of(b, a);
}
