/* A group's place in the world, its chips' shares, and the variables of each of its ranks. */
#include "job/launcher/subtask_ranks.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"
#include "base/json/pb_json.h"
#include "base/text.h"
#include "job/launcher/message.h"
#include "job/plan/launch_frameworks.h"

#define PLACES_MAX ((uint64_t) 1 << 22) /* every rank is told all places: minutes and gigabytes beyond it */

/* One group's part, and everybody's place. */
struct part {
        const Subtask__Plan *plan;
        const Subtask__Group *group;
        const char *folder;
        char *const *devices;
        bool staged;
        struct launch_rank *ranks; /* of the whole world */
        struct launch_world place;
};

static int add_place(struct part *part, const Subtask__Group *group, struct err *err)
{
        if (group->address[0] == '\0' || group->port == 0)
                return err_set(err, -EINVAL, "groups: address and port of %s are needed", group->name);
        if (part->place.count == 0)
                part->place.port = group->port;
        for (uint32_t k = 0; k < group->chips; k++)
                part->ranks[part->place.count++] = (struct launch_rank){ .node = group->name,
                                                                         .address = group->address,
                                                                         .runtime = group->runtime,
                                                                         .device_index = k,
                                                                         .server = subtask_is_server(group) };
        return 0;
}

static int lay_out(struct part *part, const char *name, struct err *err)
{
        const Subtask__Plan *plan = part->plan;

        part->ranks = calloc(SUBTASK_CHIPS_MAX, sizeof(*part->ranks));
        if (part->ranks == NULL)
                return err_set(err, -ENOMEM, "no memory for the subtask");
        part->place.ranks = part->ranks;
        part->place.job = plan->job;
        for (size_t i = 0; i < plan->n_groups; i++) {
                const Subtask__Group *group = plan->groups[i];

                if (!group->used)
                        continue;
                if (group->first_rank != part->place.count)
                        return err_set(err, -EINVAL, "groups: first_rank of %s is another group's",
                                       group->name);
                if (strcmp(group->name, name) == 0)
                        part->group = group;
                if (add_place(part, group, err) < 0)
                        return -EINVAL;
        }
        if (part->group == NULL)
                return err_set(err, -EINVAL, "groups: %.63s has no part", name);
        if (part->group->batch > plan->global_batch || part->group->begin > part->group->end)
                return err_set(err, -EINVAL, "the part is larger than the whole");
        if (part->group->chips * part->place.count > PLACES_MAX)
                return err_set(err, -EINVAL, "chips: %u of a world of %zu; a group that large has to be cut",
                               part->group->chips, part->place.count);
        return 0;
}

