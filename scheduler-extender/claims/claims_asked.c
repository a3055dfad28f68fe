/* A pod's claims are found by their keys; those that are allocated ask for nothing more. */
#include "scheduler-extender/claims/claims_asked.h"

#include <string.h>

#include "base/text.h"
#include "scheduler-extender/claims/claims_internal.h"

/* Keys of claims, as a pod has them. */
struct keys {
        const char *const *keys, *const *templates;
        size_t count;
};

/* Where claims are told: a copy may be one of a copy. */
static const struct claims *told_of(const struct claims *c)
{
        while (c->base != NULL)
                c = c->base;
        return c;
}

/* One of them, if it is there, not allocated yet, and none of those before it. Of one that was made, and that
 * has not been told yet, its template. */
static const struct claim *open_claim(const struct claims *c, const struct keys *of, size_t index)
{
        const struct claim *claim = (struct claim *) name_map_find(&told_of(c)->claims, of->keys[index]);
        const char *template = of->templates[index];
        bool made = !text_starts_with(of->keys[index], TEMPLATE_MARK); /* of a template each is another one */

        for (size_t i = 0; made && i < index; i++)
                if (strcmp(of->keys[i], of->keys[index]) == 0)
                        return NULL;
        if (claim == NULL && template != NULL) /* whoever asks has heard of it before us */
                claim = (struct claim *) name_map_find(&told_of(c)->claims, template);
        return claim == NULL || claim->allocated ? NULL : claim;
}

static uint32_t sum_asked(const struct claims *c, const struct keys *of)
{
        uint64_t asked = 0;

        for (size_t i = 0; i < of->count && asked < CLAIMS_ASKED_MAX; i++) {
                const struct claim *claim = open_claim(c, of, i);

                asked += claim == NULL ? 0 : claim->asked;
        }
        return asked < CLAIMS_ASKED_MAX ? (uint32_t) asked : CLAIMS_ASKED_MAX;
}

static size_t collect_asks(const struct claims *c, const struct keys *of, struct claims_ask *ret)
{
        size_t count = 0;

        for (size_t i = 0; i < of->count; i++) {
                const struct claim *claim = open_claim(c, of, i);

                for (size_t k = 0; claim != NULL && k < claim->ask_count && count < CLAIMS_ASKS_MAX; k++)
                        ret[count++] = claim->asks[k];
        }
        return count;
}

/* The keys that names in a namespace stand for. */
struct named_keys {
        char texts[CLAIMS_PER_POD_MAX][512], template_texts[CLAIMS_PER_POD_MAX][512];
        const char *names[CLAIMS_PER_POD_MAX], *templates[CLAIMS_PER_POD_MAX];
};

static struct keys name_keys(const char *namespace_, const struct claims_pod_facts *facts,
                             struct named_keys *room)
{
        for (size_t i = 0; i < facts->name_count; i++) {
                (void) text_format(room->texts[i], sizeof(room->texts[i]), "%s%s/%s",
                                   facts->of_template[i] ? TEMPLATE_MARK : "", namespace_, facts->names[i]);
                room->names[i] = room->texts[i];
                room->templates[i] = facts->templates[i] == NULL ? NULL : room->template_texts[i];
                if (facts->templates[i] != NULL)
                        (void) text_format(room->template_texts[i], sizeof(room->template_texts[i]),
                                           TEMPLATE_MARK "%s/%s", namespace_, facts->templates[i]);
        }
        return (struct keys){ .keys = room->names, .templates = room->templates, .count = facts->name_count };
}

static const struct pod *pod_of(const struct claims *c, const char *key)
{
        const struct pod *pod = NULL;

        for (; c != NULL && pod == NULL; c = c->base)
                pod = (struct pod *) name_map_find(&c->pods, key);
        return pod;
}

static struct keys keys_of(const struct claims *c, const char *pod_key)
{
        const struct pod *pod = pod_of(c, pod_key);

        return pod == NULL ? (struct keys){ 0 }
                           : (struct keys){ .keys = pod->claims,
                                            .templates = pod->claims + pod->claim_count,
                                            .count = pod->claim_count };
}

uint32_t claims_asked(const struct claims *c, const char *namespace_, const struct claims_pod_facts *facts)
{
        struct named_keys room;
        struct keys of = name_keys(namespace_, facts, &room);

        return sum_asked(c, &of);
}

uint32_t claims_asked_by(const struct claims *c, const char *pod_key)
{
        struct keys of = keys_of(c, pod_key);

        return sum_asked(c, &of);
}

size_t claims_asked_classes(const struct claims *c, const char *namespace_,
                            const struct claims_pod_facts *facts, struct claims_ask *ret)
{
        struct named_keys room;
        struct keys of = name_keys(namespace_, facts, &room);

        return collect_asks(c, &of, ret);
}

size_t claims_asked_classes_by(const struct claims *c, const char *pod_key, struct claims_ask *ret)
{
        struct keys of = keys_of(c, pod_key);

        return collect_asks(c, &of, ret);
}

bool claims_asked_got(const struct claims *c, const char *pod_key, struct text *ret)
{
        struct keys of = keys_of(c, pod_key);
        bool all = of.count > 0;

        for (size_t i = 0; i < of.count; i++) {
                const struct claim *claim = (struct claim *) name_map_find(&told_of(c)->claims, of.keys[i]);

                all = all && claim != NULL && claim->allocated;
                for (uint32_t k = 0; claim != NULL && k < claim->result_count; k++)
                        text_printf(ret, "%s%s", ret->size_bytes > 0 ? "," : "", claim->results[k].device);
        }
        return all;
}

bool claims_pod(const struct claims *c, const char *pod_key, bool *ret_asks_us)
{
        const struct pod *pod = pod_of(c, pod_key);

        if (pod != NULL && ret_asks_us != NULL)
                *ret_asks_us = pod->asks_us;
        return pod != NULL && pod->has_claims;
}

bool claims_asked_own(const struct claims_pod_facts *facts)
{
        for (size_t i = 0; i < facts->name_count; i++)
                if (!facts->of_template[i] && !facts->made[i])
                        return false;
        return facts->name_count > 0;
}

bool claims_asked_own_by(const struct claims *c, const char *pod_key)
{
        const struct pod *pod = pod_of(c, pod_key);

        for (uint32_t i = 0; pod != NULL && i < pod->claim_count; i++)
                if (!text_starts_with(pod->claims[i], TEMPLATE_MARK) && (pod->made >> i & 1) == 0)
                        return false;
        return pod != NULL && pod->claim_count > 0;
}
