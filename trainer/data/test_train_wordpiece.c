/* The longest piece first, as BERT's tokenizer has it, and vocabularies that are refused with their line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/data/wordpiece.h"

#define SMALL "[PAD]\n[UNK]\nun\n##aff\n##able\n##a\na\n.\n##ble\nunable\n#\n##\n"
#define CASED "[UNK]\nA\na\n##B\n"

/* clang-format off */
static const struct {
        const char *what, *vocabulary, *text;
        uint32_t tokens[8];
        size_t count;
} rows[] = {
        { "the longest piece from the front",      SMALL, "unaffable",       { 2, 3, 4 },    3 },
        { "a whole word before its parts",         SMALL, "Unable.",         { 9, 7 },       2 },
        { "a word that no pieces make is unknown", SMALL, "unaffected a",    { 1, 6 },       2 },
        { "marks are words",                       SMALL, " . #\n..",        { 7, 10, 7, 7 }, 4 },
        { "nothing",                               SMALL, " \n\t ",          { 0 },          0 },
        { "capitals count where there are any",    CASED, "A aB b AB",       { 1, 2, 3, 0, 1, 3 }, 6 },
        { "the last line without its end",         "[UNK]\r\nx",  "x y",     { 1, 0 },       2 },
};
static const struct {
        const char *vocabulary, *sentence;
} wrong[] = {
        { "",               "no piece '[UNK]'" },
        { "a\nb\n",         "no piece '[UNK]'" },
        { "[UNK]\n\na\n",   "line 2 is empty" },
        { "[UNK]\na\na\n",  "line 3: 'a' is in line 2, too" },
        { "[UNK]\n##a\n##a", "line 3: '##a' is in line 2, too" },
};
/* clang-format on */

static void free_w(struct wordpiece **w)
{
        wordpiece_free(*w);
}

static void cuts_words_as_the_vocabulary_has_them(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                CLEANUP(free_w) struct wordpiece *w = NULL;
                struct err err = { 0 };
                uint32_t tokens[32] = { 0 };

                if (wordpiece_parse(rows[i].vocabulary, strlen(rows[i].vocabulary), &w, &err) < 0)
                        fail_msg("%s: %s", rows[i].what, err.msg);
                if (wordpiece_of(w, rows[i].text, strlen(rows[i].text), tokens) != rows[i].count ||
                    memcmp(tokens, rows[i].tokens, rows[i].count * sizeof(*tokens)) != 0)
                        fail_msg("%s: %u %u %u", rows[i].what, tokens[0], tokens[1], tokens[2]);
        }
}

static void a_word_too_long_is_unknown(void **state)
{
        CLEANUP(free_w) struct wordpiece *w = NULL;
        uint32_t tokens[256] = { 0 };
        struct err err = { 0 };
        char word[256];

        (void) state;
        memset(word, 'a', sizeof(word));
        assert_int_equal(wordpiece_parse(SMALL, strlen(SMALL), &w, &err), 0);
        assert_int_equal(wordpiece_of(w, word, WORDPIECE_WORD_BYTES, tokens), WORDPIECE_WORD_BYTES);
        assert_int_equal(wordpiece_of(w, word, WORDPIECE_WORD_BYTES + 1, tokens), 1);
        assert_int_equal(tokens[0], 1);
}

static void refuses_what_is_no_vocabulary(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                struct wordpiece *w = NULL;
                struct err err = { 0 };

                assert_int_equal(wordpiece_parse(wrong[i].vocabulary, strlen(wrong[i].vocabulary), &w, &err),
                                 -EINVAL);
                if (strstr(err.msg, wrong[i].sentence) == NULL)
                        fail_msg("'%s': %s", wrong[i].sentence, err.msg);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(cuts_words_as_the_vocabulary_has_them),
                cmocka_unit_test(a_word_too_long_is_unknown),
                cmocka_unit_test(refuses_what_is_no_vocabulary),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
