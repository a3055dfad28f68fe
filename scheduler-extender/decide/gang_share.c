/* Pauses are kept as numbers by the namespace's name. */
#include "scheduler-extender/decide/gang_share.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/decide/gang_members.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/share/namespace_share.h"

/* Was its last lease unused, a pause or so ago? */
static bool wasted(const struct ledger *ledger, const char *key, const char *slash)
{
        char name[256];

        return ledger->gang_pauses.map.count > 0 &&
               text_format(name, sizeof(name), "%.*s", (int) (slash - key), key) &&
               name_numbers_get(&ledger->gang_pauses, name) > 0;
}

/* An emergency goes first; else of two namespaces the one whose last lease was used, then the older. */
static bool goes_first(const struct rules_context *ctx, const struct ledger_job *job,
                       const struct ledger_pod *pod)
{
        bool own = wasted(ctx->ledger, job->key, strchr(job->key, '/'));
        bool other = wasted(ctx->ledger, pod->key, pod->name - 1);

        if (pod->request.emergency != ctx->request->emergency)
                return pod->request.emergency;
        return own != other ? own : ctx->created_usec == 0 || pod->created_usec < ctx->created_usec;
}

struct looks {
        size_t count;
        struct overflow_rooms rooms;
};

#define ROOM_NODES_A_LOOK 8 /* to find such room out costs as much as a look at every eighth node */

static void prepare(struct looks *looks, struct rules_context *ctx)
{
        bool found;
        const struct overflow_room *room = overflow_room_of(&looks->rooms, ctx, &found);

        looks->count += found ? ctx->ledger->node_count / ROOM_NODES_A_LOOK : 0;
        rules_prepare_in(ctx, room);
}

static bool is_judged(struct looks *looks, const struct rules_context *ctx, const struct ledger_node *node,
                      enum reason reason)
{
        return looks->count++ < GANG_SHARE_LOOKS && rules_judge(ctx, node) == reason;
}

/* Would the pod have a node if the job leased nothing, and has it none now? */
static bool is_kept_out(struct looks *looks, const struct rules_context *ctx, const struct ledger_job *job)
{
        const struct ledger *ledger = ctx->ledger;
        const struct ledger_job_slot *slot = job->slots;

        while (slot != NULL &&
               (rules_incomplete(ctx, slot->node) || !is_judged(looks, ctx, slot->node, REASON_CHIPS_LEASED)))
                slot = slot->next_in_job;
        for (uint32_t i = 0; slot != NULL && i < ledger->node_count; i++)
                if (is_judged(looks, ctx, ledger->nodes[i], REASON_NONE))
                        return false;
        return slot != NULL && looks->count <= GANG_SHARE_LOOKS;
}

static bool keeps_out(const struct rules_context *ctx, const struct ledger_job *job,
                      const struct ledger_pod *pod, struct looks *looks)
{
        struct request request = pod->request;
        struct rules_context other = { .ledger = ctx->ledger,
                                       .rules = ctx->rules,
                                       .request = &request,
                                       .job = pod->job,
                                       .self = pod,
                                       .created_usec = pod->created_usec,
                                       .now_usec = ctx->now_usec,
                                       .unfiltered = true };

        ledger_chips_only(ctx->ledger, &request);
        request.lone = gang_members_are_lone(pod->job, pod, &request);
        if (request.item_count == 0 ||
            gang_members_are_lacking(pod->job, pod, &request, pod->kinds, pod->kind_count))
                return false;
        prepare(looks, &other);
        return is_kept_out(looks, &other, job);
}

/* Does a pod of another namespace, that goes first, wait for chips that the job has leased? */
static bool keeps_others_out(const struct rules_context *ctx, const struct ledger_job *job)
{
        struct looks looks = { .count = 0 };

        for (const struct ledger_pod *pod = ctx->ledger->pending;
             pod != NULL && looks.count <= GANG_SHARE_LOOKS; pod = pod->next_pending)
                if (ledger_pods_waits(pod) && !ledger_pods_same_namespace(pod->key, job->key) &&
                    goes_first(ctx, job, pod) &&
                    !(pod->job != NULL && gang_share_paused(ctx->ledger, pod->job, ctx->now_usec)) &&
                    keeps_out(ctx, job, pod, &looks))
                        return true;
        return false;
}

/* A lease larger than the share lets others go first, for as long as a lease lasts: who has not taken the
 * chips by then cannot. */
static bool gives_way(const struct rules_context *ctx, struct ledger_job *job)
{
        if (job->gave_way_usec > ctx->now_usec || !keeps_others_out(ctx, job))
                job->gave_way_usec = 0;
        else if (job->gave_way_usec == 0)
                job->gave_way_usec = ctx->now_usec;
        return job->gave_way_usec != 0 && ctx->now_usec - job->gave_way_usec < ctx->rules->lease_usec;
}

