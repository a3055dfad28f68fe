/* Expire: when the object of a job that has ended is deleted (spec.ttlSecondsAfterFinished).
 *
 * How long ago the end was is asked of the wall clock once, when this process first sees it, and only if
 * another process wrote it; from then on the monotonic clock counts. So a clock that is set while the
 * controller runs changes nothing, an end in the future counts as one just now, and a controller that is
 * restarted again and again keeps nothing for ever. In memory only. */
#pragma once

#include "job/controller/record.h"

/* expire_note_end() - the job is seen to have ended. */
void expire_note_end(struct record *record);

/* expire_is_due() - its time is over, its end is written, and it is time to try.
 * expire_is_awaited() - a job that waits depends on it. O(jobs) */
bool expire_is_due(const struct record *record);
bool expire_is_awaited(const struct record *parent);
