/* DRA file: a state written whole and a journal that goes on from it: what was saved is read by whoever opens
 * the folder, what was not is by nobody, wherever its writer died. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/read_file.h"
#include "io/whole_file.h"
#include "plugin/dra/account/dra_file.h"
#include "tests/support/account_fixture.h"

static void the_first_save_is_whole_and_the_rest_is_appended(void **state)
{
        const struct folder *f = *state;
        struct dra_file file;
        struct stat before, after;
        static const char *const ids[] = { "i9" };

        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
        add(&file, "a", "i1");
        assert_in_range(size_of(f->journal), 1, 63); /* its first line */
        assert_int_equal(stat(f->whole, &before), 0);
        add(&file, "b", "i2");
        drop(&file, "a");
        drop(&file, "nobody");
        begin(&file);
        assert_int_equal(dra_file_give(&file, ids, 1, 5000000, 0), 0);
        assert_int_equal(dra_file_save(&file, NULL), 0);
        dra_file_end(&file);
        assert_int_equal(stat(f->whole, &after), 0);
        assert_int_equal(before.st_ino, after.st_ino);
        assert_true(size_of(f->journal) > 63);
        expect(f, "b");
        dra_file_close(&file);
        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
        assert_true(grants_has(&file.state.grants, "i9", 0) && !grants_has(&file.state.grants, "i2", 0));
        add(&file, "c", "i1"); /* of this process the first: the journal says nothing any more */
        expect(f, "bc");
        dra_file_close(&file);
}

static void one_sees_what_the_other_saved(void **state)
{
        const struct folder *f = *state;
        struct dra_file one, other;
        uint64_t revision;

        assert_int_equal(dra_file_open(&one, f->path, NULL, NULL), 0);
        assert_int_equal(dra_file_open(&other, f->path, NULL, NULL), 0);
        add(&one, "a", "i1");
        add(&one, "b", "i2");
        dra_file_refresh(&other);
        assert_non_null(dra_state_holder(&other.state, "i2"));
        revision = other.revision;
        dra_file_refresh(&other);
        assert_int_equal(other.revision, revision); /* nothing is new */
        drop(&other, "a");
        add(&other, "c", "i1");
        begin(&one);
        assert_string_equal(dra_state_holder(&one.state, "i1")->uid, "c");
        dra_file_end(&one);
        dra_file_close(&one);
        dra_file_close(&other);
        expect(f, "bc");
}

/* For each number of its bytes: what its writer had on disk when it died. */
static void a_line_that_is_cut_off_was_never_written(void **state)
{
        const struct folder *f = *state;
        CLEANUP(free_p) char *bytes = NULL;
        struct dra_file file;
        size_t before, size = 0;

        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
        add(&file, "a", "i1");
        add(&file, "b", "i2");
        before = size_of(f->journal);
        add(&file, "c", "i3");
        dra_file_close(&file);
        assert_int_equal(read_file(f->journal, DRA_JOURNAL_MAX_BYTES, &bytes, &size, NULL), 0);
        for (size_t cut = 0; cut < size; cut++) {
                assert_int_equal(truncate(f->journal, (off_t) cut), 0);
                expect(f, cut < before ? "a" : "ab");
                assert_int_equal(whole_file_write(f->journal, bytes, size, 0600, 0, NULL), 0);
        }
        expect(f, "abc");
        assert_int_equal(truncate(f->journal, (off_t) size - 1), 0);
        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
        file.settled = true; /* as one who goes on with the journal of a dead one */
        add(&file, "d", "i3");
        expect(f, "abd");
        dra_file_close(&file);
}

static void a_journal_of_another_state_says_nothing(void **state)
{
        const struct folder *f = *state;
        struct dra_file file;

        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
        add(&file, "a", "i1");
        add(&file, "b", "i2");
        dra_file_close(&file);
        assert_int_equal(unlink(f->whole), 0); /* somebody took it away: nothing is prepared */
        expect(f, "");
        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
        add(&file, "c", "i1");
        expect(f, "c");
        add(&file, "d", "i3");
        expect(f, "cd");
        dra_file_close(&file);
}

static void a_long_journal_is_taken_up(void **state)
{
        const struct folder *f = *state;
        struct dra_file file;
        size_t longest = 0, times = 0, last = 0;

        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
        add(&file, "a", "i1");
        for (unsigned i = 0; i < 2000; i++) {
                size_t now;

                add(&file, "b", "i2");
                drop(&file, "b");
                now = file.journal.read_bytes;
                longest = now > longest ? now : longest;
                times += now < last;
                last = now;
        }
        assert_in_range(longest, 1000, DRA_JOURNAL_MAX_BYTES);
        assert_in_range(times, 1, 20);
        dra_file_close(&file);
        expect(f, "a");
}

