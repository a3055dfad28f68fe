/* The whole world as its ranks are told it, and the files of the part that is this group's. */
#include "job/launcher/subtask_ranks.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/pb_json.h"
#include "base/text.h"
#include "job/launcher/message.h"
#include "job/plan/launch_frameworks.h"
#include "job/plan/launch_levels.h"
#include "job/plan/launch_ranks.h"
#include "planner/shards/live_shares.h"

#define PLACES_MAX ((uint64_t) 1 << 22) /* every rank is told all places: minutes and gigabytes beyond it */

/* One group's part, and everybody's place. */
struct part {
        const Subtask__Plan *plan;
        const Subtask__Group *group;
        struct launch_rank *ranks; /* of the whole world */
        uint64_t (*layers)[2];     /* of each */
        struct launch_world place;
        struct launch_levels levels;
        uint64_t before; /* samples of a batch that are given out */
        double left;     /* of their weights */
};

/* A rank's part of a batch, and of the group's samples in the same places. */
static void cut_rank(struct part *part, const Subtask__Group *group, uint64_t before, uint64_t batch,
                     struct launch_rank *rank)
{
        uint64_t size = group->end - group->begin;

        rank->batch = batch;
        rank->weight = launch_weight(part->before, batch, part->plan->global_batch, &part->left);
        rank->begin = group->begin + shards_begin(size, before, group->batch);
        rank->end = group->begin + shards_begin(size, before + batch, group->batch);
        part->before += batch;
}

static void add_ranks(struct part *part, const Subtask__Group *group, bool staged)
{
        uint64_t before = 0;

        for (uint32_t k = 0; k < group->chips; k++) {
                size_t index = part->place.count++;

                part->ranks[index] =
                        (struct launch_rank){ .node = group->name,
                                              .group = group->name,
                                              .address = group->address,
                                              .host = group->node[0] != '\0' ? group->node : NULL,
                                              .network_mbps = group->network_mbps,
                                              .runtime = group->runtime,
                                              .vendor = group->vendor,
                                              .device_index = k,
                                              .server = subtask_is_server(group) };
                if (staged && k < group->n_stages) {
                        part->layers[index][0] = group->stages[k]->first;
                        part->layers[index][1] = group->stages[k]->last;
                        part->ranks[index].layers = part->layers[index];
                }
                if (group->batch == 0)
                        continue;
                cut_rank(part, group, before, group->chip_batches[k], &part->ranks[index]);
                before += group->chip_batches[k];
        }
}

static int add_group(struct part *part, const Subtask__Group *group, bool staged, struct err *err)
{
        if (group->first_rank != part->place.count)
                return err_set(err, -EINVAL, "groups: first_rank of %s is another group's", group->name);
        if (group->address[0] == '\0' || group->port == 0)
                return err_set(err, -EINVAL, "groups: address and port of %s are needed", group->name);
        if (group->batch > part->plan->global_batch || group->begin > group->end)
                return err_set(err, -EINVAL, "groups: the part of %s is larger than the whole", group->name);
        if (group->batch > 0 &&
            (group->n_chip_batches != group->chips || subtask_chips(group) != group->batch))
                return err_set(err, -EINVAL, "groups: chip_batches of %s: %u that add up to %llu are needed",
                               group->name, group->chips, (unsigned long long) group->batch);
        if (part->place.count == 0)
                part->place.port = group->port;
        add_ranks(part, group, staged);
        return 0;
}

static int lay_out(struct part *part, const char *name, struct err *err)
{
        const Subtask__Plan *plan = part->plan;
        bool staged = subtask_has_stages(plan);
        int r = 0;

        part->ranks = calloc(SUBTASK_CHIPS_MAX, sizeof(*part->ranks));
        part->layers = calloc(SUBTASK_CHIPS_MAX, sizeof(*part->layers));
        if (part->ranks == NULL || part->layers == NULL)
                return err_set(err, -ENOMEM, "no memory for the subtask");
        part->place = (struct launch_world){ .ranks = part->ranks,
                                             .job = plan->job,
                                             .global_batch = plan->global_batch,
                                             .segments = plan->segments,
                                             .segment_count = plan->n_segments,
                                             .number = plan->world,
                                             .restarts = plan->restarts,
                                             .restart_max = plan->restart == NULL ? 0 : plan->restart->max };
        for (size_t i = 0; r == 0 && i < plan->n_groups; i++) {
                const Subtask__Group *group = plan->groups[i];

                if (group->used && strcmp(group->name, name) == 0)
                        part->group = group;
                if (group->used)
                        r = add_group(part, group, staged, err);
        }
        if (r < 0)
                return r;
        if (part->group == NULL)
                return err_set(err, -EINVAL, "groups: %.63s has no part", name);
        if (launch_levels_choose_plan(plan, &part->levels) < 0)
                return err_set(err, -ENOMEM, "no memory for the subtask");
        part->place.levels = part->levels.proposed;
        if (part->group->chips * part->place.count > PLACES_MAX)
                return err_set(err, -EINVAL, "chips: %u of a world of %zu; a group that large has to be cut",
                               part->group->chips, part->place.count);
        return 0;
}

