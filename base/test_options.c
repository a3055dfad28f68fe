/* Options from every source, in their order of precedence, and what people are told about mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"

struct sample {
        const char *listen, *format, *save;
        bool verbose, dry_run;
        unsigned seconds;
        uint64_t seed;
        double rate;
        struct option_list files;
};

#define AT(m) offsetof(struct sample, m)

/* clang-format off */
static const struct option_spec specs[] = {
        { "listen",  0,   OPTION_STRING,   AT(listen),  "ADDR:PORT",  "127.0.0.1:0", 0, 0,  "where to listen" },
        { "output",  'o', OPTION_CHOICE,   AT(format),  "table|json", "table",       0, 0,  "how to print" },
        { "verbose", 'v', OPTION_BOOL,     AT(verbose), NULL,         NULL,          0, 0,  "say more" },
        { "seconds", 0,   OPTION_UNSIGNED, AT(seconds), "SECONDS",    "5",           1, 60, "how long" },
        { "seed",    0,   OPTION_UINT64,   AT(seed),    "NUMBER",     NULL,          0, 0,  "for luck" },
        { "rate",    0,   OPTION_DOUBLE,   AT(rate),    "RATE",       "0.5",         0, 1,  "how fast" },
        { "save",    0,   OPTION_OPTIONAL, AT(save),    "FILE",       "here",        0, 0,  "to keep it" },
        { "file",    'f', OPTION_LIST,     AT(files),   "FILE",       NULL,          0, 0,  "may be repeated" },
        { "dry-run", 0,   OPTION_BOOL,     AT(dry_run), NULL,         NULL,          0, 0,  "only say it" },
        { 0 },
};
/* clang-format on */

static const struct option_program program = {
        .name = "sample",
        .operands = "[WORD...]",
        .operands_max = 3,
        .summary = "Shows how options work.",
        .environment_prefix = "SAMPLE_",
        .specs = specs,
};

static void nothing_given_gives_the_defaults(void **state)
{
        char *argv[] = { "sample", NULL };
        struct sample s;
        size_t operands = 9;

        (void) state;
        memset(&s, 0xff, sizeof(s));
        assert_int_equal(options_parse(&program, 1, argv, NULL, &s, &operands, NULL), 0);
        assert_string_equal(s.listen, "127.0.0.1:0");
        assert_string_equal(s.format, "table");
        assert_false(s.verbose);
        assert_int_equal(s.seconds, 5);
        assert_int_equal(s.seed, 0);
        assert_true(s.rate == 0.5);
        assert_null(s.save);
        assert_int_equal(s.files.count, 0);
        assert_int_equal(operands, 0);
}

static void an_optional_value_follows_an_equals_sign_or_is_the_default(void **state)
{
        char *alone[] = { "sample", "--save", "there", NULL }, *given[] = { "sample", "--save=there", NULL };
        struct sample s;
        size_t operands = 0;

        (void) state;
        assert_int_equal(options_parse(&program, 3, alone, NULL, &s, &operands, NULL), 0);
        assert_string_equal(s.save, "here");
        assert_int_equal(operands, 1);
        assert_int_equal(options_parse(&program, 2, given, NULL, &s, &operands, NULL), 0);
        assert_string_equal(s.save, "there");
}

static void every_form_of_an_option_is_understood(void **state)
{
        char *argv[] = {
                "sample", "one", "--listen=[::1]:1", "-ojson", "-v",  "--seed", "18446744073709551615",
                "-f",     "a",   "--file",           "b",      "two", "--",     "--seconds",
                NULL
        };
        struct sample s;
        size_t operands = 0;

        (void) state;
        assert_int_equal(options_parse(&program, 14, argv, NULL, &s, &operands, NULL), 0);
        assert_string_equal(s.listen, "[::1]:1");
        assert_string_equal(s.format, "json");
        assert_true(s.verbose);
        assert_true(s.seed == UINT64_MAX);
        assert_int_equal(s.files.count, 2);
        assert_string_equal(s.files.items[1], "b");
        assert_int_equal(operands, 3);
        assert_string_equal(argv[1], "one");
        assert_string_equal(argv[2], "two");
        assert_string_equal(argv[3], "--seconds");
}

