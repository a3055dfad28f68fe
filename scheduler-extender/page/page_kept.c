/* Maps by name, and a list of what is to be told. */
#include "scheduler-extender/page/page_kept.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/page/page_fleet.h"

static void make_dirty(struct page_kept *kept, struct page_kept_node *node)
{
        if (node->dirty)
                return;
        node->dirty = true;
        node->next = NULL;
        node->previous = kept->dirty_last;
        if (node->previous != NULL)
                node->previous->next = node;
        else
                kept->dirty = node;
        kept->dirty_last = node;
}

static void make_clean(struct page_kept *kept, struct page_kept_node *node)
{
        if (!node->dirty)
                return;
        node->dirty = false;
        if (node->previous != NULL)
                node->previous->next = node->next;
        else
                kept->dirty = node->next;
        if (node->next != NULL)
                node->next->previous = node->previous;
        else
                kept->dirty_last = node->previous;
}

struct page_kept_node *page_kept_next(struct page_kept *kept)
{
        struct page_kept_node *node = kept->dirty;

        if (node != NULL)
                make_clean(kept, node);
        return node;
}

static void drop_node(struct page_kept *kept, struct page_kept_node *node)
{
        make_clean(kept, node);
        name_map_remove(&kept->nodes, &node->entry);
        page_node_free(&node->told);
        free(node);
}

static void drop_job(struct page_kept *kept, struct page_kept_job *job)
{
        name_map_remove(&kept->jobs, &job->entry);
        free(job->text);
        free(job);
}

void page_kept_free(struct page_kept *kept)
{
        struct name_map_entry *e;

        while ((e = name_map_first(&kept->nodes)) != NULL)
                drop_node(kept, (struct page_kept_node *) e);
        while ((e = name_map_first(&kept->jobs)) != NULL)
                drop_job(kept, (struct page_kept_job *) e);
        name_map_free(&kept->nodes);
        name_map_free(&kept->jobs);
        page_faults_free(&kept->faults);
        text_free(&kept->gone);
}

static void note_gone(struct page_kept *kept, const char *name)
{
        if (kept->gone.size_bytes > 0)
                text_append_char(&kept->gone, ',');
        json_writer_append_string(&kept->gone, name);
}

void page_kept_told(struct page_kept *kept, const char *name, const struct inventory *inventory,
                    uint64_t now_usec)
{
        struct page_kept_node *node = (struct page_kept_node *) name_map_find(&kept->nodes, name);
        struct page_node_told now = { .groups = NULL };
        bool is_new = node == NULL;

        if (inventory == NULL && is_new)
                return;
        kept->fleet_version++;
        kept->agents_version++;
        if (inventory == NULL) {
                note_gone(kept, name);
                drop_node(kept, node);
                return;
        }
        node = (struct page_kept_node *) name_map_make(&kept->nodes, name, sizeof(*node));
        if (node == NULL || page_node_take(&now, inventory) < 0)
                return; /* without memory what was told before stands */
        page_faults_compare(&kept->faults, name, is_new ? NULL : &node->told, &now, now_usec);
        page_node_free(&node->told);
        node->told = now;
        node->anew = true;
        make_dirty(kept, node);
}

void page_kept_job(struct page_kept *kept, const char *key, const json_t *object, uint64_t now_usec)
{
        struct page_kept_job *job = (struct page_kept_job *) name_map_find(&kept->jobs, key);
        struct text text = { 0 };
        struct json_writer w = { .text = &text, .compact = true };

        kept->jobs_version++;
        if (object == NULL && job != NULL)
                drop_job(kept, job);
        if (object == NULL)
                return;
        job = (struct page_kept_job *) name_map_make(&kept->jobs, key, sizeof(*job));
        if (job == NULL)
                return;
        page_jobs_see(&job->seen, object, now_usec);
        page_jobs_write(&w, key, object, &job->seen);
        free(job->text);
        job->text = text_take(&text, NULL);
}

