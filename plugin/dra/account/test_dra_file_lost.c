/* DRA file that is lost: where the files vanish, cannot be read or cannot be written, memory stands, and what
 * the owner knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "io/whole_file.h"
#include "plugin/dra/account/dra_file.h"
#include "tests/support/account_fixture.h"

/* What the owner is told, and what it knows of besides. */
struct owner {
        const char *known; /* uids */
        unsigned asked, told;
        size_t kept, more;
        bool put_aside, fails;
        char why[512];
};

static int on_known(void *userdata, struct dra_state *state, struct text *left, struct err *err)
{
        struct owner *owner = userdata;

        owner->asked++;
        if (owner->fails)
                return err_set(err, -EMFILE, "no file may be opened");
        for (const char *c = owner->known; *c != '\0'; c++) {
                struct dra_state_claim claim = { .uid = { *c }, .namespace_ = "ns", .name = "n" };

                if (dra_state_find(state, claim.uid) == NULL)
                        assert_int_equal(dra_state_add(state, &claim), 0);
        }
        assert_non_null(left);
        return 0;
}

static void on_mended(void *userdata, const struct dra_file_mended *mended)
{
        struct owner *owner = userdata;

        owner->told++;
        owner->kept = mended->kept;
        owner->more = mended->more;
        owner->put_aside = mended->put_aside;
        (void) text_copy(owner->why, sizeof(owner->why), mended->why);
}

static struct dra_file_owner of(struct owner *owner)
{
        return (struct dra_file_owner){ .known = on_known, .mended = on_mended, .userdata = owner };
}

/* Somebody clears the folder of a driver that serves. */
static void where_the_files_vanish_memory_stands(void **state)
{
        static const struct {
                const char *what;
                void (*take)(const struct folder *f);
        } rows[] = {
                { "the whole folder", take_folder },
                { "the state", take_whole },
                { "the journal", take_journal },
                { "a part of the journal", cut_journal },
        };
        const struct folder *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct owner owner = { .known = "" };
                const struct dra_file_owner own = of(&owner);
                struct dra_file file;

                assert_int_equal(dra_file_open(&file, f->path, &own, NULL), 0);
                add(&file, "a", "i1");
                add(&file, "b", "i2");
                assert_int_equal(owner.told, 0);
                rows[i].take(f);
                dra_file_refresh(&file);
                expect(f, "ab"); /* for whoever starts now, before anything else is done */
                if (owner.told != 1 || owner.kept != 2 || owner.put_aside ||
                    strstr(owner.why, f->path) == NULL)
                        fail_msg("%s: told %u: %s", rows[i].what, owner.told, owner.why);
                add(&file, "d", "i4");
                rows[i].take(f);
                add(&file, "c", "i3");
                drop(&file, "a");
                expect(f, "bcd");
                drop(&file, "b");
                drop(&file, "c");
                drop(&file, "d");
                dra_file_close(&file);
        }
}

/* Each has it in memory: who is first writes it back, and the other reads that. */
static void one_of_two_writes_back(void **state)
{
        const struct folder *f = *state;
        struct dra_file one, other;

        assert_int_equal(dra_file_open(&one, f->path, NULL, NULL), 0);
        assert_int_equal(dra_file_open(&other, f->path, NULL, NULL), 0);
        add(&one, "a", "i1");
        add(&other, "b", "i2");
        dra_file_refresh(&one);
        take_folder(f);
        dra_file_refresh(&one);
        add(&other, "c", "i3");
        dra_file_refresh(&one);
        add(&one, "d", "i4");
        expect(f, "abcd");
        begin(&other);
        assert_int_equal(other.state.count, 4);
        dra_file_end(&other);
        dra_file_close(&one);
        dra_file_close(&other);
}

