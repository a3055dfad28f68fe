/* Account fixture: a folder with the files of a DRA driver's account, which tests change, take away and read.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "plugin/dra/account/dra_file.h"

struct folder {
        char path[64], whole[96], journal[96];
};

static inline int make(void **state)
{
        struct folder *f = calloc(1, sizeof(*f));

        assert_non_null(f);
        (void) text_copy(f->path, sizeof(f->path), "/tmp/remuda-dra-file-XXXXXX");
        assert_non_null(mkdtemp(f->path));
        (void) text_format(f->whole, sizeof(f->whole), "%s/" DRA_FILE_NAME, f->path);
        (void) text_format(f->journal, sizeof(f->journal), "%s/" DRA_JOURNAL_NAME, f->path);
        *state = f;
        return 0;
}

static inline int clear(void **state)
{
        static const char *const names[] = { DRA_FILE_NAME, DRA_JOURNAL_NAME, DRA_FILE_LOCK,
                                             DRA_FILE_NAME ".broken", DRA_JOURNAL_NAME ".broken" };
        struct folder *f = *state;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char path[128];

                (void) text_format(path, sizeof(path), "%s/%s", f->path, names[i]);
                (void) remove(path);
        }
        assert_int_equal(rmdir(f->path), 0);
        free(f);
        return 0;
}

static inline void begin(struct dra_file *file)
{
        assert_int_equal(dra_file_begin(file, DRA_FILE_WAIT_USEC, NULL), 0);
}

static inline void change(struct dra_file *file, const char *uid, const char *id)
{
        struct dra_state_claim claim = { .device_count = 1 };

        claim.devices = calloc(2, sizeof(*claim.devices));
        assert_non_null(claim.devices);
        (void) text_copy(claim.uid, sizeof(claim.uid), uid);
        (void) text_copy(claim.namespace_, sizeof(claim.namespace_), "ns");
        (void) text_copy(claim.name, sizeof(claim.name), uid);
        (void) text_copy(claim.devices[0].request, sizeof(claim.devices[0].request), "gpu");
        (void) text_copy(claim.devices[0].name, sizeof(claim.devices[0].name), "d");
        (void) text_copy(claim.devices[0].id, sizeof(claim.devices[0].id), id);
        assert_int_equal(dra_file_add(file, &claim), 0);
}

static inline void add(struct dra_file *file, const char *uid, const char *id)
{
        begin(file);
        change(file, uid, id);
        assert_int_equal(dra_file_save(file, NULL), 0);
        dra_file_end(file);
}

static inline void drop(struct dra_file *file, const char *uid)
{
        begin(file);
        dra_file_remove(file, uid);
        assert_int_equal(dra_file_save(file, NULL), 0);
        dra_file_end(file);
}

/* The uids that a folder has, in the order of the alphabet, for whoever opens it now. */
static inline void expect(const struct folder *f, const char *wanted)
{
        struct dra_state state;
        char got[64] = "";
        struct err err = { 0 };

        assert_int_equal(dra_file_read(f->path, &state, &err), 0);
        for (const char *c = "abcd"; *c != '\0'; c++) {
                const char uid[2] = { *c, '\0' };

                if (dra_state_find(&state, uid) != NULL)
                        strncat(got, uid, sizeof(got) - strlen(got) - 1);
        }
        dra_state_free(&state);
        assert_string_equal(got, wanted);
}

static inline size_t size_of(const char *path)
{
        struct stat st;

        return stat(path, &st) == 0 ? (size_t) st.st_size : 0;
}
static inline void take_folder(const struct folder *f)
{
        char lock[96];

        (void) text_format(lock, sizeof(lock), "%s/" DRA_FILE_LOCK, f->path);
        (void) unlink(f->whole);
        (void) unlink(f->journal);
        (void) unlink(lock);
        assert_int_equal(rmdir(f->path), 0);
}

static inline void take_whole(const struct folder *f)
{
        assert_int_equal(unlink(f->whole), 0);
}

static inline void take_journal(const struct folder *f)
{
        assert_int_equal(unlink(f->journal), 0);
}

static inline void cut_journal(const struct folder *f)
{
        assert_int_equal(truncate(f->journal, 30), 0);
}
