/* Watch: the groups and the manager of a planned job as they are now; faults are found and repaired here: the
 * world starts anew in place, what lost its chips gets others, or the job ends. */
#pragma once

#include "job/controller/record.h"

void watch_job(struct record *record);

/* watch_node_lost() - is this node gone, or silent for too long? */
bool watch_node_lost(const struct record *record, const char *node);
