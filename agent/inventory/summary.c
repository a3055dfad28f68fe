/* Summary: sums over groups, and the devices that are not well. */
#include "agent/inventory/summary.h"

#include <string.h>

#include "base/text.h"

static bool is_chip(const struct device *device)
{
        return device->group[0] != '\0' && strcmp(device->vendor, "cpu") != 0;
}

static bool is_well(const struct device *device)
{
        return device->usable && device->health != HEALTH_DEGRADED;
}

/* Groups of one model are one: its chips are counted at the first. */
static unsigned chips_of_model(const struct inventory *inventory, size_t first)
{
        const struct device_group *group = &inventory->groups[first];
        unsigned chips = 0;

        for (size_t i = 0; i < inventory->group_count; i++)
                if (strcmp(inventory->groups[i].model, group->model) == 0 &&
                    strcmp(inventory->groups[i].vendor, group->vendor) == 0) {
                        if (i < first)
                                return 0;
                        chips += inventory->groups[i].total;
                }
        return chips;
}

void summary_make(const struct inventory *inventory, struct summary *ret)
{
        *ret = (struct summary){ .chips = 0 };
        for (size_t i = 0; i < inventory->group_count; i++) {
                const struct device_group *group = &inventory->groups[i];
                size_t used = strlen(ret->models);
                unsigned chips = chips_of_model(inventory, i);

                if (strcmp(group->vendor, "cpu") == 0)
                        continue;
                ret->chips += group->total;
                ret->healthy += group->healthy;
                ret->free += group->free;
                if (chips > 0 && !text_format(ret->models + used, sizeof(ret->models) - used, "%s%u %s",
                                              used > 0 ? ", " : "", chips,
                                              group->model[0] != '\0' ? group->model : group->vendor))
                        ret->models[used] = '\0'; /* more than a column holds */
        }
}

static void tell(struct summary_condition *condition, const char *type, bool holds, const char *reason,
                 uint64_t since_usec)
{
        const char *status = holds ? "True" : "False";

        if (condition->status == NULL || strcmp(condition->status, status) != 0)
                condition->since_usec = since_usec;
        condition->type = type;
        condition->status = status;
        condition->reason = reason;
}

static void judge_ready(const struct inventory *inventory, struct summary_condition *ready)
{
        uint64_t first_usable = 0, last = 0;
        struct summary summary;

        summary_make(inventory, &summary);
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *d = &inventory->devices[i];

                if (is_chip(d) && d->since_usec > last)
                        last = d->since_usec;
                if (is_chip(d) && d->usable && (first_usable == 0 || d->since_usec < first_usable))
                        first_usable = d->since_usec;
        }
        if (summary.chips > 0 && summary.healthy == 0)
                tell(ready, "Ready", false, "NoUsableChip", last);
        else
                tell(ready, "Ready", true, summary.chips > 0 ? "ChipsUsable" : "NoChips", first_usable);
        (void) text_format(ready->message, sizeof(ready->message), "%u of %u chips are usable",
                           summary.healthy, summary.chips);
}

static void judge_degraded(const struct inventory *inventory, struct summary_condition *degraded)
{
        uint64_t first_ill = 0, last = 0;
        size_t ill = 0, used = 0;
        char names[200] = "";

        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *d = &inventory->devices[i];

                if (d->group[0] == '\0')
                        continue;
                if (d->since_usec > last)
                        last = d->since_usec;
                if (is_well(d))
                        continue;
                ill++;
                if (first_ill == 0 || d->since_usec < first_ill)
                        first_ill = d->since_usec;
                if (text_format(names + used, sizeof(names) - used, "%s%s %s", used > 0 ? ", " : ": ", d->id,
                                d->reason))
                        used = strlen(names);
                names[used] = '\0';
        }
        tell(degraded, "Degraded", ill > 0, ill > 0 ? "DevicesNotWell" : "DevicesWell",
             ill > 0 ? first_ill : last);
        (void) text_format(degraded->message, sizeof(degraded->message), "%zu of its devices are not well%s",
                           ill, names);
}

void summary_judge(const struct inventory *inventory, struct summary_condition conditions[SUMMARY_CONDITIONS])
{
        judge_ready(inventory, &conditions[SUMMARY_READY]);
        judge_degraded(inventory, &conditions[SUMMARY_DEGRADED]);
}

void summary_leave(struct summary_condition conditions[SUMMARY_CONDITIONS], uint64_t now_usec)
{
        struct summary_condition *ready = &conditions[SUMMARY_READY];

        tell(ready, "Ready", false, SUMMARY_LEAVES, now_usec);
        (void) text_copy(ready->message, sizeof(ready->message),
                         "the agent ends: no chip of the node is given until one is there again");
}
