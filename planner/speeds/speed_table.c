/* Reads the SpeedTable object, finds rows in it, and refines them by what was observed. */
#include "planner/speeds/speed_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/text.h"

/* A row that people wrote, or whose sums were lost, is taken for this much experience when it is refined. */
#define GIVEN_WEIGHT 6.0

#define AT(member) JSON_TABLE_AT(struct speed_table_row, member)

/* clang-format off */
static const struct json_table_row row_rows[] = {
        { "alpha_ms",        JSON_TABLE_DOUBLE, AT(alpha_ms) },
        { "beta_ms",         JSON_TABLE_DOUBLE, AT(beta_ms) },
        { "updated",         JSON_TABLE_TIME,   AT(updated_usec) },
        { "fit.one",         JSON_TABLE_DOUBLE, AT(fit.one) },
        { "fit.batch",       JSON_TABLE_DOUBLE, AT(fit.batch) },
        { "fit.batch_batch", JSON_TABLE_DOUBLE, AT(fit.batch_batch) },
        { "fit.ms",          JSON_TABLE_DOUBLE, AT(fit.ms) },
        { "fit.batch_ms",    JSON_TABLE_DOUBLE, AT(fit.batch_ms) },
        { "fit.weight",      JSON_TABLE_DOUBLE, AT(fit.weight) },
        { "fit.deviation",   JSON_TABLE_DOUBLE, AT(fit.deviation) },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table row_table = { .rows = row_rows,
                                             .size_bytes = sizeof(struct speed_table_row),
                                             .lenient = true };

static bool split_key(const char *key, struct speed_table_row *row)
{
        const char *model = strchr(key, '/'), *device = model == NULL ? NULL : strchr(model + 1, '/');

        if (device == NULL || model == key || device == model + 1 || device[1] == '\0')
                return false;
        return text_format(row->program, sizeof(row->program), "%.*s", (int) (model - key), key) &&
               text_format(row->model, sizeof(row->model), "%.*s", (int) (device - model) - 1, model + 1) &&
               text_copy(row->device, sizeof(row->device), device + 1);
}

static bool decode_row(const char *key, const json_t *value, struct speed_table_row *row)
{
        *row = (struct speed_table_row){ .beta_ms = NAN };
        (void) json_table_decode(&row_table, value, row, NULL);
        if (!speed_fit_valid(&row->fit))
                row->fit = (struct speed_fit){ 0 };
        return split_key(key, row) && row->alpha_ms >= 0 && row->alpha_ms <= SPEED_FIT_MS_MAX &&
               row->beta_ms >= 1e-12 && row->beta_ms <= SPEED_FIT_MS_MAX;
}

static int by_update(const void *a, const void *b)
{
        const struct speed_table_row *x = a, *y = b;

        if (x->updated_usec != y->updated_usec)
                return x->updated_usec < y->updated_usec ? -1 : 1;
        if (strcmp(x->program, y->program) != 0)
                return strcmp(x->program, y->program);
        return strcmp(x->model, y->model) != 0 ? strcmp(x->model, y->model) : strcmp(x->device, y->device);
}

json_t *speed_table_speeds(const json_t *object)
{
        struct json_field root = json_field_root(object), spec = json_field_get(&root, "spec"),
                          speeds = json_field_get(&root, "speeds");

        if (speeds.value == NULL)
                speeds = json_field_get(&spec, "speeds");
        return (json_t *) speeds.value;
}

static int check_object(const json_t *object, struct err *err)
{
        struct json_field root = json_field_root(object);
        const char *kind = "SpeedTable";

        if (object != NULL && !json_is_object(object))
                return err_set(err, -EBADMSG, "a SpeedTable is needed, an object");
        (void) json_field_string(&root, "kind", &kind, NULL);
        if (strcmp(kind, "SpeedTable") != 0)
                return err_set(err, -EBADMSG, "kind: '%.60s' is not SpeedTable", kind);
        if (speed_table_speeds(object) != NULL && !json_is_object(speed_table_speeds(object)))
                return err_set(err, -EBADMSG,
                               "speeds: an object is needed, such as {\"SHA256/mlp/H100\": {\"alpha_ms\": 1, "
                               "\"beta_ms\": 0.02}}");
        return 0;
}

static void note_trouble(struct speed_table *table, size_t bad, const char *first, size_t more)
{
        if (bad > 0)
                (void) text_format(table->trouble, sizeof(table->trouble),
                                   "%zu rows make no sense and are passed over, such as '%.60s'; a row is "
                                   "PROGRAM/MODEL/DEVICE: {alpha_ms: 0 or more, beta_ms: above 0}",
                                   bad, first);
        else if (more > 0)
                (void) text_format(table->trouble, sizeof(table->trouble),
                                   "it has %zu rows more than %d; the oldest are passed over", more,
                                   SPEED_TABLE_ROWS_MAX);
}

/* The ones updated last are kept. Return: how many went. */
static size_t drop_first_rows(struct speed_table *table)
{
        size_t more = table->count > SPEED_TABLE_ROWS_MAX ? table->count - SPEED_TABLE_ROWS_MAX : 0;
        struct speed_table_row *less;

        if (more == 0)
                return 0;
        table->count = SPEED_TABLE_ROWS_MAX;
        memmove(table->rows, table->rows + more, table->count * sizeof(*table->rows));
        less = reallocarray(table->rows, table->count, sizeof(*table->rows));
        table->rows = less != NULL ? less : table->rows;
        return more;
}

int speed_table_decode(const json_t *object, struct speed_table *ret, struct err *err)
{
        json_t *speeds = speed_table_speeds(object), *value;
        size_t bad = 0, more, room = json_object_size(speeds);
        const char *key, *first = NULL;
        int r = check_object(object, err);

        *ret = (struct speed_table){ 0 };
        if (r < 0)
                return r;
        ret->rows = calloc(room + 1, sizeof(*ret->rows));
        if (ret->rows == NULL)
                return err_set(err, -ENOMEM, "no memory for the speed table");
        json_object_foreach(speeds, key, value)
        {
                if (!decode_row(key, value, &ret->rows[ret->count])) {
                        first = first == NULL ? key : first;
                        bad++;
                } else {
                        ret->count++;
                }
        }
        qsort(ret->rows, ret->count, sizeof(*ret->rows), by_update);
        more = drop_first_rows(ret);
        note_trouble(ret, bad, first, more);
        return 0;
}

void speed_table_free(struct speed_table *table)
{
        free(table->rows);
        *table = (struct speed_table){ 0 };
}

static bool same_key(const struct speed_table_row *a, const struct speed_table_row *b)
{
        return strcmp(a->device, b->device) == 0 && strcmp(a->model, b->model) == 0 &&
               strcmp(a->program, b->program) == 0;
}

int speed_table_keep(struct speed_table *table, const struct speed_table_row *row)
{
        struct speed_table_row *grown;
        size_t i = 0;

        while (i < table->count && !same_key(&table->rows[i], row))
                i++;
        if (i < table->count) {
                memmove(&table->rows[i], &table->rows[i + 1], (table->count - i - 1) * sizeof(*row));
                table->rows[table->count - 1] = *row;
                return 0;
        }
        if (table->count >= SPEED_TABLE_KEPT_MAX)
                return 0;
        grown = reallocarray(table->rows, table->count + 1, sizeof(*grown));
        if (grown == NULL)
                return -ENOMEM;
        table->rows = grown;
        table->rows[table->count++] = *row;
        return 0;
}

int speed_table_add(struct speed_table *table, const struct speed_table *more)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < more->count; i++)
                r = speed_table_keep(table, &more->rows[i]);
        return r;
}

