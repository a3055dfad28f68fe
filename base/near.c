/* Keeps the names with the fewest edits. */
#include "base/near.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

#define EDITS_MAX 2

/* Row by row: "A101" and "A100" are 1 apart. */
static unsigned count_edits(const char *a, size_t a_length, const char *b)
{
        unsigned row[NEAR_MAX_BYTES + 1];
        size_t length = strlen(b);

        for (size_t j = 0; j <= length; j++)
                row[j] = (unsigned) j;
        for (size_t i = 0; i < a_length; i++) {
                unsigned corner = row[0]++;

                for (size_t j = 0; j < length; j++) {
                        unsigned same =
                                corner + (tolower((unsigned char) a[i]) != tolower((unsigned char) b[j]));

                        corner = row[j + 1];
                        row[j + 1] = same < row[j] + 1 ? same : row[j] + 1;
                        if (corner + 1 < row[j + 1])
                                row[j + 1] = corner + 1;
                }
        }
        return row[length];
}

static unsigned distance(const struct near *near, const char *name)
{
        size_t length = strlen(name), wanted = strlen(near->word);
        unsigned whole = count_edits(name, length, near->word), begin;

        if (near->whole || length <= wanted)
                return whole;
        begin = count_edits(name, wanted, near->word);
        return begin < whole ? begin : whole;
}

void near_consider(struct near *near, const char *name)
{
        unsigned edits;

        if (strlen(near->word) > NEAR_MAX_BYTES)
                return;
        edits = distance(near, name);
        if (edits > EDITS_MAX || edits >= strlen(near->word) || (near->count > 0 && edits > near->edits))
                return;
        if (near->count > 0 && edits < near->edits)
                near->count = 0;
        near->edits = edits;
        for (size_t i = 0; i < near->count; i++)
                if (strcmp(near->names[i], name) == 0)
                        return;
        if (near->count < NEAR_NAMES)
                near->names[near->count++] = name;
}

const char *near_say(const struct near *near, char *ret, size_t size)
{
        struct text text = { .max_bytes = size - 1 };

        for (size_t i = 0; i < near->count; i++)
                text_printf(&text, "%s%s",
                            i == 0                ? "; did you mean "
                            : i + 1 < near->count ? ", "
                                                  : " or ",
                            near->names[i]);
        if (near->count > 0)
                text_append_char(&text, '?');
        (void) text_copy(ret, size, text.data == NULL ? "" : text.data);
        text_free(&text);
        return ret;
}
