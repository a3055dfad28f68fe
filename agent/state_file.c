#include "agent/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json/json_field.h"
#include "base/text.h"

#define STATE_VERSION 1

/* --- saving
 * -------------------------------------------------------------------------------------------------- */

static bool matters(const struct device_record *record)
{
        const struct health *h = &record->health;

        return record->judged && record->present &&
               (h->turn_count > 0 || h->waiting || h->bad || h->verdict == HEALTH_UNHEALTHY ||
                h->verdict == HEALTH_QUARANTINED || h->verdict == HEALTH_DEGRADED);
}

static json_t *encode_device(const struct device_record *record)
{
        const struct health *h = &record->health;
        json_t *turns = json_array();

        for (size_t i = 0; i < h->turn_count; i++)
                (void) json_array_append_new(turns, json_integer((json_int_t) h->turns[i]));
        return json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:I, s:o}", "id", record->device.id, "verdict",
                         device_health_name(h->waiting ? h->saved : h->verdict), "rule", h->rule, "reason",
                         h->reason, "message", h->message, "bad", h->bad, "since",
                         (json_int_t) record->device.since_usec, "turns", turns);
}

static json_t *encode(const struct judge *judge, const char *boot_id, uint64_t generation,
                      uint64_t kernel_sequence)
{
        json_t *devices = json_array();

        for (size_t i = 0; i < judge->record_count; i++)
                if (matters(judge->records[i]))
                        (void) json_array_append_new(devices, encode_device(judge->records[i]));
        return json_pack("{s:i, s:s, s:I, s:I, s:o}", "version", STATE_VERSION, "bootID", boot_id,
                         "generation", (json_int_t) generation, "kernelSequence",
                         (json_int_t) kernel_sequence, "devices", devices);
}

void state_file_make_directories(const char *path)
{
        char part[1024];

        if (!text_copy(part, sizeof(part), path))
                return;
        for (char *s = strchr(part + 1, '/'); s != NULL; s = strchr(s + 1, '/')) {
                *s = '\0';
                (void) mkdir(part, 0755);
                *s = '/';
        }
}

static int write_file(const char *path, const char *text, struct err *err)
{
        CLEANUP(close_p) int fd = -1;
        char temporary[1024];
        size_t size = strlen(text), done = 0;

        if (!text_format(temporary, sizeof(temporary), "%s.new", path))
                return err_set(err, -ENAMETOOLONG, "'%s' is too long", path);
        fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return err_set(err, -errno, "'%s': %m", temporary);
        while (done < size) {
                ssize_t n = write(fd, text + done, size - done);

                if (n < 0 && errno != EINTR) {
                        int r = err_set(err, -errno, "'%s': %m", temporary);

                        (void) unlink(temporary);
                        return r;
                }
                done += n > 0 ? (size_t) n : 0;
        }
        if (fsync(fd) < 0 || rename(temporary, path) < 0)
                return err_set(err, -errno, "'%s': %m", path);
        return 0;
}

int state_save(const char *path, const struct judge *judge, const char *boot_id, uint64_t generation,
               uint64_t kernel_sequence, struct err *err)
{
        CLEANUP(free_p) char *text = NULL;
        json_t *object = encode(judge, boot_id, generation, kernel_sequence);
        bool empty = json_array_size(json_object_get(object, "devices")) == 0;

        text = object != NULL ? json_dumps(object, JSON_INDENT(1)) : NULL;
        json_decref(object);
        if (text == NULL)
                return err_set(err, -ENOMEM, "no memory for the state");
        if (empty && access(path, F_OK) < 0)
                return 0; /* nothing to remember */
        state_file_make_directories(path);
        return write_file(path, text, err);
}

uint64_t state_hash(const struct judge *judge)
{
        uint64_t hash = 0;

        for (size_t i = 0; i < judge->record_count; i++) {
                const struct device_record *record = judge->records[i];

                if (!matters(record))
                        continue;
                hash = hash_text(record->device.id, hash);
                hash = hash_text(record->health.reason, hash);
                hash = hash_bytes(&record->health.verdict, sizeof(record->health.verdict), hash);
                hash = hash_bytes(&record->health.turns[0], sizeof(record->health.turns[0]), hash);
        }
        return hash;
}

/* --- loading
 * -------------------------------------------------------------------------------------------------- */

