/* The table of the state file, what of the records goes into it, and its way to the disk and back. */
#include "agent/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/json/json_table.h"
#include "base/text.h"
#include "io/make_folders.h"
#include "io/whole_file.h"

#define STATE_VERSION 1

static bool matters(const struct judge_record *record)
{
        const struct health *h = &record->health;

        return record->judged && record->present &&
               (h->turn_count > 0 || h->waiting || h->bad || h->verdict == HEALTH_UNHEALTHY ||
                h->verdict == HEALTH_QUARANTINED || h->verdict == HEALTH_DEGRADED);
}

static int check_device(const struct json_field *at, void *object, struct err *err)
{
        struct health *h = &((struct state_file_device *) object)->health;
        struct json_field turns = json_field_get(at, "turns");

        for (size_t i = 1; i < h->turn_count; i++) {
                struct json_field turn = json_field_at(&turns, i);

                if (h->turns[i] > h->turns[i - 1])
                        return json_field_error(&turn, err, "must not be later than the one before");
        }
        if (h->verdict == HEALTH_QUARANTINED && h->turn_count == 0)
                return json_field_error(at, err, "a quarantine without turns");
        h->judged = true;
        return 0;
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct state_file_device, member)
static const struct json_table_row turn_row = { "", JSON_TABLE_UINT, .size_bytes = sizeof(uint64_t) };
static const struct json_table_row device_rows[] = {
        { "id",             JSON_TABLE_CHARS,  AT(id) },
        { "verdict",        JSON_TABLE_CHOICE, AT(health.verdict), .names = device_health_names, .required = true },
        { "rule",           JSON_TABLE_CHARS,  AT(health.rule) },
        { "reason",         JSON_TABLE_CHARS,  AT(health.reason) },
        { "message",        JSON_TABLE_CHARS,  AT(health.message) },
        { "bad",            JSON_TABLE_BOOL,   AT(health.bad) },
        { "since",          JSON_TABLE_UINT,   AT(since_usec) },
        { "turns",          JSON_TABLE_ARRAY,  AT(health.turns), .element = &turn_row,
          .count = offsetof(struct state_file_device, health.turn_count) },
        { .name = NULL },
};
#undef AT
#define AT(member) JSON_TABLE_AT(struct numbers_entry, member)
static const struct json_table_row number_rows[] = {
        { "vendor",         JSON_TABLE_CHARS,  AT(vendor) },
        { "id",             JSON_TABLE_CHARS,  AT(id) },
        { "pci",            JSON_TABLE_CHARS,  AT(pci) },
        { "index",          JSON_TABLE_UINT,   AT(index), .max = INT32_MAX },
        { .name = NULL },
};
#undef AT
static const struct json_table number_table = { .rows = number_rows, .size_bytes = sizeof(struct numbers_entry) };
static const struct json_table device_table = { .rows = device_rows, .size_bytes = sizeof(struct state_file_device),
                                                .check = check_device };
