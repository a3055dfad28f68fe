/* Slices, claims and pods by name, the former two also by node. */
#include "scheduler-extender/claims/claims_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

struct claims *claims_new(void)
{
        return calloc(1, sizeof(struct claims));
}

struct claims *claims_new_on(const struct claims *base)
{
        struct claims *c = claims_new();

        if (c != NULL)
                c->base = base;
        return c;
}

static void free_all(struct name_map *map)
{
        for (struct name_map_entry *e = name_map_first(map), *next; e != NULL; e = next) {
                next = name_map_next(map, e);
                free(e);
        }
        name_map_free(map);
}

/* And those that are gone and still count, which only their place has. */
static void free_slices(struct claims *c)
{
        for (struct name_map_entry *e = name_map_first(&c->slices), *next; e != NULL; e = next) {
                next = name_map_next(&c->slices, e);
                if (((struct slice *) e)->place == NULL)
                        free(e);
        }
        for (struct name_map_entry *e = name_map_first(&c->places); e != NULL;
             e = name_map_next(&c->places, e))
                for (struct slice *s = ((struct place *) e)->slices, *next; s != NULL; s = next) {
                        next = s->next;
                        free(s);
                }
        name_map_free(&c->slices);
}

void claims_free(struct claims *c)
{
        if (c == NULL)
                return;
        for (struct name_map_entry *e = name_map_first(&c->slices); e != NULL; e = name_map_first(&c->slices))
                (void) claims_set_slice(c, e->key, NULL); /* and those that are kept for them */
        name_map_free(&c->extended);
        free_slices(c);
        free_all(&c->claims);
        free_all(&c->pods);
        free_all(&c->places);
        free(c);
}

/* Copies a string behind what was copied before. */
static const char *keep(char **text, const char *string)
{
        size_t bytes = strlen(string) + 1;
        char *kept = memcpy(*text, string, bytes);

        *text += bytes;
        return kept;
}

static struct place *place_of(struct claims *c, const char *name)
{
        return (struct place *) name_map_make(&c->places, name, sizeof(struct place));
}

static void change(struct claims *c, struct place *place)
{
        if (place == NULL || place->changed)
                return;
        place->changed = true;
        place->next_changed = c->changed;
        c->changed = place;
}

/* The one that was named last goes when there is nothing of it: its user has been told. */
static void forget_named(struct claims *c)
{
        struct place *place = c->named;

        c->named = NULL;
        if (place == NULL || place->changed || place->slices != NULL || place->claims != NULL)
                return;
        name_map_remove(&c->places, &place->entry);
        free(place);
}

const char *claims_next_changed(struct claims *c)
{
        forget_named(c);
        c->named = c->changed;
        if (c->named == NULL)
                return NULL;
        c->changed = c->named->next_changed;
        c->named->changed = false;
        return c->named->entry.key;
}

/* Of a pool: its newest generation, how many slices there are of it, and the last one that was whole. */
struct pool {
        bool any, any_last, whole;
        int64_t newest, count, last;
};

static struct pool pool_of(const struct slice *of)
{
        struct pool pool = { 0 };

        for (const struct slice *s = of->place->slices; s != NULL; s = s->next) {
                if (!same_pool(s, of->driver, of->pool))
                        continue;
                if (s->of_last)
                        pool.last = s->generation;
                pool.any_last = pool.any_last || s->of_last;
                if (s->gone || (pool.any && s->generation < pool.newest))
                        continue;
                if (!pool.any || s->generation > pool.newest)
                        pool = (struct pool){ .any_last = pool.any_last,
                                              .last = pool.last,
                                              .newest = s->generation,
                                              .any = true,
                                              .whole = true };
                pool.count++;
        }
        for (const struct slice *s = of->place->slices; s != NULL; s = s->next)
                if (same_pool(s, of->driver, of->pool) && !s->gone && s->generation == pool.newest)
                        pool.whole = pool.whole && s->slice_count == pool.count;
        return pool;
}