static int decode_turns(const struct json_field *at, struct health *h, struct err *err)
{
        struct json_field turns;
        int r = json_field_array(at, "turns", HEALTH_FLAP_CHANGES_MAX + 1, &turns, err);

        if (r < 0)
                return r;
        h->turn_count = json_field_count(&turns);
        for (size_t i = 0; i < h->turn_count; i++) {
                struct json_field turn = json_field_at(&turns, i);

                if (!json_is_integer(turn.value) || json_integer_value(turn.value) < 0)
                        return json_field_error(&turn, err, "must be a time");
                h->turns[i] = (uint64_t) json_integer_value(turn.value);
                if (i > 0 && h->turns[i] > h->turns[i - 1])
                        return json_field_error(&turn, err, "must not be later than the one before");
        }
        return 0;
}

static int decode_device(const struct json_field *at, struct state_device *d, struct err *err)
{
        const char *verdict = "";
        int r = json_field_is_object(at, err);

        if (r < 0 || (r = json_field_text(at, "id", d->id, sizeof(d->id), err)) < 0 ||
            (r = json_field_string(at, "verdict", &verdict, err)) < 0 ||
            (r = json_field_text(at, "rule", d->health.rule, sizeof(d->health.rule), err)) < 0 ||
            (r = json_field_text(at, "reason", d->health.reason, sizeof(d->health.reason), err)) < 0 ||
            (r = json_field_text(at, "message", d->health.message, sizeof(d->health.message), err)) < 0 ||
            (r = json_field_bool(at, "bad", &d->health.bad, err)) < 0 ||
            (r = json_field_uint64(at, "since", 0, INT64_MAX, &d->since_usec, err)) < 0)
                return r;
        if (device_health_parse(verdict, &d->health.verdict) < 0)
                return json_field_error(at, err, "'%s' is no verdict", verdict);
        d->health.judged = true;
        r = decode_turns(at, &d->health, err);
        if (r == 0 && d->health.verdict == HEALTH_QUARANTINED && d->health.turn_count == 0)
                return json_field_error(at, err, "a quarantine without turns");
        return r;
}

static int decode(const json_t *object, struct state *s, struct err *err)
{
        struct json_field root = json_field_root(object), devices;
        unsigned version = 0;
        size_t n;
        int r;

        if ((r = json_field_is_object(&root, err)) < 0 ||
            (r = json_field_unsigned(&root, "version", STATE_VERSION, STATE_VERSION, &version, err)) < 0 ||
            (r = json_field_text(&root, "bootID", s->boot_id, sizeof(s->boot_id), err)) < 0 ||
            (r = json_field_uint64(&root, "generation", 0, INT64_MAX, &s->generation, err)) < 0 ||
            (r = json_field_uint64(&root, "kernelSequence", 0, INT64_MAX, &s->kernel_sequence, err)) < 0 ||
            (r = json_field_array(&root, "devices", DEVICES_MAX, &devices, err)) < 0)
                return r;
        n = json_field_count(&devices);
        s->devices = calloc(n + 1, sizeof(*s->devices));
        if (s->devices == NULL)
                return err_set(err, -ENOMEM, "no memory for the state");
        for (size_t i = 0; i < n; i++) {
                struct json_field at = json_field_at(&devices, i);

                r = decode_device(&at, &s->devices[i], err);
                if (r < 0)
                        return r;
                s->device_count = i + 1;
        }
        return 0;
}

int state_load(const char *path, struct state *ret, struct err *err)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        json_error_t why;
        json_t *object;
        struct stat st;
        int r;

        *ret = (struct state){ .generation = 0 };
        if (fd < 0)
                return err_set(err, -errno, "'%s': %m", path);
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t) STATE_FILE_MAX_BYTES)
                return err_set(err, -EBADMSG, "'%s' is not a state file", path);
        object = json_loadfd(fd, JSON_REJECT_DUPLICATES, &why);
        if (object == NULL)
                return err_set(err, -EBADMSG, "'%s': line %d: %s", path, why.line, why.text);
        r = decode(object, ret, err);
        json_decref(object);
        if (r < 0) {
                state_free(ret);
                return err_wrap(err, r, "'%s'", path);
        }
        return 0;
}

void state_free(struct state *s)
{
        if (s == NULL)
                return;
        free(s->devices);
        *s = (struct state){ .generation = 0 };
}

const struct state_device *state_find(const struct state *s, const char *id)
{
        for (size_t i = 0; i < s->device_count; i++)
                if (strcmp(s->devices[i].id, id) == 0)
                        return &s->devices[i];
        return NULL;
}