static void hash_words(struct sha256 *hash, char *const *words, size_t count)
{
        for (size_t i = 0; i < count; i++)
                sha256_update(hash, words[i], strlen(words[i]) + 1);
}

void speed_table_program(const char *content, char *const *words, size_t count, char ret[SHA256_HEX_BYTES])
{
        struct sha256 hash;

        if (content[0] == '\0' || count == 0) {
                if (ret != content)
                        (void) text_copy(ret, SHA256_HEX_BYTES, content);
                return;
        }
        sha256_init(&hash);
        sha256_update(&hash, content, strlen(content) + 1);
        hash_words(&hash, words, count);
        sha256_final_hex(&hash, ret);
}

void speed_table_own(const char *namespace_, const char *image, struct speed_table_words command,
                     struct speed_table_words arguments, char ret[SHA256_HEX_BYTES])
{
        struct sha256 hash;
        char hex[SHA256_HEX_BYTES];

        sha256_init(&hash);
        sha256_update(&hash, namespace_, strlen(namespace_) + 1);
        sha256_update(&hash, image, strlen(image) + 1);
        hash_words(&hash, command.list, command.count);
        hash_words(&hash, arguments.list, arguments.count);
        sha256_final_hex(&hash, hex);
        (void) text_format(ret, SHA256_HEX_BYTES, SPEED_TABLE_OWN "%.40s", hex);
}

static bool is_own(const char *program)
{
        return text_starts_with(program, SPEED_TABLE_OWN);
}

enum speed_table_speaks speed_table_speaks_of(const char *row_program, const char *program)
{
        bool asked = program != NULL && program[0] != '\0';

        if (asked && strcmp(row_program, program) == 0)
                return SPEED_TABLE_SURELY;
        if (is_own(row_program))
                return SPEED_TABLE_NOT;
        if (!asked)
                return SPEED_TABLE_SURELY;
        return row_program[0] == '\0' || strcmp(row_program, "-") == 0 ? SPEED_TABLE_PERHAPS
                                                                       : SPEED_TABLE_NOT;
}

const struct speed_table_row *speed_table_find(const struct speed_table *table, const char *program,
                                               const char *model, const char *device)
{
        enum speed_table_speaks best = SPEED_TABLE_NOT;
        const struct speed_table_row *ret = NULL;

        for (size_t i = table->count; i > 0 && best < SPEED_TABLE_SURELY; i--) {
                const struct speed_table_row *row = &table->rows[i - 1];
                enum speed_table_speaks speaks = speed_table_speaks_of(row->program, program);

                if (speaks > best && strcmp(row->model, model) == 0 && strcmp(row->device, device) == 0) {
                        best = speaks;
                        ret = row;
                }
        }
        return ret;
}