/* A driver publishes a pool anew slice by slice: until all are there what was there before counts. */
static void judge_pool(const struct slice *of)
{
        struct pool pool = pool_of(of);
        bool keeps_last = pool.any && !pool.whole;
        bool last_counts = keeps_last && pool.any_last && pool.last < pool.newest;

        for (struct slice *s = of->place->slices; s != NULL; s = s->next) {
                bool newest = !s->gone && s->generation == pool.newest;

                if (!same_pool(s, of->driver, of->pool))
                        continue;
                s->of_last = keeps_last ? s->of_last : newest;
                s->counts = last_counts ? s->of_last : newest;
                s->whole = s->counts && (last_counts || s->slice_count == pool.count);
        }
}

static void judge(struct place *place)
{
        struct slice **at = place == NULL ? NULL : &place->slices, *slice;

        for (slice = at == NULL ? NULL : *at; slice != NULL; slice = slice->next)
                judge_pool(slice);
        while (at != NULL && (slice = *at) != NULL)
                if (slice->gone && !slice->of_last) {
                        *at = slice->next;
                        free(slice);
                } else {
                        at = &slice->next;
                }
}

/* Return: where it was, to be judged. */
static struct place *drop_slice(struct claims *c, const char *name)
{
        struct slice *slice = (struct slice *) name_map_find(&c->slices, name);
        struct place *place = slice == NULL ? NULL : slice->place;

        if (slice == NULL)
                return NULL;
        name_map_remove(&c->slices, &slice->entry);
        slice->gone = true;
        change(c, place);
        if (place == NULL) {
                c->loose -= slice->device_count;
                free(slice);
        }
        return place;
}

static size_t slice_text_bytes(const char *name, const struct claims_slice_facts *facts)
{
        size_t bytes = strlen(name) + strlen(facts->driver) + strlen(facts->pool) + 3;

        for (size_t i = 0; i < facts->device_count; i++) {
                const struct claims_slice_device *d = &facts->devices[i];

                bytes += strlen(d->name) + 1 + (d->counters == NULL ? 0 : strlen(d->counters) + 1) +
                         (d->group == NULL ? 0 : strlen(d->group) + 1);
                for (size_t k = 0; k < d->member_count; k++)
                        bytes += strlen(facts->members[d->first_member + k]) + 1;
        }
        return bytes;
}

static struct slice *make_slice(const char *name, const struct claims_slice_facts *facts)
{
        size_t fixed = sizeof(struct slice) + facts->device_count * sizeof(struct offered);
        struct slice *slice = calloc(1, fixed + slice_text_bytes(name, facts));
        char *text = (char *) slice + fixed;

        if (slice == NULL)
                return NULL;
        slice->text = text;
        slice->generation = facts->generation;
        slice->slice_count = facts->slice_count;
        slice->vendor = facts->vendor;
        slice->planned = facts->planned;
        slice->entry.key = keep(&text, name);
        slice->driver = keep(&text, facts->driver);
        slice->pool = keep(&text, facts->pool);
        for (size_t i = 0; i < facts->device_count; i++) {
                const struct claims_slice_device *from = &facts->devices[i];
                struct offered *to = &slice->devices[slice->device_count++];

                to->name = to->chip = (uint32_t) (keep(&text, from->name) - slice->text);
                if (from->counters != NULL)
                        to->chip = (uint32_t) (keep(&text, from->counters) - slice->text);
                if (from->group != NULL)
                        to->group = (uint32_t) (keep(&text, from->group) - slice->text);
                to->vendor = from->vendor != NULL ? from->vendor : facts->vendor;
                to->part = from->part;
                to->shared = from->shared;
                to->sick = from->sick;
                to->shares = from->shares;
                to->memory_bytes = from->memory_bytes;
                to->members = (uint32_t) (text - slice->text);
                for (size_t k = 0; k < from->member_count; k++, to->member_count++)
                        (void) keep(&text, facts->members[from->first_member + k]);
        }
        return slice;
}

static int add_slice(struct claims *c, const char *name, const struct claims_slice_facts *facts)
{
        struct place *place = NULL;
        struct slice *slice;

        if (facts->node != NULL && (place = place_of(c, facts->node)) == NULL)
                return -ENOMEM;
        slice = make_slice(name, facts);
        if (slice == NULL || name_map_insert(&c->slices, &slice->entry) < 0) {
                free(slice);
                change(c, place); /* it may be for nothing that there is a place of that name */
                return -ENOMEM;
        }
        slice->place = place;
        if (place == NULL) {
                c->loose += slice->device_count;
        } else {
                slice->next = place->slices;
                place->slices = slice;
        }
        change(c, place);
        judge(place);
        return 0;
}

