/* What claims ask for is looked up anew each time: templates and inventories may come after the pod. */
#include "scheduler-extender/claims/claims_members.h"

#include <string.h>

#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

static bool is_of_gang(const struct request *request, size_t kind_count)
{
        return request->gang_size > 1 || kind_count > 0 || request->group != REQUEST_GROUP_NONE;
}

/* Return: are these now chips of the request? */
static bool turn(const struct cluster *c, const struct device_asks *asks, struct request *request)
{
        struct request chips = *request;

        ledger_chips_only(c->ledger, &chips);
        if (asks->count == 0 || !asks->own || chips.item_count > 0)
                return false;
        device_asks_anywhere(asks, c->ledger, request);
        request->by_claims = 1;
        return true;
}

/* What its claims came to before: of all its items the chips. */
static void take_back(const struct ledger *ledger, struct request *request)
{
        uint8_t kept = 0;

        for (size_t i = 0; i < request->item_count; i++)
                if (request->items[i].resource != 0 && !ledger_chips_has(ledger, request->items[i].resource))
                        request->items[kept++] = request->items[i];
        memset(&request->items[kept], 0, (REQUEST_ITEMS_MAX - kept) * sizeof(request->items[0]));
        request->item_count = kept;
        request->by_claims = 0;
}

/* A member that waits. */
static void turn_member(struct cluster *c, struct ledger_pod *pod)
{
        struct request request = pod->request;
        struct device_asks asks;

        if (!pod->has_claims || pod->node != NULL || pod->claimed || pod->ended ||
            !is_of_gang(&request, pod->kind_count))
                return;
        if (request.by_claims)
                take_back(c->ledger, &request);
        (void) cluster_claims_asked_by(c, pod->key, &asks);
        if (!turn(c, &asks, &request) || memcmp(&request, &pod->request, sizeof(request)) == 0)
                return;
        pod->request = request;
        ledger_jobs_recount(pod);
        c->ledger->generation++;
}

void claims_members_ask(struct cluster *c, struct ledger_job *job, const struct ledger_pod *self,
                        struct device_asks *asks, struct request *request)
{
        if (job == NULL || job->training != NULL || job->place_count > 0)
                return;
        for (struct ledger_pod *pod = job->pods; pod != NULL; pod = pod->next_in_job)
                turn_member(c, pod);
        if (self == NULL) {
                if (is_of_gang(request, 0) && turn(c, asks, request))
                        asks->count = 0;
                return;
        }
        if (!self->request.by_claims)
                return;
        request->by_claims = 1;
        request->same_group = self->request.same_group;
        memcpy(request->items, self->request.items, sizeof(request->items));
        request->item_count = asks->count > 0 && !self->claimed ? self->request.item_count : 0;
        asks->count = 0;
        ledger_chips_only(c->ledger, request);
}
