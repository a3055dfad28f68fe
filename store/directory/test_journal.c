/* The journal by itself: what is read of a file that others wrote, tore, cut, replaced or took away. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/directory/journal.h"
#include "store/directory/test_journal.h"

static void lines_are_read_as_they_come(void **state)
{
        struct test_journal_fixture *f = *state;

        assert_int_equal(read_lines(f, NULL), 0); /* no file: nothing */
        put(f->file, "{\"a\":1}\n\n{\"b\":", "we");
        assert_int_equal(read_lines(f, NULL), 0);
        assert_string_equal(f->lines.data, "{\"a\":1}|"); /* the empty one is none, the last has no end yet */
        put(f->file, "2}\n", "ae");
        assert_int_equal(read_lines(f, NULL), 0);
        assert_string_equal(f->lines.data, "{\"b\":2}|");
}

static void a_line_beyond_the_limit_is_left_out(void **state)
{
        struct test_journal_fixture *f = *state;
        CLEANUP(free_p) char *large = malloc(JOURNAL_LINE_MAX + 3);

        memset(large, 'x', JOURNAL_LINE_MAX + 1);
        large[JOURNAL_LINE_MAX + 1] = '\n';
        large[JOURNAL_LINE_MAX + 2] = '\0';
        put(f->file, large, "we");
        put(f->file, "{\"a\":1}\n", "ae");
        assert_int_equal(read_lines(f, NULL), 0);
        assert_string_equal(f->lines.data, "{\"a\":1}|");
}

static void a_torn_line_is_closed_by_the_next_writer(void **state)
{
        struct test_journal_fixture *f = *state;
        CLEANUP(free_p) char *bytes = NULL;

        put(f->file, "{\"a\":1}\n{\"torn", "we");
        assert_int_equal(append(f, "{\"b\":2}\n", NULL), 0);
        assert_string_equal(f->lines.data, "{\"a\":1}|{\"torn|");
        bytes = whole(f->file);
        assert_non_null(strstr(bytes, "{\"torn\n{\"b\":2,\"sequence\":1,\"checksum\":\""));
}

static void another_file_is_read_from_its_beginning(void **state)
{
        struct test_journal_fixture *f = *state;
        char other[96];

        (void) text_format(other, sizeof(other), "%s/other", f->path);
        put(f->file, "{\"a\":1}\n{\"b\":2}\n", "we");
        assert_int_equal(read_lines(f, NULL), 0);
        put(other, "{\"c\":3}\n", "we");
        assert_int_equal(rename(other, f->file), 0);
        assert_int_equal(read_lines(f, NULL), 1); /* replaced */
        assert_string_equal(f->lines.data, "!{\"c\":3}|");
        assert_int_equal(truncate(f->file, 0), 0);
        assert_int_equal(read_lines(f, NULL), 1); /* cut */
        assert_string_equal(f->lines.data, "!");
        assert_int_equal(unlink(f->file), 0);
        assert_int_equal(read_lines(f, NULL), 1); /* gone */
        assert_int_equal(append(f, "{\"d\":4}\n", NULL), 0);
        assert_int_equal(unlink(f->file), 0);
        assert_int_equal(unlink(f->last), 0);
        assert_int_equal(append(f, "{\"e\":5}\n", NULL), 0);
        assert_string_equal(f->lines.data, "!");
}

#define TWO "{\"uid\":\"u-1\",\"node\":\"n\"}\n{\"uid\":\"u-2\",\"node\":\"n\"}\n"

/* Two lines were said to be committed. Return: is each told before anybody decides, or appending refused? */
static bool nothing_is_forgotten(struct test_journal_fixture *f)
{
        struct err err = { 0 };
        bool told;

        journal_close(&f->journal);
        assert_true(read_lines(f, &err) >= 0);
        told = !f->lines.failed && f->lines.data != NULL && strstr(f->lines.data, "u-1") != NULL &&
               strstr(f->lines.data, "u-2") != NULL;
        if (told)
                return append(f, "{\"uid\":\"u-3\"}\n", &err) == -EBADMSG || f->lines.size_bytes == 0;
        return f->journal.damage[0] != '\0' && append(f, "{\"uid\":\"u-3\"}\n", &err) == -EBADMSG &&
               strstr(err.msg, "restored, or removed by who knows what it said") != NULL;
}

static void put_bytes(const char *path, const char *bytes, size_t size)
{
        CLEANUP(fclose_p) FILE *file = fopen(path, "we");

        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
}

/* Every byte of both lines, and of the file beside them: flipped, another character, lost, the first of those
 * that are cut off. */
