/* Any bytes, up to an empty line, as a vocabulary, and the rest as a text cut by it: a sentence, or pieces
 * that are in it and never outnumber the bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/data/wordpiece.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        const char *bytes = (const char *) data, *cut = size > 0 ? memmem(bytes, size, "\n\n", 2) : NULL;
        size_t vocabulary = cut != NULL ? (size_t) (cut - bytes) : size, text = size - vocabulary, count;
        struct wordpiece *w = NULL;
        struct err err = { 0 };
        uint32_t *tokens;

        if (wordpiece_parse(bytes, vocabulary, &w, &err) < 0) {
                if (err.msg[0] == '\0')
                        abort();
                return 0;
        }
        tokens = calloc(text + 1, sizeof(*tokens));
        if (tokens == NULL)
                abort();
        count = wordpiece_of(w, bytes + vocabulary, text, tokens);
        if (count > text)
                abort();
        for (size_t i = 0; i < count; i++)
                if (tokens[i] >= wordpiece_count(w))
                        abort();
        free(tokens);
        wordpiece_free(w);
        return 0;
}