void speed_table_device(char device[SPEED_TABLE_DEVICE_BYTES], const char *model, size_t sharing)
{
        if (sharing > 1)
                (void) text_format(device, SPEED_TABLE_DEVICE_BYTES, "%.*s (shared by %zu)",
                                   SPEED_TABLE_MODEL_BYTES - 1, model, sharing > 9999 ? 9999 : sharing);
        else
                (void) text_format(device, SPEED_TABLE_DEVICE_BYTES, "%.*s", SPEED_TABLE_MODEL_BYTES - 1,
                                   model);
}

/* What the row holds besides stays. */
static int encode_row(json_t *speeds, const char *key, const struct speed_table_row *row)
{
        struct json_field root = json_field_root(speeds), old = json_field_get(&root, key);
        struct speed_table_row whole = *row;
        json_t *value = json_is_object(old.value) ? json_incref((json_t *) old.value) : json_object();
        int r;

        whole.updated_usec = row->updated_usec / 1000000 * 1000000;
        r = json_object_update_new(value, json_table_encode(&row_table, &whole));
        return r | json_object_set_new(speeds, key, value);
}

/* What was given by hand becomes three looks at the line it says. */
static void believe_given(struct speed_table_row *row, double batch)
{
        for (int i = -1; i <= 1 && row->beta_ms > 0; i++) {
                double b = fmax(1, batch * exp2(i));

                (void) speed_fit_add(&row->fit, b, row->alpha_ms + row->beta_ms * b, GIVEN_WEIGHT / 3);
        }
}

static int refine_row(json_t *speeds, const struct speed_table_observation *seen, uint64_t now_usec)
{
        const char *program = seen->program == NULL || seen->program[0] == '\0' ? "-" : seen->program;
        struct json_field root = json_field_root(speeds);
        char key[SPEED_TABLE_KEY_BYTES];
        struct speed_table_row row;

        if (!text_format(key, sizeof(key), "%s/%s/%s", program, seen->model, seen->device))
                return 0;
        if (!decode_row(key, json_field_get(&root, key).value, &row)) {
                row = (struct speed_table_row){ .beta_ms = 0 };
                if (!split_key(key, &row))
                        return 0;
        } else if (row.fit.weight <= 0) {
                believe_given(&row, seen->batch);
        }
        if (!speed_fit_add(&row.fit, seen->batch, seen->step_ms, seen->weight) ||
            !speed_fit_line(&row.fit, &row.alpha_ms, &row.beta_ms))
                return 0;
        row.updated_usec = now_usec;
        return encode_row(speeds, key, &row);
}

struct age {
        const char *key; /* of the object's own */
        uint64_t updated_usec;
        size_t place;
};

static int by_age(const void *a, const void *b)
{
        const struct age *x = a, *y = b;

        if (x->updated_usec != y->updated_usec)
                return x->updated_usec < y->updated_usec ? -1 : 1;
        return x->place < y->place ? -1 : x->place > y->place; /* qsort keeps no order by itself */
}

static int drop_oldest(json_t *speeds)
{
        size_t size = json_object_size(speeds), count = 0;
        CLEANUP(free_p) struct age *ages = NULL;
        const char *key;
        json_t *value;
        int r = 0;

        if (size <= SPEED_TABLE_ROWS_MAX)
                return 0;
        ages = calloc(size, sizeof(*ages));
        if (ages == NULL)
                return -1;
        json_object_foreach(speeds, key, value)
        {
                struct speed_table_row row;

                ages[count] = (struct age){ .key = key, .place = count };
                if (decode_row(key, value, &row))
                        ages[count].updated_usec = row.updated_usec;
                count++;
        }
        qsort(ages, count, sizeof(*ages), by_age);
        for (size_t i = 0; i < count - SPEED_TABLE_ROWS_MAX; i++)
                r |= json_object_del(speeds, ages[i].key);
        return r;
}

static json_t *new_table(void)
{
        return json_pack("{s:s, s:s, s:{s:s}, s:{}}", "apiVersion", "remuda.dev/v1alpha1", "kind",
                         "SpeedTable", "metadata", "name", SPEED_TABLE_NAME, "speeds");
}

json_t *speed_table_refine(const json_t *object, const struct speed_table_observation *observations,
                           size_t count, uint64_t now_usec, struct err *err)
{
        json_t *table, *speeds;
        int r = check_object(object, err);

        if (r < 0)
                return NULL;
        table = object == NULL ? new_table() : json_deep_copy(object);
        speeds = speed_table_speeds(table);
        if (speeds == NULL) {
                speeds = json_object();
                r |= json_object_set_new(table, "speeds", speeds);
        }
        for (size_t i = 0; r == 0 && i < count; i++)
                r = refine_row(speeds, &observations[i], now_usec);
        if (r == 0)
                r = drop_oldest(speeds);
        if (r == 0 && table != NULL)
                return table;
        json_decref(table);
        (void) err_set(err, -ENOMEM, "no memory for the speed table");
        return NULL;
}
