/* A journal that cannot be opened, read, written or synced: what is said, and that the file is as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "store/directory/journal.h"
#include "store/directory/test_journal.h"

static void what_cannot_be_opened_says_why(void **state)
{
        struct test_journal_fixture *f = *state;
        struct err err = { 0 };

        assert_int_equal(symlink("/etc/passwd", f->file), 0);
        assert_int_equal(read_lines(f, &err), -ELOOP);
        assert_string_equal(err.msg, "open 'j.jsonl': Too many levels of symbolic links");
        assert_int_equal(append(f, "", &err), -ELOOP);
}

/* The journal's descriptor is another's from here on. */
static void hand_over(struct test_journal_fixture *f, int flags)
{
        int fd = open(f->file, flags | O_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(dup2(fd, f->journal.fd), f->journal.fd);
        (void) close(fd);
}

static void what_cannot_be_read_or_written_says_why(void **state)
{
        struct test_journal_fixture *f = *state;
        struct err err = { 0 };

        put(f->file, "{\"a\":1}\n{\"torn", "we");
        assert_int_equal(read_lines(f, NULL), 0);
        hand_over(f, O_WRONLY);
        assert_int_equal(read_lines(f, &err), -EBADF);
        assert_string_equal(err.msg, "read 'j.jsonl': Bad file descriptor");
        assert_int_equal(append(f, "{\"b\":2}\n", &err), -EBADF); /* what is not read is not appended to */
        assert_string_equal(err.msg, "read 'j.jsonl': Bad file descriptor");
        hand_over(f, O_RDONLY);
        assert_int_equal(append(f, "{\"b\":2}\n", &err), -EBADF); /* cannot even close the torn line */
        assert_string_equal(err.msg, "append to 'j.jsonl': Bad file descriptor");
        hand_over(f, O_RDWR | O_APPEND);
        assert_int_equal(append(f, "{\"b\":2}\n", NULL), 0);
        hand_over(f, O_RDONLY);
        assert_int_equal(append(f, "{\"c\":3}\n", &err), -EBADF);
        assert_string_equal(err.msg, "append to 'j.jsonl': Bad file descriptor, and cutting it back: "
                                     "Invalid argument");
        hand_over(f, O_PATH);
        assert_int_equal(append(f, "{\"c\":3}\n", &err), -EBADF);
        assert_string_equal(err.msg, "lock 'j.jsonl': Bad file descriptor");
}

/* No file may become larger than that. */
static int append_within(struct test_journal_fixture *f, rlim_t bytes, const char *line, struct err *err)
{
        struct rlimit old;
        int r;

        assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
        (void) signal(SIGXFSZ, SIG_IGN);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ bytes, old.rlim_max }), 0);
        r = append(f, line, err);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        return r;
}

static void a_write_that_fails_leaves_all_as_it_was(void **state)
{
        struct test_journal_fixture *f = *state;
        CLEANUP(free_p) char *before = NULL, *after = NULL;
        struct err err = { 0 };

        assert_int_equal(append_within(f, 60, "{\"a\":1}\n", &err), -EFBIG); /* half of what tells its end */
        assert_int_equal(append(f, "{\"a\":1}\n", NULL), 0);
        before = whole(f->file);
        assert_in_range(strlen(before), 1, 60);
        assert_int_equal(append_within(f, strlen(before) + 10, "{\"b\":2}\n", &err), -EFBIG);
        assert_string_equal(err.msg, "append to 'j.jsonl': File too large");
        after = whole(f->file);
        assert_string_equal(after, before);
        assert_int_equal(append(f, "{\"b\":2}\n", NULL), 0); /* the next is the second */
        assert_int_equal(f->journal.sequence, 2);
}

/* Who may not write reads all the same. Root may: it becomes another. */
static void who_may_only_read_reads(void **state)
{
        struct test_journal_fixture *f = *state;
        struct err err = { 0 };
        uid_t own = geteuid();

        put(f->file, "{\"a\":1}\n", "we");
        assert_int_equal(chmod(f->path, 0755) + chmod(f->file, 0444), 0);
        if (own == 0)
                assert_int_equal(seteuid(65534), 0);
        assert_int_equal(read_lines(f, &err), 0);
        journal_close(&f->journal);
        assert_int_equal(append(f, "{\"b\":2}\n", &err), -EACCES);
        if (own == 0)
                assert_int_equal(seteuid(own), 0);
        assert_string_equal(err.msg, "open 'j.jsonl': Permission denied");
}

/* The line is whole but for its newline, and is not what was written. */
static void a_last_line_of_another_checksum_is_not_told(void **state)
{
        struct test_journal_fixture *f = *state;
        CLEANUP(free_p) char *bytes = NULL;

        assert_int_equal(append(f, "{\"a\":1}\n{\"b\":2}\n", NULL), 0);
        journal_free(&f->journal);
        bytes = whole(f->file);
        *strstr(bytes, "\"b\"") = '\'';
        bytes[strlen(bytes) - 1] = '\0';
        put(f->file, bytes, "we");
        assert_int_equal(read_lines(f, NULL), 0);
        assert_null(strstr(f->lines.data, "b"));
        assert_non_null(strstr(f->journal.damage, "it ends after line 1 of 2"));
}

/* The journal is as it was where its end cannot be told, or where nobody knows whether a line is on the disk.
 */
static void what_is_not_whole_is_cut_back(void **state)
{
        struct test_journal_fixture *f = *state;
        CLEANUP(free_p) char *bytes = NULL;
        struct err err = { 0 };
        int ends[2];

        assert_int_equal(journal_lock(&f->journal, on_forget, on_line, f, &err), 0);
        assert_int_equal(mkdir(f->last, 0755), 0);
        assert_int_equal(journal_commit(&f->journal, "{\"a\":1}\n", 8, &err), -EISDIR);
        assert_string_equal(err.msg, "append to 'j.jsonl': Is a directory");
        assert_int_equal(rmdir(f->last), 0);
        bytes = whole(f->file);
        assert_string_equal(bytes, "");
        assert_int_equal(journal_lock(&f->journal, on_forget, on_line, f, &err), 0);
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(dup2(ends[1], f->journal.fd), f->journal.fd); /* what cannot be synced */
        assert_int_equal(journal_commit(&f->journal, "{\"a\":1}\n", 8, &err), -EINVAL);
        assert_string_equal(err.msg,
                            "append to 'j.jsonl': Invalid argument, and cutting it back: Invalid argument");
        assert_int_equal(close(ends[0]) + close(ends[1]), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_cannot_be_opened_says_why, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_cannot_be_read_or_written_says_why, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_write_that_fails_leaves_all_as_it_was, set_up, tear_down),
                cmocka_unit_test_setup_teardown(who_may_only_read_reads, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_last_line_of_another_checksum_is_not_told, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(what_is_not_whole_is_cut_back, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