void page_kept_scan(struct page_kept *kept, const struct ledger *ledger)
{
        uint64_t since = kept->scanned;

        if (ledger->generation == since)
                return;
        kept->scanned = ledger->generation;
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                const struct ledger_node *of = ledger->nodes[i];
                struct page_kept_node *node =
                        of->accounted > since
                                ? (struct page_kept_node *) name_map_find(&kept->nodes, of->name)
                                : NULL;

                if (node != NULL)
                        make_dirty(kept, node);
        }
}

void page_kept_clean(struct page_kept *kept, const struct ledger *ledger)
{
        struct page_kept_node *node;

        while ((node = page_kept_next(kept)) != NULL)
                node->anew = false;
        text_free(&kept->gone);
        kept->scanned = ledger->generation;
}

/* By the Node object, of whose changes nobody tells us. */
static void look_at_registration(struct page_kept *kept, struct page_kept_node *node,
                                 const struct ledger *ledger, const struct ledger_node *of)
{
        enum page_agents_registered now = page_agents_registered(&node->told, ledger, of);

        if (node->judged && node->registered != now)
                kept->agents_version++;
        node->registered = now;
}

void page_kept_judge(struct page_kept *kept, const struct ledger *ledger, const struct rules *rules,
                     uint64_t now_usec)
{
        for (uint32_t i = 0; i < ledger->node_count; i++) {
                const struct ledger_node *of = ledger->nodes[i];
                struct page_kept_node *node =
                        of->has_inventory ? (struct page_kept_node *) name_map_find(&kept->nodes, of->name)
                                          : NULL;
                bool unknown = page_fleet_is_unknown(ledger, rules, of, NULL);
                char why[PAGE_FLEET_WHY_BYTES] = "";

                if (node != NULL)
                        look_at_registration(kept, node, ledger, of);
                if (node == NULL || (node->judged && node->unknown == unknown))
                        continue;
                if (node->judged) {
                        (void) page_fleet_is_unknown(ledger, rules, of, why);
                        page_faults_node(&kept->faults, of->name, unknown, why, now_usec);
                        kept->fleet_version++;
                        kept->agents_version++;
                        make_dirty(kept, node);
                }
                node->judged = true;
                node->unknown = unknown;
        }
        page_faults_expire(&kept->faults, now_usec);
}

/* A number at the beginning, without the zeros before it; *ret_digits: it has so many. */
static const char *number_at(const char *text, size_t *ret_digits)
{
        text += strspn(text, "0");
        *ret_digits = strspn(text, "0123456789");
        return text;
}

/* n2 and n02 before n10, as people count, and as the page sorts what comes later (fleet_model.js). */
static int compare_counting(const char *a, const char *b)
{
        while (*a != '\0' && *b != '\0') {
                size_t of_a, of_b;
                int r = (unsigned char) *a - (unsigned char) *b;

                if (isdigit((unsigned char) *a) && isdigit((unsigned char) *b)) {
                        a = number_at(a, &of_a);
                        b = number_at(b, &of_b);
                        r = of_a != of_b ? (of_a > of_b) - (of_a < of_b) : memcmp(a, b, of_a);
                        a += of_a;
                        b += of_b;
                } else {
                        a++;
                        b++;
                }
                if (r != 0)
                        return r;
        }
        return (unsigned char) *a - (unsigned char) *b;
}

static int compare_keys(const void *a, const void *b)
{
        const char *x = (*(struct name_map_entry *const *) a)->key,
                   *y = (*(struct name_map_entry *const *) b)->key;
        int r = compare_counting(x, y);

        return r != 0 ? r : strcmp(x, y);
}

struct name_map_entry **page_kept_sorted(const struct name_map *map)
{
        struct name_map_entry **all = malloc((map->count + 1) * sizeof(struct name_map_entry *));
        size_t count = 0;

        for (struct name_map_entry *e = name_map_first(map); all != NULL && e != NULL;
             e = name_map_next(map, e))
                all[count++] = e;
        if (count > 0)
                qsort(all, count, sizeof(struct name_map_entry *), compare_keys);
        return all;
}