static void what_cannot_be_read_any_more_is_put_aside(void **state)
{
        static const struct {
                const char *what;
                bool journal, more; /* else it is overwritten */
                const char *text;
        } rows[] = {
                { "cut to nothing", false, false, "" },
                { "no JSON", false, false, "{\"version\":2,\"claims\":[{\"uid\"" },
                { "of a version to come", false, false, "{\"version\":9,\"claims\":[]}" },
                { "a line that is none", true, true, "{\"add\":[{}]}\n" },
                { "a line of two holders", true, true,
                  "{\"add\":[{\"uid\":\"d\",\"namespace\":\"n\",\"name\":\"d\",\"devices\":[{\"request\":"
                  "\"r\","
                  "\"name\":\"d\",\"id\":\"i1\"}]}]}\n" },
        };
        const struct folder *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct owner owner = { .known = "" };
                const struct dra_file_owner own = of(&owner);
                const char *path = rows[i].journal ? f->journal : f->whole;
                char aside[128];
                struct dra_file file;
                FILE *broken;

                assert_int_equal(dra_file_open(&file, f->path, &own, NULL), 0);
                add(&file, "a", "i1");
                add(&file, "b", "i2");
                broken = fopen(path, rows[i].more ? "ae" : "we");
                assert_non_null(broken);
                assert_true(fputs(rows[i].text, broken) >= 0 && fclose(broken) == 0);
                begin(&file);
                assert_int_equal(file.state.count, 2);
                dra_file_end(&file);
                expect(f, "ab");
                (void) text_format(aside, sizeof(aside), "%s.broken", path);
                if (owner.told != 1 || owner.kept != 2 || !owner.put_aside ||
                    strstr(owner.why, path) == NULL || unlink(aside) < 0)
                        fail_msg("%s: told %u: %s", rows[i].what, owner.told, owner.why);
                drop(&file, "a");
                add(&file, "c", "i1");
                expect(f, "bc");
                drop(&file, "b");
                drop(&file, "c");
                dra_file_close(&file);
        }
}

/* What is written back is what was saved. */
static void what_was_not_saved_is_not_written_back(void **state)
{
        static const char *const ids[] = { "i9" };
        const struct folder *f = *state;
        struct dra_file file;
        struct err err = { 0 };

        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
        add(&file, "a", "i1");
        add(&file, "b", "i2");
        begin(&file);
        change(&file, "c", "i3");
        dra_file_remove(&file, "a");
        take_whole(f);
        dra_file_end(&file);
        assert_null(dra_state_find(&file.state, "c"));
        dra_file_refresh(&file);
        expect(f, "ab");
        begin(&file);
        dra_file_remove(&file, "b");
        assert_int_equal(dra_file_give(&file, ids, 1, 5000000, 0), 0);
        take_folder(f);
        assert_true(dra_file_save(&file, &err) < 0);
        assert_non_null(strstr(err.msg, f->path));
        assert_true(dra_state_find(&file.state, "b") != NULL && file.state.grants.count == 0);
        dra_file_end(&file);
        dra_file_refresh(&file);
        expect(f, "ab");
        dra_file_close(&file);
}

/* At the start memory is empty: what the owner knows is all there is. */
static void a_start_without_an_account_asks_the_owner(void **state)
{
        static const struct {
                const char *what, *text; /* NULL = there is no file */
                bool put_aside;
        } rows[] = {
                { "no file", NULL, false },
                { "no JSON", "{", true },
                { "of a version to come", "{\"version\":9}", true },
                { "a folder", "/", true },
        };
        const struct folder *f = *state;
        struct owner nobody = { .known = "" };
        const struct dra_file_owner owned = of(&nobody);
        struct dra_file file;

        assert_int_equal(dra_file_open(&file, f->path, &owned, NULL), 0);
        begin(&file);
        dra_file_end(&file);
        dra_file_close(&file);
        assert_true(nobody.asked == 1 && nobody.told == 0 &&
                    access(f->whole, F_OK) < 0); /* the first there is */
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct owner owner = { .known = "cd" };
                const struct dra_file_owner own = of(&owner);

                if (rows[i].text != NULL && rows[i].text[0] == '/')
                        assert_int_equal(mkdir(f->whole, 0700), 0);
                else if (rows[i].text != NULL)
                        assert_int_equal(
                                whole_file_write(f->whole, rows[i].text, strlen(rows[i].text), 0600, 0, NULL),
                                0);
                assert_int_equal(dra_file_open(&file, f->path, &own, NULL), 0);
                if (owner.told != 1 || owner.kept != 0 || owner.more != 2 ||
                    owner.put_aside != rows[i].put_aside)
                        fail_msg("%s: told %u: %s", rows[i].what, owner.told, owner.why);
                add(&file, "a", "i1");
                expect(f, "acd");
                dra_file_close(&file);
                owner = (struct owner){ .known = "b" };
                assert_int_equal(dra_file_open(&file, f->path, &own, NULL), 0);
                assert_true(owner.asked == 0 && file.state.count == 3); /* there is one */
                dra_file_close(&file);
                take_whole(f);
        }
}

