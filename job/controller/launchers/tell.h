/* Tell: what the launchers in a job's pods learn from the controller while they run: the groups where the
 * manager of this world is, the manager how often it may repair. By annotations, which the kubelet shows as
 * files (docs/adr/0047). What they know already is not written again. */
#pragma once

#include "job/controller/record.h"

/* tell_launchers() - of the present world. While its manager waits, each group that runs is told again after
 * 5, 10, 20 and 40 s (JOB_ANNOTATION_TOLD says why): who has joined is told in vain. */
void tell_launchers(struct record *record);

/* tell_end() - a group: there is nothing left to join. */
void tell_end(struct record *record, struct job_pod *pod);