static void set(json_t *environment, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void set(json_t *environment, const char *name, const char *fmt, ...)
{
        char value[4096];
        va_list values;

        va_start(values, fmt);
        (void) vsnprintf(value, sizeof(value), fmt, values); /* paths and numbers, cut at their end */
        va_end(values);
        (void) json_object_set_new(environment, name, json_string(value));
}

static void set_devices(const struct part *part, size_t chip, json_t *environment)
{
        const char *variable = vendor_program_variable(part->group->runtime);

        if (part->devices != NULL)
                set(environment, "REMUDA_DEVICES", "%s", part->devices[chip]);
        if (variable != NULL && part->devices != NULL)
                set(environment, variable, "%s", part->devices[chip]);
        else if (variable != NULL)
                set(environment, variable, "%zu", chip);
}

/* @begin, @end: its samples of an epoch */
static json_t *rank_environment(const struct part *part, size_t chip, uint64_t batch, uint64_t begin,
                                uint64_t end)
{
        const Subtask__Plan *plan = part->plan;
        const Subtask__Group *group = part->group;
        unsigned long long rank = group->first_rank + chip;
        json_t *environment = json_object();
        char table[4096];

        (void) text_format(table, sizeof(table), "%s/ranktable-%s.json", part->folder, group->name);
        launch_frameworks_add(&part->place, rank, table, environment);
        set(environment, "TORCHELASTIC_RESTART_COUNT", "%llu", (unsigned long long) plan->restarts);
        set(environment, "TORCHELASTIC_MAX_RESTARTS", "%u", plan->restart == NULL ? 0 : plan->restart->max);
        set(environment, "TORCHELASTIC_RUN_ID", "%s", plan->job);
        set(environment, "REMUDA_JOB", "%s", plan->job);
        set(environment, "REMUDA_GROUP", "%s", group->name);
        set(environment, "REMUDA_ROLE", "%s", subtask_is_server(group) ? "server" : "worker");
        set(environment, "REMUDA_VENDOR", "%s", group->vendor);
        set(environment, "REMUDA_BATCH", "%llu", (unsigned long long) batch);
        set(environment, "REMUDA_WEIGHT", "%.17g", (double) batch / (double) plan->global_batch);
        set(environment, "REMUDA_WORLD", "%llu", (unsigned long long) plan->world);
        set(environment, "REMUDA_RESTARTS", "%llu", (unsigned long long) plan->restarts);
        set(environment, "REMUDA_PROGRESS", "%s/rank-%llu.progress", part->folder, rank);
        set(environment, "REMUDA_PLAN", "%s/subtask-%s.json", part->folder, group->name);
        if (end > begin)
                set(environment, "REMUDA_SHARD", "%llu:%llu", (unsigned long long) begin,
                    (unsigned long long) end);
        if (part->staged && chip < group->n_stages)
                set(environment, "REMUDA_LAYERS", "%u:%u", group->stages[chip]->first,
                    group->stages[chip]->last);
        if (plan->checkpoint[0] != '\0')
                set(environment, "REMUDA_CHECKPOINT", "%s", plan->checkpoint);
        set_devices(part, chip, environment);
        for (size_t i = 0; i < plan->n_environment; i++)
                (void) json_object_set_new(environment, plan->environment[i]->key,
                                           json_string(plan->environment[i]->value));
        return environment;
}

static json_t *entry(const struct part *part, size_t chip, json_t *environment)
{
        unsigned long long rank = part->group->first_rank + chip;
        char out[4096], errors[4096], report[4096];

        (void) text_format(out, sizeof(out), "%s/rank-%llu.out", part->folder, rank);
        (void) text_format(errors, sizeof(errors), "%s/rank-%llu.err", part->folder, rank);
        (void) text_format(report, sizeof(report), "%s/rank-%llu.report", part->folder, rank);
        return json_pack("{s:s, s:o, s:s, s:s, s:s}", "runtime", part->group->runtime, "environment",
                         environment, "stdout", out, "stderr", errors, "report", report);
}

/* The chips of a group are of one model, and alike unless one was seen slow. */
int subtask_ranks_share(const Subtask__Plan *plan, const Subtask__Group *group, struct shard *shards,
                        struct err *err)
{
        CLEANUP(free_p) double *speeds = calloc(group->chips, sizeof(*speeds));

        if (speeds == NULL)
                return err_set(err, -ENOMEM, "no memory for the subtask");
        memset(shards, 0, group->chips * sizeof(*shards));
        for (uint32_t i = 0; i < group->chips; i++)
                speeds[i] = group->n_chip_speeds == 0 ? 1 : group->chip_speeds[i];
        return group->batch == 0 ? 0 : subtask_share(plan, speeds, group->chips, group->batch, shards, err);
}

static int cut_chips(const struct part *part, json_t *ranks, struct err *err)
{
        const Subtask__Group *group = part->group;
        CLEANUP(free_p) struct shard *shards = calloc(group->chips, sizeof(*shards));
        uint64_t before = 0, size = group->end - group->begin;
        int r;

        if (shards == NULL)
                return err_set(err, -ENOMEM, "no memory for the subtask");
        r = subtask_ranks_share(part->plan, group, shards, err);
        for (uint32_t i = 0; r == 0 && i < group->first_rank; i++)
                (void) json_array_append_new(ranks, json_null());
        for (uint32_t i = 0; r == 0 && i < group->chips; i++) {
                uint64_t after = before + shards[i].batch, begin = group->begin, end = group->begin;

                if (group->batch > 0) {
                        begin += shards_begin(size, before, group->batch);
                        end += shards_begin(size, after, group->batch);
                }
                before = after;
                if (json_array_append_new(
                            ranks, entry(part, i, rank_environment(part, i, shards[i].batch, begin, end))) <
                    0)
                        r = err_set(err, -ENOMEM, "no memory for the subtask");
        }
        return r;
}

void subtask_ranks_free(struct subtask_ranks *ranks)
{
        json_decref(ranks->file);
        json_decref(ranks->plan);
        free(ranks->table);
        *ranks = (struct subtask_ranks){ 0 };
}

static int fill(const struct part *part, struct subtask_ranks *ret, struct err *err)
{
        json_t *ranks = json_array();
        struct text table = { 0 };
        int r = cut_chips(part, ranks, err);

        if (r == 0 && launch_frameworks_table(&part->place, &table, err) == 0)
                ret->table = text_take(&table, NULL);
        text_free(&table);
        if (r == 0) {
                ret->file = json_pack("{s:O}", "ranks", ranks);
                ret->plan = pb_json_encode(&part->plan->base);
                ret->world = part->plan->world;
                ret->first_rank = part->group->first_rank;
                ret->chips = part->group->chips;
                r = ret->file == NULL || ret->plan == NULL
                            ? err_set(err, -ENOMEM, "no memory for the subtask")
                            : 0;
        }
        json_decref(ranks);
        return r;
}

int subtask_ranks(const Subtask__Plan *plan, const char *group, const char *folder, char *const *devices,
                  struct subtask_ranks *ret, struct err *err)
{
        struct part part = { .plan = plan, .folder = folder, .devices = devices };
        int r;

        *ret = (struct subtask_ranks){ 0 };
        if (plan == NULL || plan->version != MESSAGE_VERSION)
                return err_set(err, -EINVAL,
                               "subtask: the manager speaks version %u, this launcher %d; install the same "
                               "version",
                               plan == NULL ? 0 : plan->version, MESSAGE_VERSION);
        r = subtask_check(plan, err);
        if (r == 0)
                r = lay_out(&part, group, err);
        if (r == 0) {
                assert(part.group != NULL); /* the one of that name */
                part.staged = subtask_has_stages(plan);
                r = fill(&part, ret, err);
        }
        free(part.ranks);
        if (r < 0)
                subtask_ranks_free(ret);
        return r < 0 ? err_wrap(err, r, "subtask") : 0;
}
