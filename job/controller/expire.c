/* The age of an end, and who still waits for the job that has ended. */
#include "job/controller/expire.h"

#include <string.h>

#include "job/controller/controller_internal.h"

#define SECOND_USEC UINT64_C(1000000) /* a status has whole seconds: an end may be that much younger */

void expire_note_end(struct record *record)
{
        uint64_t real = controller_now(record->controller), end = record->state.completion_usec;

        if (record->ended_usec != 0)
                return;
        record->ended_usec = controller_monotonic(record->controller);
        if (end != 0 && real > end + SECOND_USEC)
                record->end_age_usec = real - end - SECOND_USEC;
}

static bool is_over(const struct record *record)
{
        uint64_t age = controller_monotonic(record->controller) - record->ended_usec;

        return age + record->end_age_usec >= record->job.ttl_seconds * SECOND_USEC;
}

static bool depends_on(const struct record *record, const struct record *parent)
{
        if (record->gone || record->deleting || job_phase_ended(record->state.phase) ||
            record_was_planned(record) || strcmp(record->namespace_, parent->namespace_) != 0)
                return false;
        for (size_t i = 0; i < record->job.dependency_count; i++)
                if (strcmp(record->job.depends_on[i], parent->name) == 0)
                        return true;
        return false;
}

/* Looks through all jobs, so not at every look. Who waits would wait for ever for a parent that is not there.
 */
bool expire_is_awaited(const struct record *parent)
{
        for (const struct name_map_entry *e = name_map_first(&parent->controller->records); e != NULL;
             e = name_map_next(&parent->controller->records, e))
                if (depends_on((const struct record *) e, parent))
                        return true;
        return false;
}

bool expire_is_due(const struct record *record)
{
        return record->valid && record->job.has_ttl && record->ended_usec != 0 && !record->dirty &&
               !record->writing && !record->finalizing && is_over(record) &&
               controller_monotonic(record->controller) >= record->removal_usec;
}