static void what_is_not_saved_is_forgotten(void **state)
{
        const struct folder *f = *state;
        struct dra_file file;

        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
        add(&file, "a", "i1");
        begin(&file);
        change(&file, "b", "i2");
        dra_file_end(&file);
        dra_file_refresh(&file);
        assert_null(dra_state_find(&file.state, "b"));
        begin(&file);
        change(&file, "c", "i1"); /* nobody looked whether it is free */
        assert_int_equal(dra_file_save(&file, NULL), 0);
        dra_file_end(&file);
        dra_file_close(&file);
        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0); /* put aside */
        assert_int_equal(file.state.count, 0);
        expect(f, "");
        dra_file_close(&file);
}

/* Between begin and save: what was in the journal is in nobody's file any more. */
static void a_journal_that_is_cut_under_the_lock_is_not_appended_to(void **state)
{
        static void (*const takes[])(const struct folder *f) = { take_journal, cut_journal };
        const struct folder *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(takes); i++) {
                struct dra_file file;

                assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
                add(&file, "a", "i1");
                add(&file, "b", "i2");
                begin(&file);
                change(&file, "c", "i3");
                takes[i](f);
                assert_int_equal(dra_file_save(&file, NULL), 0);
                dra_file_end(&file);
                expect(f, "abc");
                add(&file, "d", "i4");
                expect(f, "abcd");
                for (const char *c = "abcd"; *c != '\0'; c++)
                        drop(&file, (const char[]){ *c, '\0' });
                dra_file_close(&file);
        }
}

static void *take_and_let_go(void *data)
{
        struct dra_file *one = data;
        struct folder f;

        (void) usleep(30000); /* the other one waits */
        (void) text_copy(f.path, sizeof(f.path), one->directory);
        (void) text_format(f.whole, sizeof(f.whole), "%s/" DRA_FILE_NAME, f.path);
        (void) text_format(f.journal, sizeof(f.journal), "%s/" DRA_JOURNAL_NAME, f.path);
        take_folder(&f);
        dra_file_end(one);
        return NULL;
}

/* The lock that was waited for is nobody's any more. */
static void a_lock_that_was_taken_away_is_taken_anew(void **state)
{
        const struct folder *f = *state;
        struct dra_file one, other;
        struct stat ours, theirs;
        char path[96];
        pthread_t thread;

        (void) text_format(path, sizeof(path), "%s/" DRA_FILE_LOCK, f->path);
        assert_int_equal(dra_file_open(&one, f->path, NULL, NULL), 0);
        add(&one, "a", "i1");
        assert_int_equal(dra_file_open(&other, f->path, NULL, NULL), 0);
        begin(&one);
        assert_int_equal(pthread_create(&thread, NULL, take_and_let_go, &one), 0);
        assert_int_equal(dra_file_begin(&other, 10 * DRA_FILE_WAIT_LAST_USEC, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(fstat(other.lock, &ours) == 0 && stat(path, &theirs) == 0);
        assert_int_equal(ours.st_ino, theirs.st_ino);
        assert_int_equal(dra_file_begin(&one, 1000, NULL), -EBUSY);
        dra_file_end(&other);
        expect(f, "a");
        dra_file_close(&one);
        dra_file_close(&other);
}

static void a_lock_is_waited_for_as_long_as_was_said(void **state)
{
        const struct folder *f = *state;
        struct dra_file one, other;
        struct err err = { 0 };

        assert_int_equal(dra_file_open(&one, f->path, NULL, NULL), 0);
        assert_int_equal(dra_file_open(&other, f->path, NULL, NULL), 0);
        begin(&one);
        assert_int_equal(dra_file_begin(&other, 1000, &err), -EBUSY);
        assert_non_null(strstr(err.msg, "another instance of the agent has it"));
        dra_file_end(&one);
        begin(&other);
        dra_file_close(&one);
        dra_file_close(&other);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_first_save_is_whole_and_the_rest_is_appended, make,
                                                clear),
                cmocka_unit_test_setup_teardown(one_sees_what_the_other_saved, make, clear),
                cmocka_unit_test_setup_teardown(a_line_that_is_cut_off_was_never_written, make, clear),
                cmocka_unit_test_setup_teardown(a_journal_of_another_state_says_nothing, make, clear),
                cmocka_unit_test_setup_teardown(a_long_journal_is_taken_up, make, clear),
                cmocka_unit_test_setup_teardown(what_is_not_saved_is_forgotten, make, clear),
                cmocka_unit_test_setup_teardown(a_journal_that_is_cut_under_the_lock_is_not_appended_to, make,
                                                clear),
                cmocka_unit_test_setup_teardown(a_lock_that_was_taken_away_is_taken_anew, make, clear),
                cmocka_unit_test_setup_teardown(a_lock_is_waited_for_as_long_as_was_said, make, clear),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