int claims_set_slice(struct claims *c, const char *name, const struct claims_slice_facts *facts)
{
        struct place *before = drop_slice(c, name);
        int r = facts == NULL ? 0 : add_slice(c, name, facts);

        judge(before);
        return r;
}

static void drop_claim(struct claims *c, const char *key)
{
        struct claim *claim = (struct claim *) name_map_find(&c->claims, key), **at;

        if (claim == NULL)
                return;
        name_map_remove(&c->claims, &claim->entry);
        c->held -= claim->allocated;
        if (claim->place != NULL) {
                for (at = &claim->place->claims; *at != claim;)
                        at = &(*at)->next;
                *at = claim->next;
        }
        change(c, claim->place);
        free(claim);
}

static size_t asks_text_bytes(const struct claims_claim_facts *facts)
{
        size_t bytes = 0;

        for (size_t i = 0; i < facts->ask_count; i++)
                for (size_t k = 0; k < facts->asks[i].choice_count; k++)
                        bytes += strlen(facts->asks[i].choices[k].of) + 1;
        return bytes;
}

static void keep_asks(struct claim *claim, char **text, const struct claims_claim_facts *facts)
{
        for (size_t i = 0; i < facts->ask_count; i++) {
                struct claims_ask *ask = &claim->asks[claim->ask_count++];

                *ask = facts->asks[i];
                for (size_t k = 0; k < ask->choice_count; k++)
                        ask->choices[k].of = keep(text, ask->choices[k].of);
        }
}

static struct claim *make_claim(const char *key, const struct claims_claim_facts *facts)
{
        size_t results_bytes = sizeof(struct claim) + facts->result_count * sizeof(struct result);
        size_t fixed = results_bytes + facts->ask_count * sizeof(struct claims_ask);
        size_t bytes = strlen(key) + 1 + asks_text_bytes(facts);
        struct claim *claim;
        char *text;

        for (size_t i = 0; i < facts->result_count; i++)
                bytes += strlen(facts->results[i].driver) + strlen(facts->results[i].pool) +
                         strlen(facts->results[i].device) + 3;
        if (facts->pod != NULL)
                bytes += strlen(facts->pod) + strlen(facts->pod_uid) + 2;
        claim = calloc(1, fixed + bytes);
        if (claim == NULL)
                return NULL;
        text = (char *) claim + fixed;
        claim->asks = (struct claims_ask *) (void *) ((char *) claim + results_bytes);
        claim->entry.key = keep(&text, key);
        keep_asks(claim, &text, facts);
        claim->asked = facts->asked;
        claim->allocated = facts->allocated;
        if (facts->pod != NULL) {
                claim->pod = keep(&text, facts->pod);
                claim->pod_uid = keep(&text, facts->pod_uid);
        }
        for (size_t i = 0; i < facts->result_count; i++)
                claim->results[claim->result_count++] =
                        (struct result){ .driver = keep(&text, facts->results[i].driver),
                                         .pool = keep(&text, facts->results[i].pool),
                                         .device = keep(&text, facts->results[i].device),
                                         .memory_bytes = facts->results[i].memory_bytes,
                                         .shares = facts->results[i].shares };
        return claim;
}

int claims_set_claim(struct claims *c, const char *key, const struct claims_claim_facts *facts)
{
        struct place *place = NULL;
        struct claim *claim;

        drop_claim(c, key);
        if (facts == NULL)
                return 0;
        if (facts->allocated && facts->node != NULL && (place = place_of(c, facts->node)) == NULL)
                return -ENOMEM;
        claim = make_claim(key, facts);
        if (claim == NULL || name_map_insert(&c->claims, &claim->entry) < 0) {
                free(claim);
                change(c, place);
                return -ENOMEM;
        }
        c->held += claim->allocated;
        claim->place = place;
        if (place != NULL) {
                claim->next = place->claims;
                place->claims = claim;
        }
        change(c, place);
        return 0;
}

const char *claims_reserved(const struct claims *c, const char *key, const char **ret_uid)
{
        const struct claim *claim = (struct claim *) name_map_find(&c->claims, key);

        if (claim == NULL || !claim->allocated)
                return NULL;
        *ret_uid = claim->pod_uid;
        return claim->pod;
}

