/* The rows of a table against argv, the environment and a file; and --help and usage written from the same
 * rows. */
#include "base/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit_code.h"

static void *member(const struct option_spec *spec, void *options)
{
        return (char *) options + spec->offset;
}

const struct option_spec *options_find(const struct option_program *program, const char *name,
                                       size_t name_bytes)
{
        for (const struct option_spec *s = program->specs; s->name != NULL; s++)
                if (strlen(s->name) == name_bytes && memcmp(s->name, name, name_bytes) == 0)
                        return s;
        return NULL;
}

const struct option_spec *options_find_letter(const struct option_program *program, char letter)
{
        for (const struct option_spec *s = program->specs; s->name != NULL; s++)
                if (s->letter != 0 && s->letter == letter)
                        return s;
        return NULL;
}

/* Is `word` one of the words of "a|b|c"? */
static bool is_choice(const char *choices, const char *word)
{
        size_t bytes = strlen(word);

        for (const char *c = choices; bytes > 0; c++) {
                size_t n = strcspn(c, "|");

                if (n == bytes && memcmp(c, word, n) == 0)
                        return true;
                c += n;
                if (*c == '\0')
                        break;
        }
        return false;
}

static int set_bool(const struct option_spec *spec, const char *value, bool *ret, struct err *err)
{
        if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
                return err_set(err, -EINVAL, "--%s: '%s' is neither true nor false", spec->name, value);
        *ret = value[0] == 't';
        return 0;
}

static int set_integer(const struct option_spec *spec, const char *value, uint64_t largest, uint64_t *ret,
                       struct err *err)
{
        uint64_t maximum = spec->maximum != 0 ? spec->maximum : largest, v;
        int r = text_parse_uint64(value, &v);

        if (r == -EINVAL)
                return err_set(err, -EINVAL, "--%s: '%s' is not a whole number", spec->name, value);
        if (r < 0 || v < spec->minimum || v > maximum)
                return err_set(err, -EINVAL, "--%s: '%s' is not in %llu..%llu", spec->name, value,
                               (unsigned long long) spec->minimum, (unsigned long long) maximum);
        *ret = v;
        return 0;
}

static int set_double(const struct option_spec *spec, const char *value, double *ret, struct err *err)
{
        double v;

        if (text_parse_double(value, &v) < 0)
                return err_set(err, -EINVAL, "--%s: '%s' is not a number", spec->name, value);
        if (spec->maximum != 0 && (v < (double) spec->minimum || v > (double) spec->maximum))
                return err_set(err, -EINVAL, "--%s: '%s' is not in %llu..%llu", spec->name, value,
                               (unsigned long long) spec->minimum, (unsigned long long) spec->maximum);
        *ret = v;
        return 0;
}

static int set_list(const struct option_spec *spec, const char *value, struct option_list *list,
                    struct err *err)
{
        if (list->count == OPTION_LIST_MAX)
                return err_set(err, -EINVAL, "--%s: given more than %d times", spec->name, OPTION_LIST_MAX);
        list->items[list->count++] = value;
        return 0;
}

static int set(const struct option_spec *spec, const char *value, void *options, struct err *err)
{
        uint64_t number = 0;
        int r;

        switch (spec->type) {
        case OPTION_STRING:
        case OPTION_OPTIONAL:
                *(const char **) member(spec, options) = value;
                return 0;
        case OPTION_CHOICE:
                if (!is_choice(spec->value, value))
                        return err_set(err, -EINVAL, "--%s: '%s' is not one of %s", spec->name, value,
                                       spec->value);
                *(const char **) member(spec, options) = value;
                return 0;
        case OPTION_BOOL:
                return set_bool(spec, value, member(spec, options), err);
        case OPTION_UNSIGNED:
                r = set_integer(spec, value, UINT32_MAX, &number, err);
                if (r == 0)
                        *(unsigned *) member(spec, options) = (unsigned) number;
                return r;
        case OPTION_UINT64:
                return set_integer(spec, value, UINT64_MAX, member(spec, options), err);
        case OPTION_DOUBLE:
                return set_double(spec, value, member(spec, options), err);
        case OPTION_LIST:
                return set_list(spec, value, member(spec, options), err);
        }
        return err_set(err, -EINVAL, "--%s: a row without a type", spec->name);
}

/* The state of a member when nothing was said about it. */
static void clear(const struct option_spec *spec, void *options)
{
        void *m = member(spec, options);

        switch (spec->type) {
        case OPTION_STRING:
        case OPTION_OPTIONAL:
        case OPTION_CHOICE:
                *(const char **) m = NULL;
                break;
        case OPTION_BOOL:
                *(bool *) m = false;
                break;
        case OPTION_UNSIGNED:
                *(unsigned *) m = 0;
                break;
        case OPTION_UINT64:
                *(uint64_t *) m = 0;
                break;
        case OPTION_DOUBLE:
                *(double *) m = 0;
                break;
        case OPTION_LIST:
                *(struct option_list *) m = (struct option_list){ .count = 0 };
                break;
        }
}