static void no_byte_that_is_lost_takes_a_line_along(void **state)
{
        struct test_journal_fixture *f = *state;
        CLEANUP(free_p) char *bytes = NULL, *last = NULL;
        static const char others[] = { '\0', '\n', ' ', '}', '"', '0' };

        assert_int_equal(append(f, TWO, NULL), 0);
        bytes = whole(f->file);
        last = whole(f->last);
        for (int beside = 0; beside < 2; beside++) {
                const char *good = beside ? last : bytes, *path = beside ? f->last : f->file;
                size_t size = strlen(good);

                for (size_t at = 0; at < size; at++)
                        for (size_t how = 0; how < 2 + 8 + sizeof(others); how++) {
                                char harmed[512];
                                size_t left = how == 0 ? at : how == 1 ? size - 1 : size;

                                memcpy(harmed, good, size);
                                if (how == 1)
                                        memmove(harmed + at, harmed + at + 1, size - at - 1);
                                else if (how >= 2 && how < 10)
                                        harmed[at] = (char) (harmed[at] ^ (1 << (how - 2)));
                                else if (how >= 10)
                                        harmed[at] = others[how - 10];
                                put_bytes(f->file, bytes, strlen(bytes));
                                put_bytes(f->last, last, strlen(last));
                                put_bytes(path, harmed, left);
                                if (!nothing_is_forgotten(f))
                                        fail_msg("byte %zu of %s, harm %zu: '%s', '%s'", at, path, how,
                                                 f->lines.data, f->journal.damage);
                        }
        }
}

static void what_is_gone_is_missed(void **state)
{
        struct test_journal_fixture *f = *state;
        CLEANUP(free_p) char *bytes = NULL;
        struct err err = { 0 };

        assert_int_equal(append(f, TWO, NULL), 0);
        bytes = whole(f->file);
        *(strchr(bytes, '\n') + 1) = '\0';
        put(f->file, bytes, "we"); /* the last line */
        assert_true(nothing_is_forgotten(f));
        assert_int_equal(append(f, "{\"a\":1}\n", &err), -EBADMSG);
        assert_string_equal(err.msg, "'j.jsonl' is damaged: it ends after line 1 of 2, the others are lost; "
                                     "nothing is appended until the file is restored, or removed by who "
                                     "knows what it said, and '.j.jsonl.last' with it");
        put(f->file, "", "we");
        assert_true(nothing_is_forgotten(f));
        assert_int_equal(unlink(f->file), 0);
        assert_true(nothing_is_forgotten(f));
        assert_int_equal(unlink(f->last), 0);
        assert_int_equal(append(f, "{\"a\":1}\n", &err), 0); /* somebody started over */
        assert_int_equal(f->journal.sequence, 1);
        put(f->last, "7", "we");
        assert_int_equal(append(f, "{\"a\":1}\n", &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "'.j.jsonl.last', which tells where 'j.jsonl' ends, is damaged; "));
        put(f->last, "", "we"); /* it was new when the power went */
        assert_int_equal(append(f, "{\"a\":1}\n", &err), 0);
        assert_int_equal(unlink(f->last), 0);
        assert_int_equal(symlink("/etc/passwd", f->last), 0);
        assert_int_equal(append(f, "{\"a\":1}\n", &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "cannot be read: Too many levels of symbolic links"));
}

static void a_line_that_lacks_its_newline_counts_once(void **state)
{
        struct test_journal_fixture *f = *state;
        CLEANUP(free_p) char *bytes = NULL;

        assert_int_equal(append(f, TWO, NULL), 0);
        bytes = whole(f->file);
        bytes[strlen(bytes) - 1] = '\0';
        put(f->file, bytes, "we");
        journal_close(&f->journal);
        assert_int_equal(read_lines(f, NULL), 0);
        assert_non_null(strstr(f->lines.data, "u-2"));
        assert_int_equal(read_lines(f, NULL), 0);
        assert_int_equal(f->lines.size_bytes, 0);
        assert_int_equal(append(f, "{\"uid\":\"u-3\"}\n", NULL), 0);
        assert_int_equal(f->lines.size_bytes, 0);
        assert_int_equal(f->journal.sequence, 3);
        journal_close(&f->journal);
        assert_int_equal(read_lines(f, NULL), 0);
        assert_non_null(strstr(f->lines.data, "u-2"));
        assert_string_equal(f->journal.damage, "");
}

/* Any order of writers, deaths and damage. */
struct tale {
        struct journal writers[2];
        struct text truth; /* of what was said to be committed, as `lines` has them; and of what died there */
        uint64_t chance;
        unsigned written;
};

static unsigned below(struct tale *t, unsigned end)
{
        t->chance = (t->chance * UINT64_C(6364136223846793005)) + UINT64_C(1442695040888963407);
        return (unsigned) (t->chance >> 33) % end;
}

