/* Judge: a record for every device that is or was, and what each scan makes of it. */
#include "agent/health/judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"

void judge_free(struct judge *j)
{
        if (j == NULL)
                return;
        for (size_t i = 0; i < j->record_count; i++)
                free(j->records[i]);
        free(j->records);
        *j = (struct judge){ 0 };
}

/* Where the id is, or where it would have to be put. */
static size_t position(const struct judge *j, const char *id)
{
        size_t low = 0, high = j->record_count;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(j->records[middle]->device.id, id) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static struct judge_record *find(const struct judge *j, const char *id)
{
        size_t at = position(j, id);

        return at < j->record_count && strcmp(j->records[at]->device.id, id) == 0 ? j->records[at] : NULL;
}

static struct judge_record *create(struct judge *j, const struct device *device)
{
        struct judge_record *record = calloc(1, sizeof(*record)), **last = NULL;
        size_t at = position(j, device->id);

        if (record != NULL)
                last = array_add(&j->records, &j->record_count, NULL, sizeof(struct judge_record *));
        if (last == NULL) {
                free(record);
                return NULL;
        }
        memmove(j->records + at + 1, j->records + at,
                (j->record_count - 1 - at) * sizeof(struct judge_record *));
        j->records[at] = record;
        record->device = *device;
        return record;
}

static void drop(struct judge *j, size_t at)
{
        free(j->records[at]);
        j->record_count--;
        memmove(j->records + at, j->records + at + 1, (j->record_count - at) * sizeof(struct judge_record *));
}

/* Kept out of every group: said why, never usable. */
static void keep_out(struct device *d, const char *reason, const char *message)
{
        d->group[0] = '\0';
        d->health = HEALTH_UNKNOWN;
        d->usable = false;
        (void) text_copy(d->reason, sizeof(d->reason), reason);
        (void) text_copy(d->message, sizeof(d->message), message);
        d->rule[0] = '\0';
}

static void sysfs_finding(const struct agent_config *config, const struct device *d, struct finding *f)
{
        static const enum finding_level levels[] = {
                [HEALTH_UNKNOWN] = FINDING_SILENT,    [HEALTH_HEALTHY] = FINDING_GOOD,
                [HEALTH_DEGRADED] = FINDING_DEGRADED, [HEALTH_UNHEALTHY] = FINDING_BAD,
                [HEALTH_QUARANTINED] = FINDING_BAD,
        };
        const char *rule = d->rule[0] != '\0' ? d->rule : "sysfs";
        enum finding_level level = levels[d->health];

        if (level == FINDING_DEGRADED || level == FINDING_BAD)
                level = agent_config_level(config, rule, level);
        finding_add(f, level, rule, d->reason[0] != '\0' ? d->reason : "Unknown", "%s", d->message);
}

/* The record's verdict becomes what is published of the device. */
static void tell(struct judge_record *record, const struct health *h, struct device *d)
{
        d->health = h->verdict;
        d->usable = h->usable;
        (void) text_copy(d->reason, sizeof(d->reason), h->reason);
        (void) text_copy(d->message, sizeof(d->message), h->message);
        (void) text_copy(d->rule, sizeof(d->rule), h->rule);
        if (record->present && strcmp(h->reason, "Gone") == 0) {
                (void) text_copy(d->reason, sizeof(d->reason), "Returned");
                (void) text_copy(d->message, sizeof(d->message),
                                 "it left the machine and is back; it must answer well for a while first");
        }
        if (!record->present) { /* whatever it was before, it is not here */
                d->health = HEALTH_UNHEALTHY;
                d->usable = false;
                (void) text_copy(d->reason, sizeof(d->reason), "Gone");
                (void) text_copy(d->rule, sizeof(d->rule), "present");
                (void) text_copy(d->message, sizeof(d->message),
                                 "it left the machine; `remuda health clear` forgets it");
        }
}

static void note_change(struct judge_record *record, struct device *d, bool is_new, uint64_t real_usec,
                        const struct judge_callbacks *callbacks)
{
        enum device_health before = record->device.health;
        bool changed = is_new || before != d->health || strcmp(record->device.reason, d->reason) != 0;

        /* a new record that was restored from the state file knows since when */
        if (before != d->health || (is_new && record->device.since_usec == 0))
                d->since_usec = real_usec;
        else
                d->since_usec = record->device.since_usec;
        if (!is_new && before != d->health)
                record->transitions[d->health]++;
        record->device = *d;
        if (changed && callbacks->changed != NULL)
                callbacks->changed(callbacks->userdata, record, before, is_new);
}

static void feed(struct judge_record *record, const struct agent_config *config, const struct finding *f,
                 uint64_t now_usec)
{
        (void) health_feed(&record->health, &config->health, f, now_usec);
        record->event = (struct finding){ 0 };
}

struct scan {
        struct judge *judge;
        const struct agent_config *config;
        const struct inventory *previous;
        struct inventory *inventory;
        uint64_t now_usec, real_usec;
        const struct judge_callbacks *callbacks;
};

static void judge_device(const struct scan *s, struct judge_record *record, struct device *d, bool is_new)
{
        struct finding f = { 0 };

        record->present = true;
        if (d->group[0] == '\0') { /* assigned, excluded, duplicate: nothing to judge */
                if (record->judged)
                        record->health = (struct health){ 0 };
                record->judged = false;
                d->usable = false;
                note_change(record, d, is_new, s->real_usec, s->callbacks);
                return;
        }
        record->judged = true;
        sysfs_finding(s->config, d, &f);
        if (record->event.level != FINDING_GOOD)
                finding_add(&f, record->event.level, record->event.rule, record->event.reason, "%s",
                            record->event.message);
        if (s->callbacks->look != NULL)
                s->callbacks->look(s->callbacks->userdata, record, &f);
        feed(record, s->config, &f, s->now_usec);
        tell(record, &record->health, d);
        note_change(record, d, is_new, s->real_usec, s->callbacks);
}

static int judge_found(const struct scan *s)
{
        for (size_t i = 0; i < s->inventory->device_count; i++) {
                struct device *d = &s->inventory->devices[i];
                struct judge_record *record = find(s->judge, d->id);
                bool is_new = record == NULL;

                if (is_new) {
                        record = create(s->judge, d);
                        if (record == NULL)
                                return -ENOMEM;
                        record->device.since_usec = 0;
                        if (s->callbacks->created != NULL)
                                s->callbacks->created(s->callbacks->userdata, record);
                } else if (record->scan == s->judge->scan)
                        continue; /* reported already, as a duplicate */
                record->scan = s->judge->scan;
                judge_device(s, record, d, is_new);
        }
        return 0;
}

static int by_id(const void *a, const void *b)
{
        const struct device *const *x = a, *const *y = b;

        return strcmp((*x)->id, (*y)->id);
}

/* Two devices that call themselves the same cannot both be believed: both are kept out. */
static int keep_out_duplicates(struct inventory *inventory)
{
        size_t n = inventory->device_count;
        struct device **sorted = calloc(n + 1, sizeof(struct device *));

        if (sorted == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sorted[i] = &inventory->devices[i];
        qsort(sorted, n, sizeof(struct device *), by_id);
        for (size_t i = 1; i < n; i++)
                if (strcmp(sorted[i]->id, sorted[i - 1]->id) == 0) {
                        keep_out(sorted[i], "DuplicateId", "another device has the same id");
                        keep_out(sorted[i - 1], "DuplicateId", "another device has the same id");
                }
        free(sorted);
        return 0;
}

/* Its function is still there under other ids: it was partitioned anew, not lost. */
static bool is_withdrawn(const struct inventory *found, size_t found_count, const struct device *d)
{
        if (d->pci[0] == '\0')
                return false;
        for (size_t i = 0; i < found_count; i++)
                if (strcmp(found->devices[i].pci, d->pci) == 0)
                        return true;
        return false;
}

static int add_gone(const struct scan *s, struct judge_record *record)
{
        const struct finding gone = {
                .level = FINDING_BAD, .rule = "present", .reason = "Gone", .message = "it left the machine"
        };
        const struct device_group *group = inventory_find_group(s->inventory, record->device.group), *kept;
        struct device *d;

        if (group == NULL) {
                struct device_group *again;

                kept = inventory_find_group(s->previous, record->device.group);
                again = kept != NULL ? inventory_add_group(s->inventory) : NULL;
                if (again != NULL)
                        *again = *kept;
                else if (kept != NULL)
                        return -ENOMEM;
        }
        d = inventory_add_device(s->inventory);
        if (d == NULL)
                return -ENOMEM;
        *d = record->device;
        record->present = false;
        feed(record, s->config, &gone, s->now_usec);
        tell(record, &record->health, d);
        note_change(record, d, false, s->real_usec, s->callbacks);
        return 0;
}

static int judge_missing(const struct scan *s)
{
        struct judge *j = s->judge;
        size_t found_count = s->inventory->device_count;

        for (size_t i = 0; i < j->record_count;) {
                struct judge_record *record = j->records[i];
                int r;

                if (record->scan == j->scan) {
                        i++;
                        continue;
                }
                if (!record->judged || is_withdrawn(s->inventory, found_count, &record->device)) {
                        drop(j, i);
                        continue;
                }
                r = add_gone(s, record);
                if (r < 0)
                        return r;
                i++;
        }
        return 0;
}

/* A group whose devices are all kept out is no group. */
static void drop_empty_groups(struct inventory *inventory)
{
        size_t kept = 0;

        inventory_count(inventory);
        for (size_t i = 0; i < inventory->group_count; i++)
                if (inventory->groups[i].total > 0)
                        inventory->groups[kept++] = inventory->groups[i];
        inventory->group_count = kept;
}

static bool is_recovering(const struct judge *j)
{
        for (size_t i = 0; i < j->record_count; i++) {
                const struct health *h = &j->records[i]->health;

                if (j->records[i]->present && ((h->verdict == HEALTH_UNHEALTHY && h->working > 0) ||
                                               (h->verdict == HEALTH_DEGRADED && h->good > 0) ||
                                               (h->verdict == HEALTH_QUARANTINED && h->working > 0)))
                        return true;
        }
        return false;
}

int judge_scan(struct judge *judge, const struct agent_config *config, const struct inventory *previous,
               struct inventory *inventory, uint64_t now_usec, uint64_t real_usec,
               const struct judge_callbacks *callbacks)
{
        struct scan s = { .judge = judge,
                          .config = config,
                          .previous = previous,
                          .inventory = inventory,
                          .now_usec = now_usec,
                          .real_usec = real_usec,
                          .callbacks = callbacks };
        int r;

        judge->scan++;
        r = keep_out_duplicates(inventory);
        if (r == 0)
                r = judge_found(&s);
        if (r == 0)
                r = judge_missing(&s);
        if (r < 0)
                return r;
        drop_empty_groups(inventory);
        judge->recovering = is_recovering(judge);
        return 0;
}

int judge_clear(struct judge *judge, const char *id)
{
        size_t at = position(judge, id);

        if (at == judge->record_count || strcmp(judge->records[at]->device.id, id) != 0)
                return -ENOENT;
        if (!judge->records[at]->present)
                drop(judge, at);
        else
                health_clear(&judge->records[at]->health);
        return 0;
}
