/* Depth first over members and nodes, with slots in the ledger as the state of the search. */
#include "scheduler-extender/decide/gang_search.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "scheduler-extender/decide/gang.h"
#include "scheduler-extender/decide/node_room.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

#define GANG_SEARCH_MEMBERS 64 /* deeper than this the search would never end */

struct search {
        struct ledger *ledger;
        const struct rules_context *plan;
        struct ledger_job *job;
        const struct request *members;
        size_t count;
        size_t steps;
        bool one_match;             /* all members may go onto the same nodes: only then are nodes alike */
        bool neighbourly;           /* what is around them matters */
        struct request_needs needs; /* of all members */
        bool beside;                /* some member asks for more than chips and these */
};

static uint32_t open_chips(const struct rules_context *ctx, const struct ledger_node *node)
{
        struct rules_room room;

        rules_room(ctx, node, 0, &room);
        return room.open;
}

/* Nodes with equal signatures are alike for the rest of the search; 0 = like no other. */
static uint32_t signature(const struct search *s, const struct ledger_node *node, uint32_t open)
{
        if (node->group_count != 1 || node->backfills != NULL || !s->one_match || s->beside ||
            s->neighbourly || !node_room_holds(s->plan, node, &s->needs, s->count))
                return 0;
        return (open << 8 | (uint32_t) node->node_class << 1 | node->reserved) + 1;
}

static bool tried_alike(const uint32_t *tried, size_t count, uint32_t like)
{
        for (size_t i = 0; i < count && like != 0; i++)
                if (tried[i] == like)
                        return true;
        return false;
}

static int place(struct search *s, size_t member)
{
        uint32_t tried[64];
        size_t tried_count = 0;
        struct rules_context ctx = *s->plan;

        if (member == s->count)
                return 1;
        ctx.request = &s->members[member];
        for (uint32_t pass = 0; pass < 2; pass++) /* exact fits first: they cost nothing */
                for (uint32_t i = 0; i < s->ledger->node_count; i++) {
                        struct ledger_node *node = s->ledger->nodes[i];
                        uint32_t open;
                        int r;

                        if (++s->steps > GANG_SEARCH_STEPS)
                                return 0;
                        if (rules_judge(&ctx, node) != REASON_NONE)
                                continue;
                        open = open_chips(&ctx, node);
                        if ((pass == 0) != (open == request_chips(ctx.request)) ||
                            tried_alike(tried, tried_count, signature(s, node, open)))
                                continue;
                        if (tried_count < ARRAY_SIZE(tried))
                                tried[tried_count++] = signature(s, node, open);
                        if (ledger_jobs_add_slot(s->ledger, s->job, node, ctx.request) < 0)
                                return 0;
                        r = place(s, member + 1);
                        if (r != 0)
                                return r;
                        ledger_jobs_drop_slot(s->ledger, s->job->slots);
                }
        return 0;
}

int gang_search(struct ledger *ledger, const struct rules_context *plan, struct ledger_job *job,
                const struct request *members, size_t count)
{
        struct search search = { .ledger = ledger,
                                 .plan = plan,
                                 .job = job,
                                 .members = members,
                                 .count = count,
                                 .one_match = true };
        struct ledger_room all = { .pods = 0 };
        int r;

        if (count > GANG_SEARCH_MEMBERS)
                return 0;
        for (size_t i = 0; i < count; i++) {
                search.one_match = search.one_match && members[i].match == members[0].match;
                search.beside = search.beside || members[i].beside_count > 0;
                search.neighbourly = search.neighbourly || members[i].demands != 0 || members[i].labels != 0;
                ledger_room_add(&all, &members[i], 1);
        }
        search.needs = all.asked;
        job->references++; /* the job stays while its last slot comes and goes */
        r = place(&search, 0);
        ledger->searched += search.steps;
        job->references--;
        return r;
}
