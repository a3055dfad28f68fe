/* Progress: the manager of a running world is asked now and then how far it is, over its gRPC port, with a
 * token that lets one look and nothing else; its restarts and events are passed on. Where the pods' network
 * does not reach here, the status shows phases alone. */
#pragma once

#include "job/controller/record.h"
#include "job/plan/job_report.h"

void progress_ask(struct record *record);
void progress_close(struct record *record);

/* Of a report, also of a manager's last words. */
void progress_take_ranks(struct record *record, const struct job_report *report);
bool progress_take_shares(struct record *record, const struct job_report *report);  /* are they others? */
bool progress_take_crashes(struct record *record, const struct job_report *report); /* were there more? */
bool progress_pass_events(struct record *record, const struct job_report *report);  /* were there new ones? */
void progress_count_samples(struct record *record);
void progress_note_moment(struct record *record); /* and how sure the time left is by then */
