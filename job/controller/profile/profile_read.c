/* One ConfigMap asked for, decoded and kept beside the job that names it. It is not watched: whoever waits
 * looks again from time to time, and who has a plan asks no more. */
#include "job/controller/profile/profile_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "job/controller/controller_internal.h"
#include "job/stages/stage_profile.h"

#define AGAIN_USEC 10000000u /* of a job that waits; a change of the ConfigMap is seen within it */

struct reading {
        struct record *record;
        char uid[64];                  /* of the record when it was asked */
        struct job_split_profile from; /* which ConfigMap; without layers */
        struct job_split_profile got;
        char why[JOB_MESSAGE_BYTES]; /* what is wrong with the object; "" = nothing, or nobody saw it */
};

int profile_read_decode(const struct job_split_profile *wanted, const char *namespace_, const json_t *object,
                        struct job_split_profile *ret, struct err *err)
{
        static const char field[] = "spec.profile.configMapKeyRef";
        const char *name = wanted->map.name, *key = wanted->map.key;
        const json_t *text = json_object_get(json_object_get(object, "data"), key);
        int r;

        if (object == NULL)
                return err_set(err, -ENOENT,
                               "%s: there is no ConfigMap '%s' in namespace '%s'; make it (kubectl create "
                               "configmap -n %s %s --from-file=%s=FILE), or correct the name",
                               field, name, namespace_, namespace_, name, key);
        if (!json_is_string(text))
                return err_set(err, -ENOENT,
                               "%s: ConfigMap '%s' has no text under the key '%s'; correct the key, or make "
                               "the map with --from-file=%s=FILE of a file in JSON",
                               field, name, key, key);
        if (json_string_length(text) > PROFILE_READ_MAX_BYTES)
                return err_set(err, -E2BIG,
                               "%s: '%s' of ConfigMap '%s' has %zu bytes, %zu may be read; give times by "
                               "vendor or runtime instead of by each model",
                               field, key, name, json_string_length(text), PROFILE_READ_MAX_BYTES);
        r = stage_profile_decode(json_string_value(text), json_string_length(text), ret, err);
        if (r < 0 && r != -ENOMEM)
                r = err_wrap(err, r, "%s: '%s' of ConfigMap '%s' is no profile", field, key, name);
        return r;
}

static json_t *take(void *userdata, const json_t *object, struct err *err)
{
        struct reading *reading = userdata;

        job_split_profile_free(&reading->got); /* an answer that was asked for twice */
        reading->why[0] = '\0';
        if (profile_read_decode(&reading->from, reading->record->namespace_, object, &reading->got, err) < 0)
                (void) text_copy(reading->why, sizeof(reading->why), err->msg);
        return NULL;
}

static bool is_the_same(const struct job_split_profile *a, const struct job_split_profile *b)
{
        return strcmp(a->map.name, b->map.name) == 0 && strcmp(a->map.key, b->map.key) == 0;
}

void profile_read_carry(struct job *from, struct job *to)
{
        if (to->profile.map.name[0] == '\0' || !is_the_same(&from->profile, &to->profile))
                return;
        job_split_profile_free(&to->profile);
        to->profile = from->profile;
        from->profile = (struct job_split_profile){ .samples = 1 };
}

/* Our own sentence, or the server's with what to do about it. */
static void say_unreadable(struct record *record, const char *own, const char *sentence)
{
        (void) text_format(
                record->profile.why, sizeof(record->profile.why),
                own[0] != '\0' ? "%s"
                               : "spec.profile.configMapKeyRef: the ConfigMap cannot be read: %.300s; the "
                                 "controller needs the right to get ConfigMaps there (ClusterRole "
                                 "remuda-job-namespace)",
                own[0] != '\0' ? own : sentence);
}

static bool has_plan_of_it(const struct record *record)
{
        return record->state.group_count > 0 && record->job.profile.layer_count > 0;
}

/* Its layers take the place of those before: none, where it could not be read. */
static void keep(struct record *record, struct job_split_profile *got)
{
        got->map = record->job.profile.map;
        job_split_profile_free(&record->job.profile);
        record->job.profile = *got;
        *got = (struct job_split_profile){ .samples = 1 };
}

static void on_read(void *userdata, int result, const char *sentence)
{
        struct reading *reading = userdata;
        struct record *record = reading->record;

        record->calls--;
        controller_queue(record);
        if (strcmp(record->uid, reading->uid) == 0)
                record->profile.under_way = false;
        if (strcmp(record->uid, reading->uid) == 0 && result != -ECANCELED &&
            is_the_same(&record->job.profile, &reading->from)) {
                record->profile.asked_usec = controller_monotonic(record->controller);
                record->profile.why[0] = '\0';
                if (result < 0)
                        say_unreadable(record, reading->why, sentence);
                if (!has_plan_of_it(record))
                        keep(record, &reading->got);
                controller_want_plan(record->controller);
        }
        job_split_profile_free(&reading->got);
        free(reading);
}

static void ask(struct record *record)
{
        struct reading *reading = controller_leads(record->controller) ? calloc(1, sizeof(*reading)) : NULL;

        if (reading == NULL)
                return;
        reading->record = record;
        reading->from.map = record->job.profile.map;
        (void) text_copy(reading->uid, sizeof(reading->uid), record->uid);
        record->calls++;
        record->profile.under_way = true;
        store_change(cluster_store(record->controller->options.cluster), STORE_CONFIG_MAP, record->namespace_,
                     reading->from.map.name, take, on_read, reading);
}

bool profile_read_ready(struct record *record, const char **ret_why)
{
        uint64_t now = controller_monotonic(record->controller);
        bool known = record->job.profile.layer_count > 0;

        *ret_why = "";
        if (record->job.profile.map.name[0] == '\0' || has_plan_of_it(record))
                return true;
        if (record->profile.under_way)
                return known;
        if ((!known && record->profile.why[0] == '\0') || now - record->profile.asked_usec >= AGAIN_USEC)
                ask(record);
        else if (!known)
                *ret_why = record->profile.why;
        return known;
}