/* What stood in it alone the owner knows. A state of a version that began no journal says nothing of it. */
static void a_start_without_a_journal_asks_the_owner(void **state)
{
        static void (*const takes[])(const struct folder *f) = { take_journal, cut_journal };
        const struct folder *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(takes); i++) {
                struct owner owner = { .known = "b" }, nobody = { .known = "" };
                const struct dra_file_owner own = of(&owner), none = of(&nobody);
                struct dra_file file;
                struct stat before, after;

                assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
                add(&file, "a", "i1");
                add(&file, "b", "i2");
                dra_file_close(&file);
                takes[i](f);
                assert_int_equal(truncate(f->journal, 0), i == 0 ? -1 : 0);
                assert_int_equal(stat(f->whole, &before), 0);
                assert_int_equal(dra_file_open(&file, f->path, &none, NULL), 0);
                assert_int_equal(stat(f->whole, &after), 0);
                assert_true(nobody.asked == 1 && nobody.told == 0 && before.st_ino == after.st_ino);
                dra_file_close(&file);
                assert_int_equal(dra_file_open(&file, f->path, &own, NULL), 0);
                if (owner.told != 1 || owner.kept != 1 || owner.more != 1 || owner.put_aside ||
                    strstr(owner.why, f->journal) == NULL)
                        fail_msg("told %u: %s", owner.told, owner.why);
                expect(f, "ab");
                dra_file_close(&file);
                owner.asked = 0;
                assert_int_equal(dra_file_open(&file, f->path, &own, NULL), 0);
                assert_int_equal(owner.asked, 0);
                drop(&file, "a");
                drop(&file, "b");
                dra_file_close(&file);
        }
}

/* Nothing is written, and nobody gets anything, until the owner can say. */
static void an_owner_who_cannot_say_is_asked_again(void **state)
{
        const struct folder *f = *state;
        struct owner owner = { .known = "", .fails = true };
        const struct dra_file_owner own = of(&owner);
        struct dra_file file;

        assert_int_equal(dra_file_open(&file, f->path, NULL, NULL), 0);
        add(&file, "a", "i1");
        file.owner = own;
        take_whole(f);
        assert_int_equal(dra_file_begin(&file, DRA_FILE_WAIT_USEC, NULL), -EMFILE);
        assert_true(access(f->whole, F_OK) < 0 && owner.told == 0 && file.state.count == 1);
        owner.fails = false;
        owner.known = "b";
        begin(&file);
        dra_file_end(&file);
        assert_true(owner.asked == 2 && owner.told == 1 && owner.more == 1);
        dra_file_close(&file);
        expect(f, "ab");
}

/* A start that cannot write, as on a full disk. */
static void a_start_that_cannot_write_keeps_what_it_knows(void **state)
{
        static const char *const texts[] = { NULL, "{" };
        const struct folder *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct owner owner = { .known = "cd" };
                const struct dra_file_owner own = of(&owner);
                const struct rlimit none = { .rlim_cur = 0, .rlim_max = RLIM_INFINITY },
                                    any = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
                struct dra_file file;
                struct err err = { 0 };

                if (texts[i] != NULL)
                        assert_int_equal(
                                whole_file_write(f->whole, texts[i], strlen(texts[i]), 0600, 0, NULL), 0);
                assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &none) == 0);
                assert_int_equal(dra_file_open(&file, f->path, &own, NULL), 0);
                assert_int_equal(file.state.count, 2);
                assert_int_equal(dra_file_begin(&file, DRA_FILE_WAIT_USEC, &err), -EFBIG);
                assert_non_null(strstr(err.msg, f->path));
                assert_true(owner.told == 0 && file.state.count == 2 && file.lock == -1);
                assert_int_equal(setrlimit(RLIMIT_FSIZE, &any), 0);
                begin(&file);
                dra_file_end(&file);
                assert_true(owner.told == 1 && owner.kept == 0 && owner.more == 2);
                expect(f, "cd");
                dra_file_close(&file);
                take_whole(f);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(where_the_files_vanish_memory_stands, make, clear),
                cmocka_unit_test_setup_teardown(one_of_two_writes_back, make, clear),
                cmocka_unit_test_setup_teardown(what_cannot_be_read_any_more_is_put_aside, make, clear),
                cmocka_unit_test_setup_teardown(what_was_not_saved_is_not_written_back, make, clear),
                cmocka_unit_test_setup_teardown(a_start_without_an_account_asks_the_owner, make, clear),
                cmocka_unit_test_setup_teardown(a_start_without_a_journal_asks_the_owner, make, clear),
                cmocka_unit_test_setup_teardown(an_owner_who_cannot_say_is_asked_again, make, clear),
                cmocka_unit_test_setup_teardown(a_start_that_cannot_write_keeps_what_it_knows, make, clear),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
