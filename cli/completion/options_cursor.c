/* Walks the finished words of a command line as the parser does, without minding what is wrong with them. */
#include "cli/completion/options_cursor.h"

#include <string.h>

/* One argument: an option with what it is given, or an operand. */
struct argument {
        const struct option_spec *option;
        const char *value; /* NULL = not in the same word */
        const char *operand;
        bool ends; /* it is `--` */
};

static bool wants_next(const struct argument *argument)
{
        return argument->option != NULL && argument->value == NULL && argument->option->type != OPTION_BOOL &&
               argument->option->type != OPTION_OPTIONAL;
}

static struct argument read_argument(const struct option_program *program, const char *word, bool ended)
{
        const char *equals = strchr(word, '=');
        struct argument ret = { 0 };

        if (ended || word[0] != '-' || word[1] == '\0') {
                ret.operand = word;
        } else if (word[1] != '-') {
                ret.option = options_find_letter(program, word[1]);
                ret.value = word[2] == '\0' ? NULL : word + 2;
        } else {
                size_t n = equals != NULL ? (size_t) (equals - word) : strlen(word);

                ret.ends = word[2] == '\0';
                ret.option = options_find(program, word + 2, n - 2);
                ret.value = equals != NULL ? equals + 1 : NULL;
        }
        return ret;
}

/* The argument that begins at word *at, before the last one; *at goes on behind it. */
static bool next(const struct options_cursor *cursor, size_t *at, bool *ended, struct argument *ret)
{
        if (*at + 1 >= cursor->count)
                return false;
        *ret = read_argument(cursor->program, cursor->words[(*at)++], *ended);
        *ended = *ended || ret->ends;
        if (wants_next(ret) && *at + 1 < cursor->count)
                ret->value = cursor->words[(*at)++];
        return true;
}

struct options_cursor options_cursor_find(const struct option_program *program, const char *const *words,
                                          size_t count)
{
        struct options_cursor ret = { .program = program, .words = words, .count = count };
        const char *last = words[count - 1];
        struct argument argument = { 0 };
        size_t at = 0;

        while (next(&ret, &at, &ret.ended, &argument))
                ret.value_of = wants_next(&argument) ? argument.option : NULL;
        if (ret.value_of != NULL)
                return ret;
        argument = read_argument(program, last, ret.ended);
        if (argument.option != NULL && argument.value != NULL) {
                ret.value_of = argument.option;
                ret.kept_bytes = (size_t) (argument.value - last);
        }
        return ret;
}

const char *options_cursor_operand(const struct options_cursor *cursor, size_t i)
{
        struct argument argument;
        bool ended = false;
        size_t at = 0;

        while (next(cursor, &at, &ended, &argument))
                if (argument.operand != NULL && i-- == 0)
                        return argument.operand;
        return NULL;
}

const char *options_cursor_value(const struct options_cursor *cursor, const char *name)
{
        const struct option_spec *option = options_find(cursor->program, name, strlen(name));
        const char *ret = option == NULL ? NULL : option->default_;
        struct argument argument;
        bool ended = false;
        size_t at = 0;

        while (next(cursor, &at, &ended, &argument))
                if (option != NULL && argument.option == option && argument.value != NULL)
                        ret = argument.value;
        return ret;
}
