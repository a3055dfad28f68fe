/* The second level: one group's part, cut over its chips. */
#include "job/launcher/subtask.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/vendor/runtime.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "job/launcher/rendezvous_pb.h"
#include "job/plan/launch_frameworks.h"
#include "launcher/subtask_read.h"
#include "planner/shards/shards.h"

#define PLACES_MAX ((uint64_t) 1 << 22) /* every rank is told all places: minutes and gigabytes beyond it */

struct part {
        const char *job, *group, *runtime, *vendor, *checkpoint;
        uint64_t chips, first_rank, batch, global_batch, begin, end, world, restarts, restart_max;
        bool server;
        const json_t *speeds, *environment;
        struct launch_rank *ranks; /* of the whole world */
        struct launch_world place;
};

static int read_hosts(const json_t *hosts, struct part *part, struct err *err)
{
        size_t count = json_array_size(hosts);

        part->ranks = calloc(SUBTASK_CHIPS_MAX, sizeof(*part->ranks));
        if (part->ranks == NULL)
                return err_set(err, -ENOMEM, "no memory for the subtask");
        if (count == 0 || count > SUBTASK_GROUPS_MAX)
                return err_set(err, -EINVAL, "hosts: a list of 1 to %d is needed", SUBTASK_GROUPS_MAX);
        for (size_t i = 0; i < count; i++) {
                const json_t *host = json_array_get(hosts, i);
                const char *name = json_string_value(json_object_get(host, "name"));
                const char *runtime = json_string_value(json_object_get(host, "runtime"));
                const char *address = json_string_value(json_object_get(host, "address"));
                uint64_t chips = 0, port = 0;
                int r = subtask_read_uint(host, "chips", 1, RENDEZVOUS_CHIPS_MAX, &chips, err);

                if (r == 0)
                        r = subtask_read_uint(host, "port", 1, 65535, &port, err);
                if (r == 0 && (name == NULL || runtime == NULL || address == NULL ||
                               part->place.count + chips > SUBTASK_CHIPS_MAX))
                        r = err_set(err, -EINVAL,
                                    "name, runtime and address are needed, and not too many chips");
                if (r < 0)
                        return err_wrap(err, r, "hosts[%zu]", i);
                part->place.port = i == 0 ? (unsigned) port : part->place.port;
                for (uint64_t k = 0; k < chips; k++)
                        part->ranks[part->place.count++] =
                                (struct launch_rank){ .node = name,
                                                      .address = address,
                                                      .runtime = runtime,
                                                      .device_index = (unsigned) k,
                                                      .server =
                                                              json_is_true(json_object_get(host, "server")) };
        }
        part->place.ranks = part->ranks;
        part->place.job = part->job;
        return 0;
}

static int read_shard(const json_t *shard, struct part *part, struct err *err)
{
        if (!json_is_integer(json_array_get(shard, 0)) || !json_is_integer(json_array_get(shard, 1)) ||
            json_integer_value(json_array_get(shard, 0)) < 0 ||
            json_integer_value(json_array_get(shard, 1)) < json_integer_value(json_array_get(shard, 0)))
                return err_set(err, -EINVAL, "shard: [begin, end] is needed");
        part->begin = (uint64_t) json_integer_value(json_array_get(shard, 0));
        part->end = (uint64_t) json_integer_value(json_array_get(shard, 1));
        if (part->end > (uint64_t) 1 << 40)
                return err_set(err, -EINVAL, "shard: the end is beyond any epoch");
        return 0;
}

static const char *word_of(const json_t *value, const char *name)
{
        const char *word = json_string_value(json_object_get(value, name));

        return word == NULL ? "" : word;
}