/* Return: is it known of each line that was committed, or that some are not? */
static bool all_are_known(struct test_journal_fixture *f, const struct tale *t)
{
        struct journal reader;
        bool known;

        journal_init(&reader, f->folder, "j.jsonl");
        text_reset(&f->lines);
        assert_true(journal_read(&reader, on_forget, on_line, f, NULL) >= 0);
        known = reader.damage[0] != '\0';
        if (!known) {
                known = true;
                for (const char *at = t->truth.data; at != NULL && *at != '\0'; at = strchr(at, '|') + 1)
                        known &= f->lines.data != NULL && memmem(f->lines.data, f->lines.size_bytes, at,
                                                                 (size_t) (strchr(at, '|') - at)) != NULL;
        }
        journal_free(&reader);
        return known;
}

static void commit_one(struct test_journal_fixture *f, struct tale *t, unsigned writer)
{
        char line[64];
        struct journal *j = &t->writers[writer];

        (void) snprintf(line, sizeof(line), "{\"uid\":\"uid-%06u\"}\n", ++t->written);
        text_reset(&f->lines);
        if (journal_lock(j, on_forget, on_line, f, NULL) >= 0 &&
            journal_commit(j, line, strlen(line), NULL) == 0)
                text_printf(&t->truth, "\"uid-%06u\"|", t->written);
}

/* It was written up to some byte when its writer died; the whole of it counts, then, or nothing. */
static void die_writing(struct test_journal_fixture *f, struct tale *t)
{
        CLEANUP(free_p) char *before = NULL, *after = NULL;
        size_t kept = t->truth.size_bytes, from, size;

        if (access(f->file, F_OK) != 0 || access(f->last, F_OK) != 0)
                return;
        before = whole(f->last);
        {
                CLEANUP(free_p) char *bytes = whole(f->file);

                from = strlen(bytes);
        }
        commit_one(f, t, 0);
        after = whole(f->file);
        size = strlen(after);
        if (t->truth.size_bytes == kept || size <= from)
                return;
        t->truth.size_bytes = kept;
        t->truth.data[kept] = '\0';
        put(f->last, before, "we");
        assert_int_equal(truncate(f->file, (off_t) (from + below(t, (unsigned) (size - from)))), 0);
        for (int w = 0; w < 2; w++)
                journal_close(&t->writers[w]);
}

static void harm(struct test_journal_fixture *f, struct tale *t)
{
        CLEANUP(free_p) char *bytes = NULL;
        size_t size, at;

        if (access(f->file, F_OK) != 0)
                return;
        bytes = whole(f->file);
        size = strlen(bytes);
        at = size == 0 ? 0 : below(t, (unsigned) size);
        if (size > 0 && below(t, 2) == 0)
                bytes[at] = (char) (bytes[at] ^ (1 << below(t, 7)));
        else
                size = at;
        put_bytes(f->file, bytes, size);
}

static void any_tale_forgets_nothing(void **state)
{
        struct test_journal_fixture *f = *state;
        struct tale t = { .chance = 1 };
        unsigned committed = 0, stopped = 0;

        for (unsigned round = 0; round < 100; round++) {
                (void) unlink(f->last);
                (void) unlink(f->file);
                text_reset(&t.truth);
                for (int w = 0; w < 2; w++)
                        journal_init(&t.writers[w], f->folder, "j.jsonl");
                for (unsigned step = 0, steps = below(&t, 12); step < steps; step++) {
                        if (below(&t, 4) == 0)
                                die_writing(f, &t);
                        else
                                commit_one(f, &t, below(&t, 2));
                        if (!all_are_known(f, &t))
                                fail_msg("round %u: told '%s', truth '%s'", round, f->lines.data,
                                         t.truth.data);
                }
                if (below(&t, 2) == 0)
                        harm(f, &t);
                commit_one(f, &t, 0);
                if (!all_are_known(f, &t))
                        fail_msg("round %u, harmed: told '%s', truth '%s'", round, f->lines.data,
                                 t.truth.data);
                committed += t.truth.size_bytes > 0;
                stopped += t.writers[0].damage[0] != '\0';
                for (int w = 0; w < 2; w++)
                        journal_free(&t.writers[w]);
        }
        assert_true(committed > 75 && stopped > 20 && stopped < 60);
        text_free(&t.truth);
}

