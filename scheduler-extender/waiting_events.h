/* Waiting events: who waits, by which reason, in the words of explain. Counted as a metric, and told of each
 * pod that has waited for --waiting-seconds as an Event Waiting: kube-scheduler's own often says no more than
 * "Insufficient", since it asks the extender about nodes with room alone.
 *
 * Looked at now and then on a snapshot (io/snapshot.h): the WAITING_EVENTS_JUDGED oldest pods are judged, and
 * of those that are due the oldest WAITING_EVENTS_TOLD are told, by the leader, each at most once in five
 * minutes. */
#pragma once

#include "scheduler-extender/decide/reason.h"
#include "scheduler-extender/ledger/name_numbers.h"

#define WAITING_EVENTS_JUDGED 500
#define WAITING_EVENTS_TOLD   10

struct extender;

struct waiting_events {
        uint64_t pods[REASON_COUNT]; /* by the most frequent reason; [REASON_NONE]: a node takes it */
        uint64_t look_usec;          /* when they are looked at next (monotonic) */
        bool looking;
        struct name_numbers told; /* when which pod was told (monotonic) */
};

/* waiting_events_look() - called every second. */
void waiting_events_look(struct extender *x);
void waiting_events_free(struct extender *x); /* after the snapshots */
