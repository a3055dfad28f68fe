/* What the tables alone say of an unfinished line. Shells and kubectl rely on: each line is a candidate that
 * begins with what is typed, the last is the directive, and names are wanted only where no word of a table
 * fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/completion/completions.h"

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "store", .type = OPTION_STRING, .value = "dir:PATH|kubernetes", .default_ = "kubernetes", .help = "where\nit is" },
        { .name = "output", .letter = 'o', .type = OPTION_CHOICE, .value = "table|json", .default_ = "table", .help = "how" },
        { .name = "all", .letter = 'a', .type = OPTION_BOOL, .help = "all" },
        { .name = "save", .type = OPTION_OPTIONAL, .value = "FILE", .default_ = "x", .help = "keep" },
        { .name = "root", .type = OPTION_STRING, .value = "DIR", .help = "there" },
        { .name = "count", .type = OPTION_UNSIGNED, .value = "N", .help = "so many" },
        { .name = "node", .type = OPTION_LIST, .value = "NODE", .help = "again" },
        { 0 },
};
/* clang-format on */

static const struct option_program verbs = {
        .name = "x verbs", .operands = "[show|logs JOB]", .operands_max = 2, .specs = specs
};
static const struct option_program ways = { .name = "x ways",
                                            .operands = "record [FILE] | expand FILE DIR | clear ID...",
                                            .specs = specs };
static const struct option_program kinds = {
        .name = "x kinds", .operands = "pod/NAME | NAMESPACE/NAME", .operands_max = 1, .specs = specs
};
static const struct option_program none = { .name = "x deep none", .specs = specs };

static bool below(size_t i, struct command_below *ret)
{
        *ret = (struct command_below){ "none", "nothing", &none };
        return i == 0;
}

static const struct command table[] = {
        { "verbs", "some", NULL, &verbs, NULL }, { "ways", "more", NULL, &ways, NULL },
        { "kinds", "of", NULL, &kinds, NULL },   { "deep", "deeper", NULL, NULL, below },
        { NULL, NULL, NULL, NULL, NULL },
};

#define WORDS_MAX 8

/* At blanks: a line that ends in one has an empty word last. */
static size_t cut(char *line, const char **words)
{
        size_t count = 0;

        for (char *word = line; count < WORDS_MAX; word += strlen(word) + 1) {
                char *end = strchrnul(word, ' ');
                bool last = *end == '\0';

                *end = '\0';
                words[count++] = word;
                if (last)
                        break;
        }
        return count;
}

static void check(const char *line, const char *lines, enum completions_names names)
{
        struct completions completions;
        const char *words[WORDS_MAX];
        char copy[128];
        size_t count;

        assert_true(text_copy(copy, sizeof(copy), line));
        count = cut(copy, words);
        completions_find(table, words, count, &completions);
        assert_int_equal(completions.names, names);
        completions_end(&completions);
        assert_string_equal(completions.lines.data, lines);
        completions_free(&completions);
}

static void test_commands(void **state)
{
        (void) state;
        check("v", "verbs\tsome\n:4\n", COMPLETIONS_NONE);
        check("", "verbs\tsome\nways\tmore\nkinds\tof\ndeep\tdeeper\n:4\n", COMPLETIONS_NONE);
        check("nowhere ", ":4\n", COMPLETIONS_NONE);
        check("deep ", "none\tnothing\n:4\n", COMPLETIONS_NONE);
        check("deep none --al", "--all\tall\n:4\n", COMPLETIONS_NONE);
        check("deep nowhere --al", ":4\n", COMPLETIONS_NONE);
        check("deep -", "--help\tthis page\n:4\n", COMPLETIONS_NONE);
}

static void test_options(void **state)
{
        (void) state;
        check("verbs --s", "--store\twhere\n--save\tkeep\n:4\n", COMPLETIONS_NONE);
        check("verbs -o", "-o\thow\n:4\n", COMPLETIONS_NONE);
        check("verbs show -- --s", ":4\n", COMPLETIONS_JOBS);
        check("verbs --unknown s", "show\n:4\n", COMPLETIONS_NONE);
}