static bool is_among(const uint32_t *list, size_t count, uint32_t resource)
{
        for (size_t i = 0; i < count; i++)
                if (list[i] == resource)
                        return true;
        return false;
}

/* Each resource is added up once, however many members have chips of it. */
bool gang_share_allows(const struct rules_context *ctx, struct ledger_job *job)
{
        uint32_t seen[REQUEST_KINDS_MAX];
        size_t seen_count = 0;
        bool larger = false;

        for (const struct ledger_job_slot *slot = job->slots; slot != NULL; slot = slot->next_in_job) {
                uint32_t resource = slot->request.items[0].resource;
                uint64_t others;

                if (is_among(seen, seen_count, resource))
                        continue;
                if (seen_count < ARRAY_SIZE(seen))
                        seen[seen_count++] = resource;
                others = namespace_share_leased(ctx->ledger, job->key, resource, job);
                if (namespace_share_has(ctx->rules, namespace_share_usable(ctx->ledger, resource),
                                        others + namespace_share_leased_by(job, resource)))
                        continue;
                if (others > 0)
                        return false;
                larger = true;
        }
        return !larger || !gives_way(ctx, job);
}

/* Since its last pause ended: longer than that one was, and than it takes to let others go first and to have
 * one more lease go unused? */
static bool kept_quiet(const struct ledger *ledger, const char *name, uint64_t lease_usec, uint64_t now_usec)
{
        return now_usec > name_numbers_get(&ledger->gang_pause_ends, name) +
                                  name_numbers_get(&ledger->gang_pauses, name) + 3 * lease_usec;
}

static void begin_pause(struct ledger *ledger, const char *name, uint64_t lease_usec, uint64_t now_usec)
{
        uint64_t pause = name_numbers_get(&ledger->gang_pauses, name);
        uint64_t ends = name_numbers_get(&ledger->gang_pause_ends, name);

        if (pause == 0 || kept_quiet(ledger, name, lease_usec, now_usec))
                pause = lease_usec;
        else if (now_usec >= ends) /* else it was leased before the pause that is on */
                pause = 2 * pause;
        if (pause > GANG_PAUSE_MAX_USEC)
                pause = GANG_PAUSE_MAX_USEC;
        if (name_numbers_set(&ledger->gang_pauses, name, pause) == 0)
                (void) name_numbers_set(&ledger->gang_pause_ends, name, now_usec + pause);
}

void gang_share_unused(struct ledger *ledger, const struct ledger_job *job, uint64_t lease_usec,
                       uint64_t now_usec)
{
        char name[256];

        if (ledger_jobs_namespace(job, name, sizeof(name)))
                begin_pause(ledger, name, lease_usec, now_usec);
}

void gang_share_left(struct ledger *ledger, uint64_t lease_usec, uint64_t now_usec)
{
        for (struct name_map_entry *e; (e = name_map_first(&ledger->gang_left.map)) != NULL;) {
                begin_pause(ledger, e->key, lease_usec, now_usec);
                name_numbers_drop(&ledger->gang_left, e->key);
        }
}

bool gang_share_paused(const struct ledger *ledger, const struct ledger_job *job, uint64_t now_usec)
{
        char name[256];
        uint64_t ends = ledger_jobs_namespace(job, name, sizeof(name))
                                ? name_numbers_get(&ledger->gang_pause_ends, name)
                                : 0;

        return ends > now_usec && ends - now_usec <= GANG_PAUSE_MAX_USEC; /* a clock that went back ends it */
}

/* Jobs that let others go first until now. */
static size_t gave_way_enough(const struct ledger *ledger, uint64_t lease_usec, uint64_t now_usec)
{
        size_t count = 0;

        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                for (const struct ledger_job *job = ledger->jobs[i]; job != NULL; job = job->next)
                        count += job->gave_way_usec > 0 &&
                                 job->gave_way_usec + lease_usec > ledger->gang_resumed_usec &&
                                 job->gave_way_usec + lease_usec <= now_usec;
        return count;
}

size_t gang_share_resume(struct ledger *ledger, uint64_t lease_usec, uint64_t now_usec)
{
        uint64_t last_usec = ledger->gang_resumed_usec;
        size_t resumed = gave_way_enough(ledger, lease_usec, now_usec);

        ledger->gang_resumed_usec = now_usec;
        for (struct name_map_entry *e = name_map_first(&ledger->gang_pauses.map), *next; e != NULL;
             e = next) {
                uint64_t ends = name_numbers_get(&ledger->gang_pause_ends, e->key);

                next = name_map_next(&ledger->gang_pauses.map, e);
                resumed += ends > last_usec && ends <= now_usec;
                if (kept_quiet(ledger, e->key, lease_usec, now_usec)) {
                        name_numbers_drop(&ledger->gang_pause_ends, e->key);
                        name_numbers_drop(&ledger->gang_pauses, e->key);
                }
        }
        return resumed;
}
