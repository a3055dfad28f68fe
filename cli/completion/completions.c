/* The tables' own words: names of commands and options, the alternatives that `value` and `operands` list. A
 * word in capitals stands for what people write; the rows of `written` say where it comes from. */
#include "cli/completion/completions.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"

#define WORD_BYTES 128

/* clang-format off */
static const struct written {
        const char *word, *before; /* before: what they begin with, in any case */
        enum completions_names names;
        enum completions_directive directive;
} written[] = {
        { "FILE",           "",     COMPLETIONS_NONE,       COMPLETIONS_FILES },
        { "PATH",           "",     COMPLETIONS_NONE,       COMPLETIONS_FILES },
        { "CSV",            "",     COMPLETIONS_NONE,       COMPLETIONS_FILES },
        { "JOB.yaml",       "",     COMPLETIONS_NONE,       COMPLETIONS_FILES },
        { "DIR",            "",     COMPLETIONS_NONE,       COMPLETIONS_FOLDERS },
        { "dir:PATH",       "dir:", COMPLETIONS_SUBFOLDERS, COMPLETIONS_NO_FILES },
        { "NODE",           "",     COMPLETIONS_NODES,      COMPLETIONS_NO_FILES },
        { "NS",             "",     COMPLETIONS_NAMESPACES, COMPLETIONS_NO_FILES },
        { "NS/NAME",        "",     COMPLETIONS_QUALIFIED,  COMPLETIONS_NO_FILES },
        { "NAMESPACE/NAME", "",     COMPLETIONS_QUALIFIED,  COMPLETIONS_NO_FILES },
        { "pod/NAME",       "pod/", COMPLETIONS_PODS,       COMPLETIONS_NO_FILES },
        { "job/NAME",       "job/", COMPLETIONS_JOBS,       COMPLETIONS_NO_FILES },
        { "group/NAME",     "group/", COMPLETIONS_NONE,     COMPLETIONS_NO_FILES },
        { "JOB",            "",     COMPLETIONS_JOBS,       COMPLETIONS_NO_FILES },
        { "ID",             "",     COMPLETIONS_DEVICES,    COMPLETIONS_NO_FILES },
        { "RESOURCE",       "",     COMPLETIONS_RESOURCES,  COMPLETIONS_NO_FILES },
        { "MODEL",          "",     COMPLETIONS_MODELS,     COMPLETIONS_NO_FILES },
};
/* clang-format on */

static bool is_plain(const char *name)
{
        if (!isalnum((unsigned char) name[0]) && name[0] != '.' && name[0] != '/')
                return false;
        for (const char *c = name; *c != '\0'; c++)
                if ((unsigned char) *c > 127 ||
                    (!isalnum((unsigned char) *c) && strchr("._:/@+-", *c) == NULL))
                        return false;
        return true;
}

/* What stands in the word before the value is repeated: the shell puts the candidate into the word's place.
 */
static void add(struct completions *c, const char *before, const char *word, const char *summary)
{
        size_t before_bytes = strlen(before), bytes = before_bytes + strlen(word),
               typed_bytes = strlen(c->typed);
        bool goes_on = word[0] == '\0' || text_ends_with(word, "/") || text_ends_with(word, ":");
        char whole[512];

        if (!text_format(whole, sizeof(whole), "%s%s", before, word) || typed_bytes > bytes ||
            memcmp(whole, c->typed, typed_bytes) != 0)
                return;
        if (c->cursor.program != NULL)
                text_append_bytes(&c->lines, c->cursor.words[c->cursor.count - 1], c->cursor.kept_bytes);
        text_append(&c->lines, whole);
        if (summary != NULL) {
                text_append_char(&c->lines, '\t');
                text_append_bytes(&c->lines, summary, strcspn(summary, "\n"));
        }
        text_append_char(&c->lines, '\n');
        c->count++;
        c->unfinished += goes_on;
}

void completions_add(struct completions *c, const char *name)
{
        if (is_plain(name))
                add(c, c->before, name, NULL);
}

static const struct written *find_written(const char *word)
{
        for (size_t i = 0; i < ARRAY_SIZE(written); i++)
                if (strcmp(written[i].word, word) == 0)
                        return &written[i];
        return NULL;
}

/* One alternative: a word to be typed, or one that stands for others. */
static void add_alternative(struct completions *c, const char *word, const char *summary)
{
        const struct written *w = find_written(word);
        size_t before_bytes = w == NULL ? 0 : strlen(w->before);
        bool fixed = w == NULL;

        for (const char *p = word; *p != '\0'; p++)
                fixed = fixed && !isupper((unsigned char) *p);
        if (fixed) {
                add(c, "", word, summary);
        } else if (w != NULL && before_bytes > strlen(c->typed)) {
                add(c, w->before, "", summary); /* first of what it is a name */
        } else if (w != NULL && strncmp(c->typed, w->before, before_bytes) == 0) {
                c->directive = w->directive;
                if (c->names == COMPLETIONS_NONE) {
                        c->names = w->names;
                        c->before = w->before;
                }
        }
}

