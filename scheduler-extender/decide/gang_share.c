/* Leases are added up by namespace; pauses are kept as numbers by its name. */
#include "scheduler-extender/decide/gang_share.h"

#include <string.h>

#include "base/text.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

static size_t namespace_bytes(const struct ledger_job *job)
{
        return (size_t) (strchr(job->key, '/') - job->key);
}

static uint64_t leased_by(const struct ledger_job *job, uint32_t resource)
{
        uint64_t chips = 0;

        for (const struct ledger_job_slot *slot = job->slots; slot != NULL; slot = slot->next_in_job)
                for (size_t i = 0; i < slot->request.item_count; i++)
                        chips += slot->request.items[i].resource == resource ? slot->request.items[i].chips
                                                                             : 0;
        return chips;
}

/* By the other gangs of its namespace. */
static uint64_t leased_by_others(const struct ledger *ledger, const struct ledger_job *job, uint32_t resource)
{
        size_t bytes = namespace_bytes(job) + 1;
        uint64_t chips = 0;

        for (size_t i = 0; i < LEDGER_JOB_BUCKETS; i++)
                for (const struct ledger_job *other = ledger->jobs[i]; other != NULL; other = other->next)
                        if (other != job && other->place_count == 0 &&
                            strncmp(other->key, job->key, bytes) == 0)
                                chips += leased_by(other, resource);
        return chips;
}

uint64_t gang_share_usable(const struct ledger *ledger, uint32_t resource)
{
        uint64_t chips = 0;

        for (uint32_t n = 0; n < ledger->node_count; n++)
                for (uint32_t g = 0; g < ledger->nodes[n]->group_count; g++)
                        if (ledger->nodes[n]->groups[g].resource == resource)
                                chips += ledger->nodes[n]->groups[g].usable;
        return chips;
}

bool gang_share_allows(const struct ledger *ledger, const struct rules *rules, const struct ledger_job *job)
{
        for (const struct ledger_job_slot *slot = job->slots; slot != NULL && rules->lease_share_percent > 0;
             slot = slot->next_in_job) {
                uint32_t resource = slot->request.items[0].resource;
                uint64_t others = leased_by_others(ledger, job, resource);

                if (others > 0 && (others + leased_by(job, resource)) * 100 >
                                          gang_share_usable(ledger, resource) * rules->lease_share_percent)
                        return false;
        }
        return true;
}

static bool namespace_of(const struct ledger_job *job, char *ret, size_t bytes)
{
        return text_format(ret, bytes, "%.*s", (int) namespace_bytes(job), job->key);
}

void gang_share_unused(struct ledger *ledger, const struct ledger_job *job, uint64_t lease_usec,
                       uint64_t now_usec)
{
        uint64_t pause, ended;
        char name[256];

        if (!namespace_of(job, name, sizeof(name)))
                return;
        pause = name_numbers_get(&ledger->gang_pauses, name);
        ended = name_numbers_get(&ledger->gang_pause_ends, name);
        pause = pause == 0 || now_usec > ended + pause + lease_usec ? lease_usec : 2 * pause;
        if (pause > GANG_PAUSE_MAX_USEC)
                pause = GANG_PAUSE_MAX_USEC;
        if (name_numbers_set(&ledger->gang_pauses, name, pause) == 0)
                (void) name_numbers_set(&ledger->gang_pause_ends, name, now_usec + pause);
}

bool gang_share_paused(const struct ledger *ledger, const struct ledger_job *job, uint64_t now_usec)
{
        char name[256];
        uint64_t ends =
                namespace_of(job, name, sizeof(name)) ? name_numbers_get(&ledger->gang_pause_ends, name) : 0;

        return ends > now_usec && ends - now_usec <= GANG_PAUSE_MAX_USEC; /* a clock that went back ends it */
}

size_t gang_share_resume(struct ledger *ledger, uint64_t lease_usec, uint64_t now_usec)
{
        uint64_t last_usec = ledger->gang_resumed_usec;
        size_t resumed = 0;

        ledger->gang_resumed_usec = now_usec;
        for (struct name_map_entry *e = name_map_first(&ledger->gang_pauses.map), *next; e != NULL;
             e = next) {
                uint64_t ends = name_numbers_get(&ledger->gang_pause_ends, e->key);

                next = name_map_next(&ledger->gang_pauses.map, e);
                resumed += ends > last_usec && ends <= now_usec;
                if (now_usec > ends + name_numbers_get(&ledger->gang_pauses, e->key) + lease_usec) {
                        name_numbers_drop(&ledger->gang_pause_ends, e->key);
                        name_numbers_drop(&ledger->gang_pauses, e->key);
                }
        }
        return resumed;
}
