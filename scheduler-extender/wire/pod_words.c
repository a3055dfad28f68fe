/* Strings without control characters, and the lines that are made of them. */
#include "scheduler-extender/wire/pod_words.h"

#include <string.h>

static bool is_word(const char *text)
{
        for (const char *c = text; *c != '\0'; c++)
                if ((unsigned char) *c < ' ')
                        return false;
        return true;
}

const char *pod_words_at(const struct json_field *at)
{
        const char *text = NULL;

        return json_field_as_string(at, &text, NULL) == 0 && is_word(text) ? text : NULL;
}

const char *pod_words_of(const struct json_field *in, const char *name)
{
        struct json_field at = json_field_get(in, name);

        return pod_words_at(&at);
}

const char *pod_words_or_none(const struct json_field *in, const char *name)
{
        const char *word = pod_words_of(in, name);

        return word != NULL ? word : "";
}

/* Of "a=b" nobody could tell whether b begins the value. */
bool pod_words_is_key(const char *name)
{
        return is_word(name) && strchr(name, '=') == NULL;
}

bool pod_words_next(const char **line, const char *end, struct pod_word *ret)
{
        const char *tab;

        if (*line == NULL)
                return false;
        tab = memchr(*line, '\t', (size_t) (end - *line));
        *ret = (struct pod_word){ .at = *line, .bytes = (size_t) ((tab != NULL ? tab : end) - *line) };
        *line = tab != NULL ? tab + 1 : NULL;
        return true;
}

const char *pod_words_line(const char *end)
{
        return *end == '\n' ? end + 1 : end;
}

bool pod_words_equal(const struct pod_word *word, const char *text, size_t bytes)
{
        return word->bytes == bytes && memcmp(word->at, text, bytes) == 0;
}

bool pod_words_among(const struct pod_word *word, const char *line, const char *end)
{
        struct pod_word other;

        while (pod_words_next(&line, end, &other))
                if (pod_words_equal(&other, word->at, word->bytes))
                        return true;
        return false;
}
