/* Any bytes as the list of files that joined: names within their limit, and every line moves on. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/data/joined.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = calloc(1, size + 1);
        const char *at = text, *before = at;
        struct joined_line line;

        if (text == NULL)
                return 0;
        memcpy(text, data, size);
        while (joined_next(&at, &line)) {
                if (at <= before || line.name[0] == '\0' || strlen(line.name) >= sizeof(line.name))
                        abort();
                before = at;
        }
        free(text);
        return 0;
}