void options_default(const struct option_program *program, void *ret_options)
{
        for (const struct option_spec *s = program->specs; s->name != NULL; s++) {
                int r = 0;

                clear(s, ret_options);
                if (s->default_ != NULL && s->type != OPTION_OPTIONAL)
                        r = set(s, s->default_, ret_options, NULL);
                assert(r == 0);
                (void) r;
        }
}

/* How many letters must be changed, added or dropped to make `a` of `b`; both cut at 31 bytes. */
static size_t distance(const char *a, const char *b)
{
        size_t row[32], n = strnlen(b, 31);

        for (size_t j = 0; j <= n; j++)
                row[j] = j;
        for (size_t i = 1; i < 32 && a[i - 1] != '\0'; i++) {
                size_t diagonal = row[0];

                row[0] = i;
                for (size_t j = 1; j <= n; j++) {
                        size_t best = diagonal + (a[i - 1] != b[j - 1]);

                        diagonal = row[j];
                        if (row[j] + 1 < best)
                                best = row[j] + 1;
                        if (row[j - 1] + 1 < best)
                                best = row[j - 1] + 1;
                        row[j] = best;
                }
        }
        return row[n];
}

void options_called(const char *name, char ret[OPTIONS_CALLED_BYTES])
{
        bool plugin = text_starts_with(program_invocation_short_name, "kubectl-");

        (void) text_format(ret, OPTIONS_CALLED_BYTES, "%s%s", plugin ? "kubectl " : "", name);
}

static int unknown(const struct option_program *program, const char *argument, struct err *err)
{
        const char *closest = NULL;
        char called[OPTIONS_CALLED_BYTES];
        size_t least = 3; /* two slips of a finger are a slip, three are another word */

        for (const struct option_spec *s = program->specs; s->name != NULL; s++) {
                size_t d = argument[1] == '-' ? distance(argument + 2, s->name) : least;

                if (d < least) {
                        least = d;
                        closest = s->name;
                }
        }
        if (closest != NULL)
                return err_set(err, -EINVAL, "no option '%s'; did you mean '--%s'?", argument, closest);
        options_called(program->name, called);
        return err_set(err, -EINVAL, "no option '%s'; `%s --help` lists them", argument, called);
}

/* REMUDA_AGENT_NODE_NAME is --node-name; a variable that belongs to no row is none of our business. */
static int from_environment(const struct option_program *program, char **environment, void *options,
                            struct err *err)
{
        size_t prefix = strlen(program->environment_prefix);

        for (; *environment != NULL; environment++) {
                const char *value = strchr(*environment, '=');
                char name[64];
                size_t n;
                const struct option_spec *spec;
                int r;

                if (value == NULL || strncmp(*environment, program->environment_prefix, prefix) != 0)
                        continue;
                n = (size_t) (value - *environment) - prefix;
                if (n >= sizeof(name))
                        continue;
                for (size_t i = 0; i < n; i++) {
                        char c = (*environment)[prefix + i];

                        name[i] = (char) (c == '_' ? '-' : tolower((unsigned char) c));
                }
                spec = options_find(program, name, n);
                r = spec == NULL ? 0 : set(spec, value + 1, options, err);
                if (r < 0)
                        return err_wrap(err, r, "environment variable %.*s", (int) (n + prefix),
                                        *environment);
        }
        return 0;
}

struct parse {
        const struct option_program *program;
        int argc, next; /* next: the argument after the one in hand */
        char **argv;
        void *options;
};

/* An option in hand: its value is after '=', or the next argument, or none for a bool. */
static int take(struct parse *p, const struct option_spec *spec, const char *value, struct err *err)
{
        if (value == NULL && spec->type == OPTION_BOOL)
                value = "true";
        if (value == NULL && spec->type == OPTION_OPTIONAL)
                value = spec->default_;
        if (value == NULL) {
                if (p->next >= p->argc)
                        return err_set(err, -EINVAL, "--%s wants a value: --%s %s", spec->name, spec->name,
                                       spec->value);
                value = p->argv[p->next++];
        }
        return set(spec, value, p->options, err);
}

static int take_long(struct parse *p, const char *argument, struct err *err)
{
        const char *equals = strchr(argument, '=');
        size_t n = equals != NULL ? (size_t) (equals - argument) : strlen(argument);
        const struct option_spec *spec;

        if (strcmp(argument, "--help") == 0)
                return OPTIONS_E_HELP;
        if (strcmp(argument, "--version") == 0)
                return OPTIONS_E_VERSION;
        spec = options_find(p->program, argument + 2, n - 2);
        if (spec == NULL)
                return unknown(p->program, argument, err);
        return take(p, spec, equals != NULL ? equals + 1 : NULL, err);
}

