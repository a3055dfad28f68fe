/* The queue of jobs, the clock and the log of a controller. */
#include "job/controller/controller_internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "io/loop.h"

void controller_log(struct controller *c, int priority, const char *event, const char *fmt, ...)
{
        CLEANUP(free_p) char *line = NULL;
        va_list values;

        va_start(values, fmt);
        if (vasprintf(&line, fmt, values) < 0)
                line = NULL;
        va_end(values);
        if (line != NULL)
                c->options.log(c->options.userdata, priority, event, line);
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

struct record *controller_find(struct controller *c, const char *key)
{
        return (struct record *) name_map_find(&c->records, key);
}

void controller_queue(struct record *record)
{
        struct controller *c = record->controller;

        if (c->closing)
                return;
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
        if (!c->closing)
                (void) sd_event_source_set_enabled(c->work, SD_EVENT_ONESHOT);
}