/* "table|wide|json", "dir:PATH|kubernetes" */
static void add_alternatives(struct completions *c, const char *list, size_t list_bytes, const char *summary)
{
        const char *end = list + list_bytes;
        char word[WORD_BYTES];

        for (const char *at = list; at < end; at += strcspn(at, "|") + 1) {
                size_t bytes = strcspn(at, "|");

                if (bytes > (size_t) (end - at))
                        bytes = (size_t) (end - at);
                if (bytes >= sizeof(word))
                        continue;
                memcpy(word, at, bytes);
                word[bytes] = '\0';
                add_alternative(c, word, summary);
        }
}

static bool has_word(const char *list, size_t list_bytes, const char *word)
{
        const char *end = list + list_bytes;
        size_t bytes = strlen(word);
        bool fixed = true;

        for (const char *at = list; at < end; at++)
                fixed = fixed && !isupper((unsigned char) *at);
        for (const char *at = list; fixed && at < end; at += strcspn(at, "|") + 1)
                if (strncmp(at, word, bytes) == 0 && (at + bytes == end || at[bytes] == '|'))
                        return true;
        return !fixed;
}

/* One way to write the operands, "record FILE", from *at on: the words at the cursor, where those before it
 * are as written. A word with "..." stands for all that follow. *at goes behind it and the bar. */
static void add_operands(struct completions *c, const char **at)
{
        bool matches = true, more = true;

        for (size_t i = 0; more; i++) {
                const char *operand = options_cursor_operand(&c->cursor, i);
                const char *word = *at + strspn(*at, "[");
                size_t bytes = strcspn(word, "] ");
                bool repeats = bytes > 3 && strncmp(word + bytes - 3, "...", 3) == 0;

                *at = word + bytes + strspn(word + bytes, "]");
                bytes -= repeats ? 3 : 0;
                while (repeats && operand != NULL)
                        operand = options_cursor_operand(&c->cursor, ++i);
                if (matches && operand == NULL)
                        add_alternatives(c, word, bytes, NULL);
                matches = matches && operand != NULL && has_word(word, bytes, operand);
                more = **at == ' ' && strncmp(*at, " | ", 3) != 0;
                *at += more ? 1 : **at == ' ' ? 3 : 0;
        }
}

static void add_options(struct completions *c)
{
        char name[WORD_BYTES];

        for (const struct option_spec *s = c->cursor.program->specs; s->name != NULL; s++) {
                if (text_format(name, sizeof(name), "--%s", s->name))
                        add(c, "", name, s->help);
                if (s->letter != 0 && text_format(name, sizeof(name), "-%c", s->letter) &&
                    strncmp(c->typed, "--", 2) != 0)
                        add(c, "", name, s->help);
        }
        add(c, "", "--help", "this page");
        add(c, "", "--version", "the version of this build");
}

static void add_below(const struct command *command, struct completions *c)
{
        struct command_below below;

        for (size_t i = 0; command->below(i, &below); i++)
                add(c, "", below.name, below.summary);
        if (c->typed[0] == '-')
                add(c, "", "--help", "this page");
}

static void find_in_options(const struct option_program *program, const char *const *words, size_t count,
                            struct completions *c)
{
        const char *at = program->operands;

        c->cursor = options_cursor_find(program, words, count);
        c->typed = words[count - 1] + c->cursor.kept_bytes;
        if (c->cursor.value_of != NULL && c->cursor.value_of->type == OPTION_BOOL)
                add_alternatives(c, "true|false", strlen("true|false"), NULL);
        else if (c->cursor.value_of != NULL)
                add_alternatives(c, c->cursor.value_of->value, strlen(c->cursor.value_of->value), NULL);
        else if (c->typed[0] == '-' && !c->cursor.ended)
                add_options(c);
        else
                while (at != NULL && *at != '\0')
                        add_operands(c, &at);
}

static void find_in_command(const struct command *command, const char *const *words, size_t count,
                            struct completions *c)
{
        struct command_below below;

        if (command->below == NULL) {
                find_in_options(command->options, words, count, c);
                return;
        }
        if (count == 1)
                add_below(command, c);
        for (size_t i = 0; count > 1 && command->below(i, &below); i++)
                if (strcmp(below.name, words[0]) == 0)
                        find_in_options(below.options, words + 1, count - 1, c);
}

void completions_find(const struct command *table, const char *const *words, size_t count,
                      struct completions *ret)
{
        *ret = (struct completions){ .directive = COMPLETIONS_NO_FILES,
                                     .before = "",
                                     .typed = words[count - 1] };
        for (const struct command *c = table; c->name != NULL; c++) {
                if (count == 1)
                        add(ret, "", c->name, c->summary);
                else if (strcmp(c->name, words[0]) == 0)
                        find_in_command(c, words + 1, count - 1, ret);
        }
        if (count == 1 && ret->typed[0] == '-') {
                add(ret, "", "--help", "the commands");
                add(ret, "", "--version", "the version of this build");
        }
        if (ret->count > 0) /* the tables' own words come first: nobody waits for a store then */
                ret->names = COMPLETIONS_NONE;
}

void completions_end(struct completions *c)
{
        if (c->count > 0 && c->unfinished == c->count)
                c->directive |= COMPLETIONS_NO_SPACE;
        text_printf(&c->lines, ":%u\n", c->directive);
}

void completions_free(struct completions *c)
{
        text_free(&c->lines);
}