/* clang-format off */
static const struct {
        const char *what, *from, *to, *says;
} damages[] = {
        { "a byte",           "\"b\"", "\"x\"",
          "'j.jsonl' is damaged: the checksum of line 2 is another's" },
        { "a checksum",       "\"checksum\":\"", "\"checksum\":\"zzzzzzzz\"}\n{\"checksum\":\"",
          "'j.jsonl' is damaged: the checksum of line 1 is another's" },
        { "a number",         "\"sequence\":2", "\"sequence\":x",
          "'j.jsonl' is damaged: the checksum of line 2 is another's" },
        { "a number too long", "\"sequence\":2", "\"sequence\":2222222222222222222222222",
          "'j.jsonl' is damaged: the checksum of line 2 is another's" },
        { "two, of which the first is named", "\"b\"", "\"x\",\"checksum\":\"00000000\"}\n{\"y\"",
          "'j.jsonl' is damaged: the checksum of line 2 is another's" },
        { "a line with no number", "{\"b\"", "{\"x\",\"checksum\":\"00000000\"}\n{\"b\"",
          "'j.jsonl' is damaged: the checksum of line 2 is another's" },
        { "an end that is torn", "{\"b\":2", "{\"x\",\"checksum\":\"00000000\"]\n{\"x\":2",
          "'j.jsonl' is damaged: the checksum of line 2 is another's" },
};
/* clang-format on */

static void damage_is_named_and_ends_appending(void **state)
{
        struct test_journal_fixture *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(damages); i++) {
                CLEANUP(free_p) char *bytes = NULL;
                CLEANUP(text_free) struct text changed = { 0 };
                struct err err = { 0 };
                const char *at;

                (void) unlink(f->file);
                (void) unlink(f->last);
                assert_int_equal(append(f, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n", NULL), 0);
                bytes = whole(f->file);
                at = strstr(bytes, damages[i].from);
                assert_non_null(at);
                text_append_bytes(&changed, bytes, (size_t) (at - bytes));
                text_append(&changed, damages[i].to);
                text_append(&changed, at + strlen(damages[i].from));
                journal_free(&f->journal);
                put(f->file, changed.data, "we");
                assert_true(read_lines(f, &err) >= 0);
                assert_string_equal(f->journal.damage, damages[i].says);
                assert_int_equal(append(f, "{\"d\":4}\n", &err), -EBADMSG);
                assert_non_null(strstr(err.msg, "; nothing is appended until the file is restored, or "
                                                "removed by who knows what it said"));
        }
}

static void a_lost_line_is_noticed_by_the_next(void **state)
{
        struct test_journal_fixture *f = *state;
        CLEANUP(free_p) char *bytes = NULL;
        char *second, *third;

        assert_int_equal(append(f, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n{\"d\":4}\n", NULL), 0);
        journal_free(&f->journal);
        bytes = whole(f->file);
        second = strchr(bytes, '\n') + 1;
        third = strchr(second, '\n') + 1;
        memmove(second, third, strlen(third) + 1);
        put(f->file, bytes, "we");
        assert_int_equal(read_lines(f, NULL), 0);
        assert_string_equal(f->journal.damage,
                            "'j.jsonl' is damaged: line 3 follows line 1, what was between them is lost");
        assert_non_null(strstr(f->lines.data, "{\"d\":4")); /* what can be read still counts */
}

/* Somebody saves the file anew below a reader that lives: for a moment it is empty, and then its end is
 * there. */
static void an_end_that_comes_hides_no_other_damage(void **state)
{
        struct test_journal_fixture *f = *state;
        CLEANUP(free_p) char *bytes = NULL;
        const char *second;
        struct err err = { 0 };

        assert_int_equal(append(f, "{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n", NULL), 0);
        bytes = whole(f->file);
        second = strchr(bytes, '\n') + 1;
        put(f->file, "", "we");
        assert_int_equal(read_lines(f, NULL), 1);
        assert_string_equal(f->journal.damage,
                            "'j.jsonl' is damaged: it ends after line 0 of 3, the others are lost");
        put(f->file, second, "ae");
        assert_int_equal(read_lines(f, NULL), 0);
        assert_string_equal(f->journal.damage,
                            "'j.jsonl' is damaged: line 2 follows line 0, what was between them is lost");
        assert_int_equal(append(f, "{\"d\":4}\n", &err), -EBADMSG);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(lines_are_read_as_they_come, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_line_beyond_the_limit_is_left_out, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_torn_line_is_closed_by_the_next_writer, set_up, tear_down),
                cmocka_unit_test_setup_teardown(another_file_is_read_from_its_beginning, set_up, tear_down),
                cmocka_unit_test_setup_teardown(no_byte_that_is_lost_takes_a_line_along, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_is_gone_is_missed, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_line_that_lacks_its_newline_counts_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(any_tale_forgets_nothing, set_up, tear_down),
                cmocka_unit_test_setup_teardown(damage_is_named_and_ends_appending, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_lost_line_is_noticed_by_the_next, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_end_that_comes_hides_no_other_damage, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
