/* The devices of a pod's claims beside those that its node offers, and the patience. */
#include "scheduler-extender/claims/claims_lost.h"

#include <stddef.h>
#include <string.h>

#include "scheduler-extender/claims/claims_internal.h"

/* Return: does a slice of the pool have it? @ret_known: is all of the pool there? */
static bool is_offered(const struct place *place, const struct result *result, bool *ret_known)
{
        *ret_known = false;
        for (const struct slice *s = place->slices; s != NULL; s = s->next) {
                if (!s->counts || !same_pool(s, result->driver, result->pool))
                        continue;
                *ret_known = s->whole && !s->gone;
                if (s->planned) /* they are for none that kube-scheduler allocates */
                        continue;
                for (uint32_t i = 0; i < s->device_count; i++)
                        if (strcmp(s->text + s->devices[i].name, result->device) == 0)
                                return true;
        }
        return false;
}

static const char *lost_of(const struct claim *claim, const struct place *place)
{
        for (uint32_t i = 0; claim->place == place && i < claim->result_count; i++) {
                const struct result *result = &claim->results[i];
                bool known;

                if (strcmp(result->driver, DRA_NAME_DRIVER) == 0 && !is_offered(place, result, &known) &&
                    known)
                        return result->device;
        }
        return NULL;
}

const char *claims_lost(const struct claims *c, const char *pod_key, const char *node)
{
        const struct pod *pod = (struct pod *) name_map_find(&c->pods, pod_key);
        const struct place *place = (struct place *) name_map_find(&c->places, node);
        const char *lost = NULL;

        if (pod == NULL || place == NULL || pod->begun)
                return NULL;
        for (uint32_t i = 0; i < pod->claim_count && lost == NULL; i++) {
                const struct claim *claim = (struct claim *) name_map_find(&c->claims, pod->claims[i]);

                if (claim != NULL && (pod->made >> i & 1) != 0)
                        lost = lost_of(claim, place);
        }
        return lost;
}

static const char *gone_of(const struct claims *c, const struct pod *pod)
{
        const char *key = pod->extended_entry.key;

        return key != NULL && !pod->begun && name_map_find(&c->claims, key) == NULL ? key : NULL;
}

const char *claims_lost_gone(const struct claims *c, const char *pod_key)
{
        const struct pod *pod = (struct pod *) name_map_find(&c->pods, pod_key);

        return pod == NULL ? NULL : gone_of(c, pod);
}

void claims_lost_gone_each(const struct claims *c, void (*visit)(void *userdata, const char *pod_key),
                           void *userdata)
{
        for (const struct name_map_entry *e = name_map_first(&c->extended); e != NULL;
             e = name_map_next(&c->extended, e)) {
                const struct pod *pod =
                        (const struct pod *) ((const char *) e - offsetof(struct pod, extended_entry));

                if (gone_of(c, pod) != NULL)
                        visit(userdata, pod->entry.key);
        }
}

bool claims_lost_judge(struct claims_lost_watch *watch, bool lost, uint64_t now_usec)
{
        bool again = watch->since_usec != 0 && now_usec - watch->look_usec <= CLAIMS_LOST_LOOK;
        bool goes;

        watch->look_usec = now_usec;
        if (!lost || !again)
                watch->since_usec = lost ? now_usec : 0;
        goes = lost && now_usec - watch->since_usec >= CLAIMS_LOST_USEC;
        if (goes)
                watch->since_usec = now_usec;
        return goes;
}