/* What this group alone knows of its chips. */
static void name_devices(const struct part *part, char *const *devices)
{
        for (size_t k = 0; devices != NULL && k < part->group->chips; k++) {
                part->ranks[part->group->first_rank + k].device = devices[k];
                part->ranks[part->group->first_rank + k].visible = devices[k];
        }
}

/* Return: NULL = no memory, or a word that is no text. */
static json_t *rank_file(const struct part *part, const struct launch_ranks_files *files)
{
        const Subtask__Plan *plan = part->plan;
        json_t *ranks = json_array();
        int r = 0;

        for (uint32_t i = 0; i < part->group->first_rank; i++)
                (void) json_array_append_new(ranks, json_null());
        for (size_t i = part->group->first_rank; r == 0 && i < part->group->first_rank + part->group->chips;
             i++) {
                json_t *entry = launch_ranks_entry(&part->place, i, i, files),
                       *environment = json_object_get(entry, "environment");

                for (size_t k = 0; k < plan->n_environment; k++)
                        (void) json_object_set_new(environment, plan->environment[k]->key,
                                                   json_string(plan->environment[k]->value));
                r = json_array_append_new(ranks, entry);
        }
        if (r == 0)
                return json_pack("{s:o}", "ranks", ranks);
        json_decref(ranks);
        return NULL;
}

void subtask_ranks_free(struct subtask_ranks *ranks)
{
        json_decref(ranks->file);
        json_decref(ranks->plan);
        free(ranks->table);
        *ranks = (struct subtask_ranks){ 0 };
}

static int fill(const struct part *part, const struct subtask_ranks_host *host, struct subtask_ranks *ret,
                struct err *err)
{
        char plan[PATH_MAX], path[PATH_MAX], shares[PATH_MAX];
        bool may_change = subtask_may_share_anew(part->plan) && part->place.count <= LIVE_SHARES_RANKS_MAX;
        const struct launch_ranks_files files = { .folder = host->folder,
                                                  .tag = "rank",
                                                  .plan = plan,
                                                  .table = path,
                                                  .checkpoint = part->plan->checkpoint,
                                                  .shares = may_change ? shares : NULL,
                                                  .threads = host->threads };
        struct text table = { 0 };

        (void) text_format(plan, sizeof(plan), "%s/subtask-%s.json", host->folder, part->group->name);
        (void) text_format(path, sizeof(path), "%s/ranktable-%s.json", host->folder, part->group->name);
        (void) launch_ranks_path(shares, sizeof(shares), &files, part->group->first_rank, "shares");
        if (launch_frameworks_table(&part->place, &table, err) == 0)
                ret->table = text_take(&table, NULL);
        text_free(&table);
        ret->file = rank_file(part, &files);
        ret->plan = pb_json_encode(&part->plan->base);
        ret->world = part->plan->world;
        ret->first_rank = part->group->first_rank;
        ret->chips = part->group->chips;
        return ret->file == NULL || ret->plan == NULL ||
                               json_object_set_new(ret->plan, "ranks", launch_ranks_plan(&part->place)) < 0
                       ? err_set(err, -EINVAL, "no memory, or a name is no text")
                       : 0;
}

int subtask_ranks(const Subtask__Plan *plan, const char *group, const struct subtask_ranks_host *host,
                  struct subtask_ranks *ret, struct err *err)
{
        struct part part = { .plan = plan, .left = 1 };
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
                name_devices(&part, host->devices);
                r = fill(&part, host, ret, err);
        }
        launch_levels_free(&part.levels);
        free(part.ranks);
        free(part.layers);
        if (r < 0)
                subtask_ranks_free(ret);
        return r < 0 ? err_wrap(err, r, "subtask") : 0;
}
