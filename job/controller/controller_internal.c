/* The queue of jobs, the clock and the log of a controller. */
#include "job/controller/controller_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/loop.h"

void controller_log(struct controller *c, int priority, const char *event, const char *fmt, ...)
{
        char *line = NULL;
        va_list values;

        va_start(values, fmt);
        if (vasprintf(&line, fmt, values) >= 0) {
                c->options.log(c->options.userdata, priority, event, line);
                free(line);
        }
        va_end(values);
}

uint64_t controller_now(const struct controller *c)
{
        return loop_realtime_usec(c->loop);
}

uint64_t controller_monotonic(const struct controller *c)
{
        return loop_now_usec(c->loop);
}

bool controller_leads(struct controller *c)
{
        return c->options.leads(c->options.userdata);
}

struct ledger *controller_ledger(const struct controller *c)
{
        return cluster_ledger(c->options.cluster);
}

bool controller_may_look(const struct record *record)
{
        return store_namespace_trouble(cluster_store(record->controller->options.cluster),
                                       record->namespace_) == NULL;
}

struct record *controller_find(struct controller *c, const char *key)
{
        return (struct record *) name_map_find(&c->records, key);
}

void controller_queue(struct record *record)
{
        struct controller *c = record->controller;

        (void) sd_event_source_set_enabled(c->work, SD_EVENT_ONESHOT);
        if (record->queued)
                return;
        record->queued = true;
        record->next_queued = NULL;
        *c->last_queued = record;
        c->last_queued = &record->next_queued;
}

void controller_want_plan(struct controller *c)
{
        c->plan_wanted = true;
        (void) sd_event_source_set_enabled(c->work, SD_EVENT_ONESHOT);
}
