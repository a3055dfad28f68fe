/* View object: a view as a TrainingJob, for whoever shows TrainingJobs: what job_view_read_object() reads, of
 * a job whose view is of another source. It has no metadata but its name; each rank is a subtask of its own;
 * events are conditions, the last VIEW_OBJECT_EVENTS_MAX of them. Pure. */
#pragma once

#include <jansson.h>

#include "job/show/job_view.h"

#define VIEW_OBJECT_EVENTS_MAX 64

json_t *view_object_make(const struct job_view *view); /* a new reference; NULL = no memory */