static int take_short(struct parse *p, const char *argument, struct err *err)
{
        const struct option_spec *spec = options_find_letter(p->program, argument[1]);

        if (spec == NULL && strcmp(argument, "-h") == 0)
                return OPTIONS_E_HELP;
        if (spec == NULL || (spec->type == OPTION_BOOL && argument[2] != '\0'))
                return unknown(p->program, argument, err);
        return take(p, spec, argument[2] != '\0' ? argument + 2 : NULL, err);
}

static int check_operands(const struct option_program *program, size_t count, char **argv, struct err *err)
{
        unsigned most = program->operands != NULL ? program->operands_max : 0;
        char called[OPTIONS_CALLED_BYTES];

        options_called(program->name, called);
        if (count > most)
                return err_set(err, -EINVAL, "'%s' is one argument too many; `%s --help` says what it takes",
                               argv[1 + most], called);
        if (count < program->operands_min)
                return err_set(err, -EINVAL, "an argument is missing: %s %s", called, program->operands);
        return 0;
}

int options_parse(const struct option_program *program, int argc, char **argv, char **environment,
                  void *ret_options, size_t *ret_operands, struct err *err)
{
        struct parse p = {
                .program = program, .argc = argc, .argv = argv, .next = 1, .options = ret_options
        };
        bool ended = false;
        size_t operands = 0;
        int r = 0;

        options_default(program, ret_options);
        if (program->environment_prefix != NULL && environment != NULL)
                r = from_environment(program, environment, ret_options, err);

        while (r == 0 && p.next < argc) {
                char *argument = argv[p.next++];

                if (ended || argument[0] != '-' || argument[1] == '\0')
                        argv[1 + operands++] = argument; /* never past what was read already */
                else if (strcmp(argument, "--") == 0)
                        ended = true;
                else if (argument[1] == '-')
                        r = take_long(&p, argument, err);
                else
                        r = take_short(&p, argument, err);
        }
        if (r == 0)
                r = check_operands(program, operands, argv, err);
        if (r == 0 && ret_operands != NULL)
                *ret_operands = operands;
        return r;
}

void options_help(const struct option_program *program, struct text *out)
{
        char called[OPTIONS_CALLED_BYTES];

        options_called(program->name, called);
        text_printf(out, "usage: %s [OPTION...]%s%s\n", called, program->operands != NULL ? " " : "",
                    program->operands != NULL ? program->operands : "");
        if (program->summary != NULL)
                text_printf(out, "%s\n", program->summary);
        text_append(out, "\n");
        for (const struct option_spec *s = program->specs; s->name != NULL; s++) {
                char left[80], letter[5] = "";

                if (s->letter != 0)
                        (void) text_format(letter, sizeof(letter), "-%c, ", s->letter);
                (void) text_format(left, sizeof(left), "%s--%s%s%s%s", letter, s->name,
                                   s->type == OPTION_OPTIONAL ? "[="
                                   : s->value != NULL         ? " "
                                                              : "",
                                   s->value != NULL ? s->value : "", s->type == OPTION_OPTIONAL ? "]" : "");
                text_printf(out, strlen(left) > 34 ? "  %s\n  %-34s  %s" : "  %-34s%s  %s", left, "",
                            s->help);
                if (s->default_ != NULL && s->type != OPTION_BOOL)
                        text_printf(out, " (%s)", s->default_);
                text_append(out, "\n");
        }
        text_printf(out, "  %-34s  %s\n  %-34s  %s\n", "--help", "this page", "--version",
                    "the version of this build");
        if (program->environment_prefix != NULL)
                text_printf(out, "\nEvery option may also come from the environment: %sNAME=VALUE.\n",
                            program->environment_prefix);
        if (program->after != NULL)
                text_printf(out, "\n%s\n", program->after);
}

int options_start(const struct option_program *program, const char *version, int argc, char **argv,
                  void *ret_options, size_t *ret_operands, FILE *out, FILE *errors)
{
        struct text help = { 0 };
        struct err err = { 0 };
        char called[OPTIONS_CALLED_BYTES];
        char **environment = program->environment != NULL ? *program->environment : NULL;
        int r = options_parse(program, argc, argv, environment, ret_options, ret_operands, &err);

        if (r == 0)
                return -1;
        if (r < 0) {
                options_called(program->name, called);
                fprintf(errors, "%s: %s\n", called, err.msg);
                return EXIT_USAGE;
        }
        if (r == OPTIONS_E_VERSION) {
                fprintf(out, "%s %s\n", program->name, version);
                return EXIT_DONE;
        }
        options_help(program, &help);
        if (!help.failed)
                fputs(help.data, out);
        text_free(&help);
        return EXIT_DONE;
}

int options_end(const struct option_program *program, int r, const struct err *err, FILE *errors)
{
        char called[OPTIONS_CALLED_BYTES];

        options_called(program->name, called);
        if (r < 0)
                (void) fprintf(errors, "%s: %s\n", called, err->msg[0] != '\0' ? err->msg : "no memory");
        return exit_code_of(r);
}
