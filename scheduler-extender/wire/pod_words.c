/* Strings without control characters. */
#include "scheduler-extender/wire/pod_words.h"

const char *pod_words_at(const struct json_field *at)
{
        const char *text = NULL;

        if (json_field_as_string(at, &text, NULL) != 0)
                return NULL;
        for (const char *c = text; *c != '\0'; c++)
                if ((unsigned char) *c < ' ')
                        return NULL;
        return text;
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