/* clang-format off */
static const struct {
        const char *what, *argument, *value, *sentence;
} mistakes[] = {
        { "unknown",               "--nonsense", "x",    "no option '--nonsense'; `sample --help` lists them" },
        { "a slip",                "--lissten",  "x",    "no option '--lissten'; did you mean '--listen'?" },
        { "unknown letter",        "-x",         "x",    "no option '-x'; `sample --help` lists them" },
        { "not a number",          "--seconds",  "5s",   "--seconds: '5s' is not a whole number" },
        { "negative",              "--seconds",  "-1",   "--seconds: '-1' is not a whole number" },
        { "below the minimum",     "--seconds",  "0",    "--seconds: '0' is not in 1..60" },
        { "above the maximum",     "--seconds",  "61",   "--seconds: '61' is not in 1..60" },
        { "beyond 64 bits",        "--seed",     "18446744073709551616",
                                   "--seed: '18446744073709551616' is not in 0..18446744073709551615" },
        { "no choice",             "-o",         "xml",  "--output: 'xml' is not one of table|json" },
        { "an empty choice",       "-o",         "",     "--output: '' is not one of table|json" },
        { "part of a choice",      "-o",         "tabl", "--output: 'tabl' is not one of table|json" },
        { "neither true nor false","--verbose=yes", "x", "--verbose: 'yes' is neither true nor false" },
        { "rate out of range",     "--rate",     "1.01", "--rate: '1.01' is not in 0..1" },
        { "rate no number",        "--rate",     "nan",  "--rate: 'nan' is not a number" },
        { "rate below its range",  "--rate",     "-0.1", "--rate: '-0.1' is not in 0..1" },
        { "a bool with more",      "-vx",        "x",    "no option '-vx'; `sample --help` lists them" },
        { "a very long word",      "--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "x",
                                   "no option '--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'; `sample --help` lists them" },
};
/* clang-format on */

static void a_mistake_is_told_in_a_sentence(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(mistakes); i++) {
                struct err err = { 0 };
                struct sample s;
                char argument[64], value[64];
                char *argv[] = { "sample", argument, value, NULL };

                (void) text_copy(argument, sizeof(argument), mistakes[i].argument);
                (void) text_copy(value, sizeof(value), mistakes[i].value);
                if (options_parse(&program, 3, argv, NULL, &s, NULL, &err) != -EINVAL ||
                    strcmp(err.msg, mistakes[i].sentence) != 0)
                        fail_msg("%s: want \"%s\", got \"%s\"", mistakes[i].what, mistakes[i].sentence,
                                 err.msg);
        }
}

static void a_missing_value_and_too_many_operands_are_mistakes(void **state)
{
        char *missing[] = { "sample", "--listen", NULL };
        char *many[] = { "sample", "a", "b", "c", "d", NULL };
        static const struct option_program alone = { .name = "alone", .specs = specs };
        struct err err = { 0 };
        struct sample s;

        (void) state;
        assert_int_equal(options_parse(&alone, 2, many, NULL, &s, NULL, &err), -EINVAL);
        assert_string_equal(err.msg, "'a' is one argument too many; `alone --help` says what it takes");
        assert_int_equal(options_parse(&program, 2, missing, NULL, &s, NULL, &err), -EINVAL);
        assert_string_equal(err.msg, "--listen wants a value: --listen ADDR:PORT");
        assert_int_equal(options_parse(&program, 5, many, NULL, &s, NULL, &err), -EINVAL);
        assert_string_equal(err.msg, "'d' is one argument too many; `sample --help` says what it takes");
}

static void a_list_has_an_end_and_an_argument_may_be_wanted(void **state)
{
        static const struct option_program wanting = {
                .name = "wanting", .operands = "FILE", .operands_min = 1, .operands_max = 1, .specs = specs
        };
        char *argv[OPTION_LIST_MAX + 2] = { "sample", "-" },
                                     *off[] = { "wanting", "-v", "--verbose=false", "-", NULL };
        struct err err = { 0 };
        struct sample s;
        size_t operands = 0;

        (void) state;
        for (size_t i = 1; i < ARRAY_SIZE(argv); i++)
                argv[i] = "-fa";
        assert_int_equal(options_parse(&program, OPTION_LIST_MAX + 1, argv, NULL, &s, NULL, &err), 0);
        assert_int_equal(options_parse(&program, OPTION_LIST_MAX + 2, argv, NULL, &s, NULL, &err), -EINVAL);
        assert_string_equal(err.msg, "--file: given more than 1024 times");
        assert_int_equal(options_parse(&wanting, 3, off, NULL, &s, NULL, &err), -EINVAL);
        assert_string_equal(err.msg, "an argument is missing: wanting FILE");
        assert_int_equal(options_parse(&wanting, 4, off, NULL, &s, &operands, &err), 0);
        assert_int_equal(operands, 1); /* "-" alone is an operand */
        assert_false(s.verbose);
}

static void the_environment_fills_what_the_command_line_leaves(void **state)
{
        char *environment[] = { "PATH=/bin",
                                "SAMPLE_SECONDS=7",
                                "SAMPLE_OTHER=1",
                                "SAMPLE_LISTEN=:9",
                                "SAMPLE_VERBOSE",
                                "SAMPLE_DRY_RUN=true",
                                "SAMPLE_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=1",
                                NULL };
        char *bad[] = { "SAMPLE_SECONDS=none", NULL };
        char *argv[] = { "sample", "--listen", ":1", NULL };
        struct err err = { 0 };
        struct sample s;

        (void) state;
        assert_int_equal(options_parse(&program, 3, argv, environment, &s, NULL, NULL), 0);
        assert_int_equal(s.seconds, 7);
        assert_true(s.dry_run);
        assert_false(s.verbose); /* a name without a value is none of ours */
        assert_string_equal(s.listen, ":1");
        assert_int_equal(options_parse(&program, 1, argv, bad, &s, NULL, &err), -EINVAL);
        assert_string_equal(err.msg,
                            "environment variable SAMPLE_SECONDS: --seconds: 'none' is not a whole number");
}