static void test_values(void **state)
{
        (void) state;
        check("verbs -o ", "table\njson\n:4\n", COMPLETIONS_NONE);
        check("verbs -oj", "-ojson\n:4\n", COMPLETIONS_NONE);
        check("verbs --output=j", "--output=json\n:4\n", COMPLETIONS_NONE);
        check("verbs --all=", "--all=true\n--all=false\n:4\n", COMPLETIONS_NONE);
        check("verbs --all s", "show\n:4\n", COMPLETIONS_NONE);
        check("verbs --save s", "show\n:4\n", COMPLETIONS_NONE);
        check("verbs --save=", ":0\n", COMPLETIONS_NONE);
        check("verbs --root ", ":16\n", COMPLETIONS_NONE);
        check("verbs --count ", ":4\n", COMPLETIONS_NONE);
        check("verbs --store d", "dir:\n:6\n", COMPLETIONS_NONE);
        check("verbs --store dir:x", ":4\n", COMPLETIONS_SUBFOLDERS);
        check("verbs --node=", ":4\n", COMPLETIONS_NODES);
}

static void test_operands(void **state)
{
        (void) state;
        check("verbs ", "show\nlogs\n:4\n", COMPLETIONS_NONE);
        check("verbs -a -o json logs ", ":4\n", COMPLETIONS_JOBS);
        check("verbs nonsense ", ":4\n", COMPLETIONS_NONE);
        check("verbs show x ", ":4\n", COMPLETIONS_NONE);
        check("ways ", "record\nexpand\nclear\n:4\n", COMPLETIONS_NONE);
        check("ways record ", ":0\n", COMPLETIONS_NONE);
        check("ways record x ", ":4\n", COMPLETIONS_NONE);
        check("ways expand x ", ":16\n", COMPLETIONS_NONE);
        check("ways clear ", ":4\n", COMPLETIONS_DEVICES);
        check("ways clear a b c ", ":4\n", COMPLETIONS_DEVICES);
        check("deep none ", ":4\n", COMPLETIONS_NONE);
}

/* First what a name is of, then the names. */
static void test_kinds(void **state)
{
        (void) state;
        check("kinds ", "pod/\n:6\n", COMPLETIONS_NONE);
        check("kinds pod/", ":4\n", COMPLETIONS_PODS);
        check("kinds o", ":4\n", COMPLETIONS_QUALIFIED);
}

static void test_names(void **state)
{
        static const char *const words[] = { "kinds", "pod/" };
        static const char *const hostile[] = { "$(x)", "`x`", "a b", "a\nb",    "a\tb",     "-o",
                                               "",     "~",   "a;b", "\x1b[1m", "\xc3\xa9", "a'b" };
        struct completions completions;

        (void) state;
        completions_find(table, words, ARRAY_SIZE(words), &completions);
        for (size_t i = 0; i < ARRAY_SIZE(hostile); i++)
                completions_add(&completions, hostile[i]);
        completions_add(&completions, "a-1.b_c:d");
        completions_end(&completions);
        assert_string_equal(completions.lines.data, "pod/a-1.b_c:d\n:4\n");
        completions_free(&completions);
}

static void test_cursor_values(void **state)
{
        static const char *const words[] = { "--store", "a",  "show",      "--store=b",
                                             "-ojson",  "--", "--store=c", "x" };
        struct options_cursor cursor = options_cursor_find(&verbs, words, ARRAY_SIZE(words));

        (void) state;
        assert_string_equal(options_cursor_value(&cursor, "store"), "b");
        assert_string_equal(options_cursor_value(&cursor, "output"), "json");
        assert_null(options_cursor_value(&cursor, "root"));
        assert_null(options_cursor_value(&cursor, "nowhere"));
        assert_string_equal(options_cursor_operand(&cursor, 0), "show");
        assert_string_equal(options_cursor_operand(&cursor, 1), "--store=c");
        assert_null(options_cursor_operand(&cursor, 2));
        assert_true(cursor.ended);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_commands),      cmocka_unit_test(test_options),
                cmocka_unit_test(test_values),        cmocka_unit_test(test_operands),
                cmocka_unit_test(test_kinds),         cmocka_unit_test(test_names),
                cmocka_unit_test(test_cursor_values),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
