/* Fills in the speeds of workers that name a device: from the table of speeds, else the mean of those known.
 */
#include "planner/shards/plan_speeds.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"

struct known {
        double alpha_ms, beta_ms; /* sums */
        size_t count;
};

struct filling {
        const struct speed_table *table;
        const char *model;
        struct known known;
        bool assume; /* second pass: those that are still without */
};

static bool has_speed(const json_t *worker)
{
        return json_object_get(worker, "speed") != NULL || json_object_get(worker, "alpha_ms") != NULL ||
               json_object_get(worker, "beta_ms") != NULL || json_object_get(worker, "table") != NULL;
}

static int set_speed(json_t *worker, double alpha_ms, double beta_ms, const char *source)
{
        int r = json_object_set_new(worker, "alpha_ms", json_real(alpha_ms));

        r |= json_object_set_new(worker, "beta_ms", json_real(beta_ms));
        r |= json_object_set_new(worker, "source", json_string(source));
        return r < 0 ? -ENOMEM : 0;
}

static int note_given(struct filling *f, json_t *worker)
{
        double speed = json_number_value(json_object_get(worker, "speed")),
               alpha_ms = json_number_value(json_object_get(worker, "alpha_ms")),
               beta_ms = json_number_value(json_object_get(worker, "beta_ms"));

        if (speed > 0)
                beta_ms = 1000 / speed;
        if (beta_ms > 0 && beta_ms < 1e12 && alpha_ms >= 0 && alpha_ms < 1e12) {
                f->known.alpha_ms += alpha_ms;
                f->known.beta_ms += beta_ms;
                f->known.count++;
        }
        return json_object_set_new(worker, "source", json_string("measured"));
}

static int look_up(struct filling *f, const struct json_field *at, json_t *worker, struct err *err)
{
        const char *device = NULL, *program = NULL;
        char name[SPEED_TABLE_DEVICE_BYTES];
        const struct speed_table_row *row;
        uint64_t sharing = 1;
        int r = json_field_string(at, "device", &device, err);

        if (r == 0)
                r = json_field_string(at, "program", &program, err);
        if (r >= 0)
                r = json_field_uint64(at, "shared_by", 1, 4096, &sharing, err);
        if (r < 0)
                return r;
        speed_table_device(name, device, sharing);
        row = speed_table_find(f->table, program, f->model, name);
        if (row == NULL)
                return 0;
        f->known.alpha_ms += row->alpha_ms;
        f->known.beta_ms += row->beta_ms;
        f->known.count++;
        return set_speed(worker, row->alpha_ms, row->beta_ms, "table");
}

static int assume(const struct filling *f, json_t *worker)
{
        double count = (double) f->known.count;
        int r = 0;

        if (!has_speed(worker) && json_is_string(json_object_get(worker, "device")))
                r = count > 0 ? set_speed(worker, f->known.alpha_ms / count, f->known.beta_ms / count,
                                          "assumed")
                              : set_speed(worker, 0, 1, "assumed");
        (void) json_object_del(worker, "device");
        (void) json_object_del(worker, "program");
        (void) json_object_del(worker, "shared_by");
        return r;
}

static int fill_workers(struct filling *f, const struct json_field *list, struct err *err)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < json_field_count(list); i++) {
                struct json_field at = json_field_at(list, i);
                json_t *worker = json_array_get(list->value, i);

                if (!json_is_object(worker))
                        continue;
                if (f->assume)
                        r = assume(f, worker);
                else if (has_speed(worker))
                        r = note_given(f, worker);
                else if (json_object_get(worker, "device") != NULL)
                        r = look_up(f, &at, worker, err);
                if (r < 0 && (err == NULL || err->code == 0))
                        r = err_set(err, -ENOMEM, "no memory for the workers' speeds");
        }
        return r;
}

int plan_speeds_fill(json_t *request, const struct speed_table *table, const char *model, struct err *err)
{
        struct filling f = { .table = table, .model = model };
        struct json_field root = json_field_root(request);
        int r = 0;

        for (int pass = 0; r == 0 && pass < 2; pass++) {
                struct json_field workers = json_field_get(&root, "workers"),
                                  groups = json_field_get(&root, "groups");

                f.assume = pass == 1;
                r = fill_workers(&f, &workers, err);
                for (size_t i = 0; r == 0 && i < json_field_count(&groups); i++) {
                        struct json_field group = json_field_at(&groups, i);

                        workers = json_field_get(&group, "workers");
                        r = fill_workers(&f, &workers, err);
                }
        }
        return r;
}
