/* Any words as a trainer's command line (shares, stages, segments, groups, an operator's library...): an
 * error that says something, or options that every rank can compare. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "trainer/train_options.h"

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char program[] = "remuda-train-cpu", *words[WORDS_MAX + 1] = { program };
        char *text = calloc(size + 1, 1), *rest = text, *word, *line;
        struct train_options o;
        struct err err = { 0 };
        int count = 1;

        if (text == NULL)
                abort();
        memcpy(text, data, size);
        while (count < WORDS_MAX && (word = strsep(&rest, "\n")) != NULL)
                words[count++] = word;
        if (train_options_parse(count, words, &o, &err) < 0) {
                if (err.msg[0] == '\0')
                        abort();
        } else {
                line = train_options_line(&o);
                if (line == NULL)
                        abort();
                free(line);
                train_options_free(&o);
        }
        free(text);
        return 0;
}