static int read_part(const json_t *value, struct part *part, struct err *err)
{
        uint64_t version = 0;
        int r = subtask_read_uint(value, "version", 0, 1000000, &version, err);

        if (r == 0 && version != RENDEZVOUS_VERSION)
                return err_set(err, -EINVAL,
                               "version: the manager speaks %llu, this launcher %d; install the same version",
                               (unsigned long long) version, RENDEZVOUS_VERSION);
        part->job = word_of(value, "job");
        part->group = word_of(value, "group");
        part->runtime = word_of(value, "runtime");
        part->vendor = word_of(value, "vendor");
        part->checkpoint = word_of(value, "checkpoint");
        part->speeds = json_object_get(value, "speeds");
        part->environment = json_object_get(value, "environment");
        if (r == 0 && (part->job[0] == '\0' || part->group[0] == '\0' || part->runtime[0] == '\0'))
                r = err_set(err, -EINVAL, "job, group and runtime are needed");
        if (r == 0)
                r = subtask_read_uint(value, "chips", 1, RENDEZVOUS_CHIPS_MAX, &part->chips, err);
        if (r == 0)
                r = subtask_read_uint(value, "first_rank", 0, 1 << 20, &part->first_rank, err);
        if (r == 0)
                r = subtask_read_uint(value, "batch", 0, 1 << 24, &part->batch, err);
        if (r == 0)
                r = subtask_read_uint(value, "global_batch", 1, 1 << 24, &part->global_batch, err);
        if (r == 0)
                r = subtask_read_optional(value, "world", (uint64_t) 1 << 32, &part->world, err);
        if (r == 0)
                r = subtask_read_optional(value, "restarts", (uint64_t) 1 << 32, &part->restarts, err);
        if (r == 0)
                r = subtask_read_optional(value, "restart_max", (uint64_t) 1 << 32, &part->restart_max, err);
        if (r == 0)
                r = read_shard(json_object_get(value, "shard"), part, err);
        if (r == 0)
                r = read_hosts(json_object_get(value, "hosts"), part, err);
        if (r == 0 &&
            (part->first_rank + part->chips > part->place.count || part->batch > part->global_batch))
                r = err_set(err, -EINVAL, "the part is larger than the whole");
        if (r == 0 && part->chips * part->place.count > PLACES_MAX)
                r = err_set(err, -EINVAL, "chips: %llu of a world of %zu; a group that large has to be cut",
                            (unsigned long long) part->chips, part->place.count);
        if (r == 0 && strcmp(part->ranks[part->first_rank].node, part->group) != 0)
                r = err_set(err, -EINVAL, "first_rank: it is of another group");
        if (r == 0)
                part->server = part->ranks[part->first_rank].server;
        return r;
}

