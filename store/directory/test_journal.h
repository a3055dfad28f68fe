/* A journal in a folder of its own, for its tests: set_up() and tear_down() are cmocka's, `state` is the
 * fixture. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/directory/journal.h"

struct test_journal_fixture {
        char path[64], file[80], last[96];
        int folder;
        struct journal journal;
        struct text lines; /* what was read, each with '|' behind it; "!" where all was to be forgotten */
};

static inline void on_line(void *userdata, const char *line, size_t size_bytes)
{
        struct test_journal_fixture *f = userdata;

        text_printf(&f->lines, "%.*s|", (int) (size_bytes < 24 ? size_bytes : 24), line);
}

static inline void on_forget(void *userdata)
{
        struct test_journal_fixture *f = userdata;

        text_append(&f->lines, "!");
}

static inline int set_up(void **state)
{
        struct test_journal_fixture *f = calloc(1, sizeof(*f));

        (void) text_copy(f->path, sizeof(f->path), "/tmp/remuda-journal-XXXXXX");
        assert_non_null(mkdtemp(f->path));
        (void) text_format(f->file, sizeof(f->file), "%s/j.jsonl", f->path);
        (void) text_format(f->last, sizeof(f->last), "%s/.j.jsonl.last", f->path);
        f->folder = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        journal_init(&f->journal, f->folder, "j.jsonl");
        *state = f;
        return 0;
}

static inline int tear_down(void **state)
{
        struct test_journal_fixture *f = *state;

        journal_free(&f->journal);
        text_free(&f->lines);
        (void) unlink(f->file);
        (void) unlink(f->last);
        (void) close(f->folder);
        (void) rmdir(f->path);
        free(f);
        return 0;
}

static inline void put(const char *path, const char *bytes, const char *mode)
{
        CLEANUP(fclose_p) FILE *file = fopen(path, mode);

        assert_non_null(file);
        assert_true(fputs(bytes, file) >= 0);
}

static inline char *whole(const char *path)
{
        CLEANUP(fclose_p) FILE *file = fopen(path, "re");
        char *bytes = calloc(1, 4096);

        assert_non_null(file);
        assert_true(fread(bytes, 1, 4095, file) < 4095);
        return bytes;
}

static inline int read_lines(struct test_journal_fixture *f, struct err *err)
{
        text_reset(&f->lines);
        return journal_read(&f->journal, on_forget, on_line, f, err);
}

static inline int append(struct test_journal_fixture *f, const char *lines, struct err *err)
{
        int r;

        text_reset(&f->lines);
        r = journal_lock(&f->journal, on_forget, on_line, f, err);
        return r < 0 ? r : journal_commit(&f->journal, lines, strlen(lines), err);
}
