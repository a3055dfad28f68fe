/* Any words as an unfinished command line, any bytes as a name: each line of the answer begins with what is
 * typed and holds nothing that a terminal or a shell takes for more than a word. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/completion/completions.h"

#define WORDS_MAX 12

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "store", .type = OPTION_STRING, .value = "dir:PATH|kubernetes", .default_ = "kubernetes", .help = "a" },
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .value = "table|json", .default_ = "table", .help = "b" },
        { .name = "all", .letter = 'a', .type = OPTION_BOOL, .help = "c" },
        { .name = "save", .type = OPTION_OPTIONAL, .value = "FILE", .default_ = "x", .help = "d" },
        { .name = "node", .type = OPTION_LIST, .value = "NEW=NODE|NODE", .help = "e" },
        { 0 },
};
/* clang-format on */

static const struct option_program programs[] = {
        { .name = "a", .operands = "[show|logs JOB]", .specs = specs },
        { .name = "b", .operands = "record [FILE] | expand FILE DIR | clear ID...", .specs = specs },
        { .name = "c", .operands = "pod/NAME | NAMESPACE/NAME", .specs = specs },
        { .name = "d", .specs = specs },
};

static bool below(size_t i, struct command_below *ret)
{
        *ret = (struct command_below){ "d", "deep", &programs[3] };
        return i == 0;
}

static const struct command table[] = {
        { "a", "one", NULL, &programs[0], NULL },   { "b", "two", NULL, &programs[1], NULL },
        { "c", "three", NULL, &programs[2], NULL }, { "d", "four", NULL, NULL, below },
        { NULL, NULL, NULL, NULL, NULL },
};

static void look_at(const struct completions *c, const char *last)
{
        const char *line = c->lines.data;

        for (size_t i = 0; i < c->count; i++, line = strchr(line, '\n') + 1)
                if (strncmp(line, last, strlen(last)) != 0)
                        __builtin_trap();
        if (line[0] != ':' || strchr(line, '\n') == NULL || strchr(line, '\n')[1] != '\0')
                __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1), *word = text;
        const char *words[WORDS_MAX];
        struct completions completions;
        size_t count = 0;

        memcpy(text, data, size);
        text[size] = '\0';
        while (count < WORDS_MAX) {
                char *end = strchrnul(word, '\n');
                bool last = *end == '\0';

                *end = '\0';
                words[count++] = word;
                word = end + 1;
                if (last)
                        break;
        }
        completions_find(table, words, count, &completions);
        for (size_t i = 0; i < count; i++)
                completions_add(&completions, words[i]);
        completions_end(&completions);
        look_at(&completions, words[count - 1]);
        completions_free(&completions);
        free(text);
        return 0;
}