const char *claims_node(const struct claims *c, const char *key)
{
        const struct claim *claim = (struct claim *) name_map_find(&c->claims, key);

        return claim == NULL || claim->place == NULL ? NULL : claim->place->entry.key;
}

/* It is kept as a claim that nobody has. */
int claims_set_template(struct claims *c, const char *key, const struct claims_claim_facts *facts)
{
        char marked[600];

        if (!text_format(marked, sizeof(marked), TEMPLATE_MARK "%s", key))
                return 0;
        return claims_set_claim(c, marked, facts);
}

/* The claim of extended resources counts by its pod, or again by itself. */
static void change_extended(struct claims *c, const struct pod *pod)
{
        const struct claim *claim = (struct claim *) name_map_find(&c->claims, pod->extended_entry.key);

        if (claim != NULL)
                change(c, claim->place);
}

static void drop_pod(struct claims *c, const char *key)
{
        struct pod *pod = (struct pod *) name_map_find(&c->pods, key);

        if (pod == NULL)
                return;
        name_map_remove(&c->pods, &pod->entry);
        if (pod->extended_entry.key != NULL) {
                name_map_remove(&c->extended, &pod->extended_entry);
                change_extended(c, pod);
        }
        free(pod);
}

static const char *keep_claim(char **text, const char *pod_key, const char *name, bool of_template)
{
        size_t bytes = (size_t) (strchrnul(pod_key, '/') - pod_key);
        char *key = *text;

        if (of_template)
                *(*text)++ = TEMPLATE_MARK[0];
        memcpy(*text, pod_key, bytes);
        (*text)[bytes] = '/';
        memcpy(*text + bytes + 1, name, strlen(name) + 1);
        *text += bytes + strlen(name) + 2;
        return key;
}

static struct pod *make_pod(const char *key, const struct claims_pod_facts *facts)
{
        size_t fixed = sizeof(struct pod) + 2 * facts->name_count * sizeof(const char *);
        size_t bytes = strlen(key) + 1, prefix = strlen(key) + 3; /* more than enough */
        struct pod *pod;
        char *text;

        for (size_t i = 0; i < facts->name_count; i++)
                bytes += prefix + strlen(facts->names[i]) +
                         (facts->templates[i] == NULL ? 0 : prefix + strlen(facts->templates[i]));
        if (facts->extended != NULL)
                bytes += prefix + strlen(facts->extended);
        pod = calloc(1, fixed + bytes);
        if (pod == NULL)
                return NULL;
        text = (char *) pod + fixed;
        pod->entry.key = keep(&text, key);
        pod->has_claims = facts->has_claims;
        pod->asks_us = facts->asks_us;
        pod->begun = facts->begun;
        for (size_t i = 0; i < facts->name_count; i++) {
                pod->made |= (uint32_t) facts->made[i] << i;
                pod->claims[pod->claim_count++] =
                        keep_claim(&text, key, facts->names[i], facts->of_template[i]);
                if (facts->templates[i] != NULL)
                        pod->claims[facts->name_count + i] =
                                keep_claim(&text, key, facts->templates[i], true);
        }
        if (facts->extended != NULL)
                pod->extended_entry.key = keep_claim(&text, key, facts->extended, false);
        return pod;
}

int claims_set_pod(struct claims *c, const char *key, const struct claims_pod_facts *facts)
{
        struct pod *pod;

        drop_pod(c, key);
        if (facts == NULL || (!facts->has_claims && facts->extended == NULL))
                return 0;
        pod = make_pod(key, facts);
        if (pod == NULL || name_map_insert(&c->pods, &pod->entry) < 0) {
                free(pod);
                return -ENOMEM;
        }
        if (pod->extended_entry.key == NULL)
                return 0;
        if (name_map_find(&c->extended, pod->extended_entry.key) != NULL ||
            name_map_insert(&c->extended, &pod->extended_entry) < 0)
                pod->extended_entry.key = NULL; /* another pod's: it counts by itself */
        else
                change_extended(c, pod);
        return 0;
}

uint32_t claims_loose(const struct claims *c)
{
        return c->loose;
}

bool claims_has_slices(const struct claims *c)
{
        return c->slices.count > 0;
}

uint32_t claims_held(const struct claims *c)
{
        return c->held;
}
