/* The five fields that change, once as they are written and once as they are read. */
#include "job/controller/spec_change.h"

/* Takes the reference. */
static void drop_default(json_t *restart, const char *name, json_t *value)
{
        if (json_equal(json_object_get(restart, name), value))
                (void) json_object_del(restart, name);
        json_decref(value);
}

json_t *spec_change_fixed(const json_t *spec)
{
        json_t *fixed = json_deep_copy(spec), *restart = json_object_get(fixed, "restart");
        struct job defaults;

        (void) json_object_del(fixed, "suspend");
        (void) json_object_del(fixed, "priority");
        (void) json_object_del(fixed, "disruption");
        (void) json_object_del(fixed, "ttlSecondsAfterFinished");
        (void) json_object_del(restart, "max");
        /* restart may come or go with its max: what it has beside that by default is no change */
        job_init(&defaults);
        drop_default(restart, "migrate", json_boolean(defaults.restart.migrate));
        drop_default(restart, "resplit", json_boolean(defaults.restart.resplit));
        drop_default(restart, "hangSeconds", json_integer((json_int_t) defaults.restart.hang_seconds));
        if (json_object_size(restart) == 0)
                (void) json_object_del(fixed, "restart");
        return fixed;
}

/* A field of the one that the other has not, or has otherwise. */
static const char *find_field(json_t *one, json_t *other)
{
        const char *name;
        json_t *value;

        json_object_foreach(one, name, value)
        {
                if (!json_equal(value, json_object_get(other, name)))
                        return name;
        }
        return NULL;
}

const char *spec_change_field(json_t *fixed, json_t *other)
{
        const char *field;

        if (fixed == NULL || other == NULL)
                return NULL; /* nobody knows */
        field = find_field(fixed, other);
        return field != NULL ? field : find_field(other, fixed);
}

void spec_change_take(struct job *job, const struct job *from)
{
        job->suspend = from->suspend;
        job->priority = from->priority;
        job->disruption = from->disruption;
        job->has_ttl = from->has_ttl;
        job->ttl_seconds = from->ttl_seconds;
        job->restart.given = from->restart.given;
        job->restart.max = from->restart.max;
}