static void set(json_t *environment, const char *name, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void set(json_t *environment, const char *name, const char *fmt, ...)
{
        char value[4096];
        va_list values;

        va_start(values, fmt);
        (void) vsnprintf(value, sizeof(value), fmt, values); /* NOLINT: paths and numbers, cut at their end */
        va_end(values);
        (void) json_object_set_new(environment, name, json_string(value));
}

static void set_devices(const struct part *part, size_t chip, char *const *devices, json_t *environment)
{
        const char *variable = runtime_devices_variable(part->runtime);

        if (devices != NULL)
                set(environment, "REMUDA_DEVICES", "%s", devices[chip]);
        if (variable != NULL && devices != NULL)
                set(environment, variable, "%s", devices[chip]);
        else if (variable != NULL)
                set(environment, variable, "%zu", chip);
}

static json_t *rank_environment(const struct part *part, size_t chip, const struct shard *shard,
                                uint64_t begin, uint64_t end, const char *folder, char *const *devices)
{
        uint64_t rank = part->first_rank + chip;
        json_t *environment = json_object();
        char table[4096];

        (void) text_format(table, sizeof(table), "%s/ranktable-%s.json", folder, part->group);
        launch_frameworks_add(&part->place, rank, table, environment);
        set(environment, "TORCHELASTIC_RESTART_COUNT", "%llu", (unsigned long long) part->restarts);
        set(environment, "TORCHELASTIC_MAX_RESTARTS", "%llu", (unsigned long long) part->restart_max);
        set(environment, "TORCHELASTIC_RUN_ID", "%s", part->job);
        set(environment, "REMUDA_JOB", "%s", part->job);
        set(environment, "REMUDA_GROUP", "%s", part->group);
        set(environment, "REMUDA_ROLE", "%s", part->server ? "server" : "worker");
        set(environment, "REMUDA_VENDOR", "%s", part->vendor);
        set(environment, "REMUDA_BATCH", "%llu", (unsigned long long) shard->batch);
        set(environment, "REMUDA_WEIGHT", "%.17g", (double) shard->batch / (double) part->global_batch);
        set(environment, "REMUDA_WORLD", "%llu", (unsigned long long) part->world);
        set(environment, "REMUDA_RESTARTS", "%llu", (unsigned long long) part->restarts);
        set(environment, "REMUDA_PROGRESS", "%s/rank-%llu.progress", folder, (unsigned long long) rank);
        set(environment, "REMUDA_PLAN", "%s/subtask-%s.json", folder, part->group);
        if (end > begin)
                set(environment, "REMUDA_SHARD", "%llu:%llu", (unsigned long long) begin,
                    (unsigned long long) end);
        if (part->checkpoint[0] != '\0')
                set(environment, "REMUDA_CHECKPOINT", "%s", part->checkpoint);
        set_devices(part, chip, devices, environment);
        (void) json_object_update((json_t *) environment, (json_t *) part->environment);
        return environment;
}

static json_t *entry(const struct part *part, size_t chip, const struct shard *shard, uint64_t begin,
                     uint64_t end, const char *folder, char *const *devices)
{
        unsigned long long rank = part->first_rank + chip;
        char out[4096], errors[4096], report[4096];

        (void) text_format(out, sizeof(out), "%s/rank-%llu.out", folder, rank);
        (void) text_format(errors, sizeof(errors), "%s/rank-%llu.err", folder, rank);
        (void) text_format(report, sizeof(report), "%s/rank-%llu.report", folder, rank);
        return json_pack("{s:s, s:o, s:s, s:s, s:s}", "runtime", part->runtime, "environment",
                         rank_environment(part, chip, shard, begin, end, folder, devices), "stdout", out,
                         "stderr", errors, "report", report);
}

static int cut_chips(const struct part *part, const char *folder, char *const *devices, json_t *ranks,
                     struct err *err)
{
        CLEANUP(free_p) struct shard *shards = calloc(part->chips, sizeof(*shards));
        CLEANUP(free_p) double *speeds = calloc(part->chips, sizeof(*speeds));
        uint64_t before = 0, size = part->end - part->begin, begin, end;
        int r = 0;

        if (shards == NULL || speeds == NULL)
                return err_set(err, -ENOMEM, "no memory for the subtask");
        for (size_t i = 0; i < part->chips;
             i++) { /* the chips of a group are of one model, unless one was seen slow */
                const json_t *speed = json_array_get(part->speeds, i);

                speeds[i] = json_is_number(speed) ? json_number_value(speed) : 1;
                if (!(speeds[i] >= 1e-9 && speeds[i] <= 1e18))
                        return err_set(err, -EINVAL, "speeds[%zu]: a number above 0 is needed", i);
        }
        if (part->batch > 0)
                r = subtask_share(speeds, part->chips, part->batch, shards, err);
        for (uint64_t i = 0; r == 0 && i < part->first_rank; i++)
                (void) json_array_append_new(ranks, json_null());
        for (size_t i = 0; r == 0 && i < part->chips; i++) {
                begin = part->begin + (part->batch == 0 ? 0 : shards_begin(size, before, part->batch));
                before += shards[i].batch;
                end = part->begin + (part->batch == 0 ? 0 : shards_begin(size, before, part->batch));
                if (json_array_append_new(ranks, entry(part, i, &shards[i], begin, end, folder, devices)) < 0)
                        r = err_set(err, -ENOMEM, "no memory for the subtask");
        }
        return r;
}

void subtask_ranks_free(struct subtask_ranks *ranks)
{
        json_decref(ranks->file);
        free(ranks->table);
        *ranks = (struct subtask_ranks){ 0 };
}

static int fill(const struct part *part, const char *folder, char *const *devices, struct subtask_ranks *ret,
                struct err *err)
{
        json_t *ranks = json_array();
        struct text table = { 0 };
        int r = cut_chips(part, folder, devices, ranks, err);

        if (r == 0 && launch_frameworks_table(&part->place, &table, err) == 0)
                ret->table = text_take(&table, NULL);
        text_free(&table);
        if (r == 0) {
                ret->file = json_pack("{s:O}", "ranks", ranks);
                ret->world = part->world;
                ret->first_rank = part->first_rank;
                ret->chips = part->chips;
                r = ret->file == NULL ? err_set(err, -ENOMEM, "no memory for the subtask") : 0;
        }
        json_decref(ranks);
        return r;
}

int subtask_cut(const char *text, const char *folder, char *const *devices, struct subtask_ranks *ret,
                struct err *err)
{
        json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        struct part part = { 0 };
        int r;

        *ret = (struct subtask_ranks){ 0 };
        if (!json_is_object(value)) {
                json_decref(value);
                return err_set(err, -EINVAL, "subtask: not a JSON object");
        }
        r = read_part(value, &part, err);
        if (r == 0)
                r = fill(&part, folder, devices, ret, err);
        free(part.ranks);
        json_decref(value);
        return r < 0 ? err_wrap(err, r, "subtask") : 0;
}