static void help_has_a_line_for_every_row(void **state)
{
        struct text help = { 0 };

        (void) state;
        options_help(&program, &help);
        for (const struct option_spec *s = specs; s->name != NULL; s++)
                assert_non_null(strstr(help.data, s->help));
        assert_non_null(strstr(help.data, "-o, --output table|json"));
        assert_non_null(strstr(help.data, "(127.0.0.1:0)"));
        assert_non_null(
                strstr(help.data, "\nEvery option may also come from the environment: SAMPLE_NAME=VALUE.\n"));
        text_free(&help);
}

static void a_long_row_of_help_has_its_sentence_below(void **state)
{
        static const struct option_spec rows[] = {
                { .name = "a-name-that-is-long",
                  .type = OPTION_STRING,
                  .value = "AND-ITS-VALUE-TOO",
                  .help = "what it is" },
                { .name = "quiet", .type = OPTION_BOOL, .default_ = "false", .help = "say less" },
                { 0 },
        };
        static const struct option_program bare = { .name = "bare", .specs = rows, .after = "The end." };
        CLEANUP(text_free) struct text help = { 0 };

        (void) state;
        options_help(&bare, &help);
        assert_string_equal(help.data, "usage: bare [OPTION...]\n\n"
                                       "  --a-name-that-is-long AND-ITS-VALUE-TOO\n"
                                       "                                      what it is\n"
                                       "  --quiet                             say less\n"
                                       "  --help                              this page\n"
                                       "  --version                           the version of this build\n"
                                       "\nThe end.\n");
}

static void a_program_starts_answers_or_refuses(void **state)
{
        char *version[] = { "sample", "--version", NULL }, *bad[] = { "sample", "--bad", NULL };
        char *good[] = { "sample", NULL }, *asked[] = { "sample", "-h", NULL };
        CLEANUP(fclose_p) FILE *out = tmpfile(), *errors = tmpfile();
        struct sample s;

        (void) state;
        assert_int_equal(options_start(&program, "1", 1, good, &s, NULL, out, errors), -1);
        assert_int_equal(ftell(out) + ftell(errors), 0);
        assert_int_equal(options_start(&program, "1", 2, version, &s, NULL, out, errors), EXIT_DONE);
        assert_int_equal(ftell(out), strlen("sample 1\n"));
        assert_int_equal(options_start(&program, "1", 2, asked, &s, NULL, out, errors), EXIT_DONE);
        assert_int_equal(ftell(errors), 0);
        assert_int_equal(options_start(&program, "1", 2, bad, &s, NULL, out, errors), EXIT_USAGE);
        assert_true(ftell(errors) > 0);
}

static void a_program_may_have_an_environment(void **state)
{
        char *variables[] = { "SAMPLE_SECONDS=7", NULL }, **environment = variables;
        struct option_program with = program;
        char *argv[] = { "sample", NULL };
        struct sample s;

        (void) state;
        with.environment = &environment;
        assert_int_equal(options_start(&with, "1", 1, argv, &s, NULL, stdout, stderr), -1);
        assert_int_equal(s.seconds, 7);
}

/* kubectl runs what is called kubectl-NAME as `kubectl NAME`. */
static void a_plugin_is_called_by_kubectl(void **state)
{
        char *own = program_invocation_short_name, plugin[] = "kubectl-sample", called[OPTIONS_CALLED_BYTES];

        (void) state;
        options_called("sample", called);
        assert_string_equal(called, "sample");
        program_invocation_short_name = plugin;
        options_called("sample", called);
        program_invocation_short_name = own;
        assert_string_equal(called, "kubectl sample");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_given_gives_the_defaults),
                cmocka_unit_test(an_optional_value_follows_an_equals_sign_or_is_the_default),
                cmocka_unit_test(every_form_of_an_option_is_understood),
                cmocka_unit_test(a_mistake_is_told_in_a_sentence),
                cmocka_unit_test(a_missing_value_and_too_many_operands_are_mistakes),
                cmocka_unit_test(a_list_has_an_end_and_an_argument_may_be_wanted),
                cmocka_unit_test(the_environment_fills_what_the_command_line_leaves),
                cmocka_unit_test(help_has_a_line_for_every_row),
                cmocka_unit_test(a_long_row_of_help_has_its_sentence_below),
                cmocka_unit_test(a_program_starts_answers_or_refuses),
                cmocka_unit_test(a_program_may_have_an_environment),
                cmocka_unit_test(a_plugin_is_called_by_kubectl),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