#define AT(member) JSON_TABLE_AT(struct state_file, member)
static const struct json_table_row state_rows[] = {
        { "version",        JSON_TABLE_UINT,   AT(version), .min = STATE_VERSION, .max = STATE_VERSION },
        { "bootID",         JSON_TABLE_CHARS,  AT(boot_id) },
        { "generation",     JSON_TABLE_UINT,   AT(generation) },
        { "kernelSequence", JSON_TABLE_UINT,   AT(kernel_sequence) },
        { "devices",        JSON_TABLE_LIST,   AT(devices), .table = &device_table,
          .count = offsetof(struct state_file, device_count), .max = DEVICES_MAX },
        { "numbers",        JSON_TABLE_LIST,   AT(numbers.entries), .table = &number_table,
          .count = offsetof(struct state_file, numbers.count), .max = NUMBERS_MAX },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table state_table = { .rows = state_rows, .size_bytes = sizeof(struct state_file) };

/* What of the records is worth remembering. */
static int collect(const struct judge *judge, struct state_file *s)
{
        s->devices = calloc(judge->record_count + 1, sizeof(*s->devices));
        for (size_t i = 0; s->devices != NULL && i < judge->record_count; i++) {
                const struct judge_record *record = judge->records[i];
                struct state_file_device *d = &s->devices[s->device_count];

                if (!matters(record))
                        continue;
                s->device_count++;
                (void) text_copy(d->id, sizeof(d->id), record->device.id);
                d->since_usec = record->device.since_usec;
                d->health = record->health;
                if (d->health.waiting)
                        d->health.verdict = d->health.saved;
        }
        return s->devices != NULL ? 0 : -ENOMEM;
}

int state_file_save(const char *path, const struct judge *judge, const struct state_file_rest *rest,
                    struct err *err)
{
        struct state_file s = { .version = STATE_VERSION,
                                .generation = rest->generation,
                                .kernel_sequence = rest->kernel_sequence,
                                .numbers = *rest->numbers };
        CLEANUP(free_p) char *text = NULL;
        json_t *object = NULL;

        (void) text_copy(s.boot_id, sizeof(s.boot_id), rest->boot_id);
        if (collect(judge, &s) == 0)
                object = json_table_encode(&state_table, &s);
        free(s.devices); /* the numbers are borrowed */
        text = object != NULL ? json_dumps(object, JSON_INDENT(1)) : NULL;
        json_decref(object);
        if (text == NULL)
                return err_set(err, -ENOMEM, "no memory for the state");
        if (s.device_count == 0 && !s.numbers.moved && !rest->always && access(path, F_OK) < 0)
                return 0; /* nothing to remember */
        make_folders(path);
        return whole_file_write(path, text, strlen(text), 0600, WHOLE_FILE_SYNCED, err);
}

uint64_t state_file_hash(const struct judge *judge, const struct numbers *numbers)
{
        uint64_t hash = numbers->moved ? numbers_hash(numbers) + 1 : numbers_hash(numbers);

        for (size_t i = 0; i < judge->record_count; i++) {
                const struct judge_record *record = judge->records[i];

                if (!matters(record))
                        continue;
                hash = hash_text(record->device.id, hash);
                hash = hash_text(record->health.reason, hash);
                hash = hash_bytes(&record->health.verdict, sizeof(record->health.verdict), hash);
                hash = hash_bytes(&record->health.turns[0], sizeof(record->health.turns[0]), hash);
        }
        return hash;
}

int state_file_load(const char *path, struct state_file *ret, struct err *err)
{
        CLEANUP(close_p) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        json_error_t why;
        json_t *object;
        struct stat st;
        int r;

        *ret = (struct state_file){ .generation = 0 };
        if (fd < 0)
                return err_set(err, -errno, "'%s': %m", path);
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > (off_t) STATE_FILE_MAX_BYTES)
                return err_set(err, -EBADMSG, "'%s' is not a state file", path);
        object = json_loadfd(fd, JSON_REJECT_DUPLICATES, &why);
        if (object == NULL)
                return err_set(err, -EBADMSG, "'%s': line %d: %s", path, why.line, why.text);
        r = json_table_decode(&state_table, object, ret, err);
        json_decref(object);
        if (r < 0) {
                *ret = (struct state_file){ .generation = 0 };
                return err_wrap(err, r, "'%s'", path);
        }
        return 0;
}

void state_file_free(struct state_file *s)
{
        if (s == NULL)
                return;
        free(s->devices);
        numbers_free(&s->numbers);
        *s = (struct state_file){ .generation = 0 };
}

const struct state_file_device *state_file_find(const struct state_file *s, const char *id)
{
        for (size_t i = 0; i < s->device_count; i++)
                if (strcmp(s->devices[i].id, id) == 0)
                        return &s->devices[i];
        return NULL;
}
