/* Settings are counted through like the digits of a number, each with its row's values. */
#include "trainer/operators/tunable.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

size_t tunable_value(const struct tunable_rows *t, size_t row, const size_t *setting)
{
        return setting[row] > 0 ? setting[row] : t->rows[row].untuned;
}

size_t tunable_group_end(const struct tunable_rows *t, size_t first)
{
        while (first + 1 < t->count && t->rows[first].with_next)
                first++;
        return first + 1;
}

static bool fits(const struct tunable_rows *t, const struct backend_options *o, const size_t *setting)
{
        size_t values[TUNABLE_MAX];

        for (size_t i = 0; i < t->count; i++)
                values[i] = tunable_value(t, i, setting);
        return t->fits == NULL || t->fits(o, values);
}

/* Where a value stands in its row; SIZE_MAX: nowhere. */
static size_t place_of(const struct tunable *row, size_t value)
{
        for (size_t i = 0; row->values[i] != 0; i++)
                if (row->values[i] == value)
                        return i;
        return SIZE_MAX;
}

/* Return: false: that was the last. */
static bool count_up(const struct tunable_rows *t, size_t first, size_t end, size_t *setting)
{
        for (size_t i = end; i-- > first;) {
                const struct tunable *row = &t->rows[i];
                size_t next = row->values[place_of(row, setting[i]) + 1];

                setting[i] = next != 0 ? next : row->values[0];
                if (next != 0)
                        return true;
        }
        return false;
}

bool tunable_next(const struct tunable_rows *t, const struct backend_options *o, size_t first, size_t end,
                  size_t *setting)
{
        bool any = setting[first] != 0;

        for (size_t i = first; !any && i < end; i++)
                setting[i] = t->rows[i].values[0];
        if (!any && fits(t, o, setting))
                return true;
        while (count_up(t, first, end, setting))
                if (fits(t, o, setting))
                        return true;
        for (size_t i = first; i < end; i++)
                setting[i] = 0;
        return false;
}

bool tunable_format(const struct tunable_rows *t, const size_t *setting, char *text, size_t text_bytes)
{
        size_t used = 0;

        text[0] = '\0';
        for (size_t i = 0; i < t->count; i++) {
                if (setting[i] == 0)
                        continue;
                if (!text_format(text + used, text_bytes - used, "%s%s=%zu", used > 0 ? " " : "",
                                 t->rows[i].name, setting[i]))
                        return false;
                used += strlen(text + used);
        }
        return true;
}

static bool parse_word(const struct tunable_rows *t, const char *word, size_t *setting)
{
        const char *equals = strchr(word, '=');
        uint64_t value;

        if (equals == NULL || text_parse_uint64(equals + 1, &value) < 0)
                return false;
        for (size_t i = 0; i < t->count; i++)
                if (strlen(t->rows[i].name) == (size_t) (equals - word) &&
                    strncmp(t->rows[i].name, word, (size_t) (equals - word)) == 0) {
                        setting[i] = (size_t) value;
                        return place_of(&t->rows[i], setting[i]) != SIZE_MAX;
                }
        return false;
}

bool tunable_parse(const struct tunable_rows *t, const struct backend_options *o, const char *text,
                   size_t *ret)
{
        size_t setting[TUNABLE_MAX] = { 0 };
        char copy[256], *rest = copy, *word;

        if (!text_copy(copy, sizeof(copy), text))
                return false;
        while ((word = strsep(&rest, " ")) != NULL)
                if (!parse_word(t, word, setting))
                        return false;
        if (!fits(t, o, setting))
                return false;
        memcpy(ret, setting, sizeof(setting));
        return true;
}
