/* Signs of life, and the two moments before which silence is believed. */
#include "scheduler-extender/ledger/liveness.h"

#include <stdlib.h>
#include <string.h>

#define STOOD_STILL_USEC 10000000u /* between two looks: what came meanwhile is not read yet */

struct liveness_sign *liveness_hear(struct liveness_signs *signs, const char *name, uint64_t sign,
                                    uint64_t now_usec)
{
        struct liveness_sign *known = (struct liveness_sign *) name_map_find(&signs->map, name);

        if (known == NULL) {
                known = calloc(1, sizeof(*known) + strlen(name) + 1);
                if (known == NULL)
                        return NULL;
                memcpy(known->name, name, strlen(name) + 1);
                known->entry.key = known->name;
                if (name_map_insert(&signs->map, &known->entry) < 0) {
                        free(known);
                        return NULL;
                }
        } else if (known->sign == sign) {
                return known;
        }
        known->sign = sign;
        known->changed_usec = now_usec;
        return known;
}

const struct liveness_sign *liveness_find(const struct liveness_signs *signs, const char *name)
{
        return (const struct liveness_sign *) name_map_find(&signs->map, name);
}

uint64_t liveness_heard(const struct liveness_signs *signs, const char *name)
{
        const struct liveness_sign *known = liveness_find(signs, name);

        return known == NULL ? 0 : known->changed_usec;
}

void liveness_forget(struct liveness_signs *signs, const char *name)
{
        struct name_map_entry *known = name_map_find(&signs->map, name);

        if (known == NULL)
                return;
        name_map_remove(&signs->map, known);
        free(known);
}

void liveness_free_signs(struct liveness_signs *signs)
{
        for (struct name_map_entry *e = name_map_first(&signs->map), *next; e != NULL; e = next) {
                next = name_map_next(&signs->map, e);
                free(e);
        }
        name_map_free(&signs->map);
}

/* The moment before which a sign is too old, once so much time was listened to. */
static uint64_t moment(uint64_t since_usec, uint64_t grace_usec, uint64_t now_usec)
{
        return grace_usec > 0 && now_usec - since_usec > grace_usec ? now_usec - grace_usec : 0;
}

static void count(struct liveness *l, const struct roster *roster, uint64_t grace_usec, uint64_t now_usec)
{
        l->judged = l->doubtful = l->silent = 0;
        for (uint32_t i = 0; i < roster->count; i++) {
                uint64_t seen = roster->seats[i].seen_usec;

                if (seen == 0 || seen == LIVENESS_REMOVED)
                        continue;
                l->judged++;
                l->doubtful += now_usec - seen > grace_usec / 2;
                l->silent += liveness_silent(l, seen);
        }
}

void liveness_look(struct liveness *l, const struct roster *roster, bool works, uint64_t grace_usec,
                   uint64_t now_usec)
{
        bool stood_still = now_usec - l->looked_usec > STOOD_STILL_USEC;

        l->looked_usec = now_usec;
        if (!works || stood_still)
                l->working_since_usec = now_usec;
        l->silent_before_usec = moment(l->working_since_usec, grace_usec, now_usec);
        count(l, roster, grace_usec, now_usec);
        l->held = grace_usec > 0 && works && (uint64_t) l->doubtful * 2 > l->judged;
        if (l->held || l->trusted_since_usec < l->working_since_usec)
                l->trusted_since_usec = now_usec;
        l->lost_before_usec = moment(l->trusted_since_usec, grace_usec, now_usec);
}
