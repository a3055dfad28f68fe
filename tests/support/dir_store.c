/* See dir_store.h. The store runs in the test's own loop; files are written as other programs write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "tests/support/dir_store.h"

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct dir_store *f = userdata;
        char name[600];

        (void) text_format(name, sizeof(name), "%s %s", store_kind_name(kind), key);
        f->deliveries++;
        if (object == NULL)
                assert_int_equal(json_object_del(f->objects, name), 0); /* only what was there can go */
        else
                (void) json_object_set_new(f->objects, name, json_deep_copy(object));
}

static void on_synced(void *userdata, enum store_kind kind)
{
        struct dir_store *f = userdata;

        f->synced |= 1u << kind;
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        struct dir_store *f = userdata;

        (void) kind;
        (void) json_array_append_new(f->troubles, json_string(sentence));
}

void dir_store_answer(void *userdata, int result, const char *sentence)
{
        struct dir_store *f = userdata;

        f->answers++;
        f->result = result;
        (void) text_copy(f->sentence, sizeof(f->sentence), sentence);
}

void dir_store_run_for(struct dir_store *f, uint64_t usec)
{
        uint64_t now = clock_monotonic_usec(), end = now + usec;

        for (; now < end; now = clock_monotonic_usec())
                (void) sd_event_run(f->loop, end - now);
        for (int left = 1000; left > 0 && sd_event_run(f->loop, 0) > 0; left--)
                ; /* what came while the machine was busy with others */
}

void dir_store_settle(struct dir_store *f)
{
        /* what a file or a bind begins is on the loop at once, and goes on there in steps of a few
         * milliseconds */
        for (int left = 1000; left > 0 && sd_event_run(f->loop, 40000) > 0; left--)
                ;
}

void dir_store_open(struct dir_store *f)
{
        char spec[80];
        struct err err = { 0 };
        struct store_options options = { .spec = spec,
                                         .kinds = (1u << STORE_KIND_COUNT) - 1,
                                         .changed = on_changed,
                                         .synced = on_synced,
                                         .trouble = on_trouble,
                                         .userdata = f };

        (void) text_format(spec, sizeof(spec), "dir:%s", f->path);
        if (store_open(f->loop, &options, &f->store, &err) < 0)
                fail_msg("%s", err.msg);
        assert_int_equal(f->deliveries, 0); /* never from within the call */
        dir_store_settle(f);
}

struct dir_store *dir_store_new(void)
{
        struct dir_store *f = calloc(1, sizeof(*f));

        (void) text_copy(f->path, sizeof(f->path), "/tmp/remuda-store-XXXXXX");
        assert_non_null(mkdtemp(f->path));
        assert_int_equal(loop_new(&f->loop, NULL), 0);
        f->objects = json_object();
        f->troubles = json_array();
        return f;
}

void dir_store_close(struct dir_store *f)
{
        store_close(f->store);
        f->store = NULL;
        (void) json_object_clear(f->objects);
        f->deliveries = f->synced = 0;
}

void dir_store_free(struct dir_store *f)
{
        char command[100];

        store_close(f->store);
        sd_event_unref(f->loop);
        json_decref(f->objects);
        json_decref(f->troubles);
        (void) text_format(command, sizeof(command), "rm -rf %s", f->path);
        assert_int_equal(system(command), 0);
        free(f);
}

void dir_store_write_bytes(struct dir_store *f, const char *name, const char *bytes, const char *mode)
{
        char path[200];
        FILE *file;

        (void) text_format(path, sizeof(path), "%s/%s", f->path, name);
        file = fopen(path, mode);
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, strlen(bytes), file), strlen(bytes));
        assert_int_equal(fclose(file), 0);
}

void dir_store_write(struct dir_store *f, const char *name, const char *bytes)
{
        dir_store_write_bytes(f, name, bytes, "w");
}

void dir_store_remove(struct dir_store *f, const char *name)
{
        char path[200];

        (void) text_format(path, sizeof(path), "%s/%s", f->path, name);
        assert_int_equal(unlink(path), 0);
}

char *dir_store_read(struct dir_store *f, const char *name)
{
        char path[200];
        char *bytes = calloc(1, 65536);
        FILE *file;

        (void) text_format(path, sizeof(path), "%s/%s", f->path, name);
        file = fopen(path, "r");
        if (file != NULL) {
                bytes[fread(bytes, 1, 65535, file)] = 0;
                (void) fclose(file);
        }
        return bytes;
}

const char *dir_store_field(struct dir_store *f, const char *object, const char *path)
{
        const json_t *value = json_object_get(f->objects, object);
        char part[64];

        while (value != NULL && *path != '\0') {
                size_t length = strcspn(path, "/");

                (void) text_format(part, sizeof(part), "%.*s", (int) length, path);
                value = json_object_get(value, part);
                path += length + (path[length] == '/');
        }
        return json_is_string(value) ? json_string_value(value) : value != NULL ? "?" : "";
}

bool dir_store_has(struct dir_store *f, const char *object)
{
        return json_object_get(f->objects, object) != NULL;
}

bool dir_store_said(struct dir_store *f, const char *part)
{
        size_t index;
        json_t *sentence;

        json_array_foreach(f->troubles, index,
                           sentence) if (strstr(json_string_value(sentence), part) != NULL) return true;
        return false;
}

int dir_store_bind(struct dir_store *f, const char *name, const char *uid, const char *node)
{
        struct store_binding binding = { .namespace_ = "default", .name = name, .uid = uid, .node = node };
        int before = f->answers;

        store_bind(f->store, &binding, dir_store_answer, f);
        assert_int_equal(f->answers, before);
        for (int tries = 0; tries < 300 && f->answers == before; tries++) /* the machine may be busy */
                dir_store_settle(f);
        assert_int_equal(f->answers, before + 1);
        return f->result;
}
