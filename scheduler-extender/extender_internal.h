/* Extender, inside: its state, shared by the files of this folder and by nobody else. */
#pragma once

#include "base/metrics.h"
#include "io/loop.h"
#include "job/controller/controller.h"
#include "scheduler-extender/conditions.h"
#include "scheduler-extender/extender_options.h"
#include "scheduler-extender/labels.h"
#include "scheduler-extender/page/page.h"
#include "scheduler-extender/server/server_listen.h"
#include "scheduler-extender/server/settings.h"
#include "scheduler-extender/waiting_events.h"
#include "scheduler-extender/wire/names_memory.h"
#include "store/leader.h"

#define EXTENDER_SNAPSHOT_SECONDS 10

enum verb { VERB_FILTER, VERB_PRIORITIZE, VERB_BIND, VERB_EXPLAIN, VERB_WHATIF, VERB_COUNT };

struct extender {
        sd_event *loop;
        const struct extender_options *options;
        struct settings settings;
        struct cluster *cluster;
        struct server_listen listen;
        struct page *page;
        struct controller *jobs; /* NULL: TrainingJobs are not carried out here */
        sd_event_source *every_second, *after_change;
        struct loop_turns turns;
        struct leader *leader;           /* NULL: alone by order */
        unsigned commits;                /* binds and evictions being written */
        struct settling *settling;       /* binds of no clear end */
        struct snapshot_pool *snapshots; /* what people ask is worked out there */
        struct waiting_events waiting;
        struct bind *awaiting; /* binds of pods that were not seen yet */
        unsigned awaiting_count;
        uint64_t audited_usec;     /* when the store was last read anew (monotonic); 0 = never */
        uint64_t audit_again_usec; /* an audit out of turn (monotonic); 0 = none */
        bool auditing;
        struct labels labels;
        struct conditions conditions;
        struct names_memory names; /* that kube-scheduler sent last */
        bool was_ready;
        uint64_t thought_usec; /* when holds and evictions were last worked out (monotonic) */
        uint64_t thought_generation;
        uint64_t woken_usec; /* when waiting pods were last woken */
        uint64_t departures_seen, arrivals_seen;
        const char *wake_why;     /* they are to be woken again; or NULL */
        uint32_t backfills;       /* holds in force */
        int binding;              /* of them, but for emergencies', those that keep everybody waiting */
        size_t emergencies;       /* that wait, at the last look */
        size_t reserve_steps;     /* of one look at them */
        bool reserve_goes_on;     /* the last one ended before all were looked at */
        bool plans_go_on;         /* ... before all plans of jobs were */
        uint64_t unreadable_usec; /* since when events of unreadable objects are counted */
        unsigned unreadable_events;

        struct {
                struct histogram seconds[VERB_COUNT];
                uint64_t requests[VERB_COUNT][2]; /* [1] = refused */
                uint64_t rejected[REASON_COUNT];
                uint64_t leases_made, leases_expired, binds, bind_failures, binds_settled[2];
                uint64_t evictions, evictions_refused, claims_lost, take_backs, chip_seconds_lost,
                        regular_chips_taken, audits, drifts, wakes, left_out;
        } metrics;
};

void extender_log(struct extender *x, int priority, const char *event, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
uint64_t extender_now(const struct extender *x); /* clock_steady_usec() */

/* extender_event() - a warning about an object of the store, whose key is "namespace/name" or "name". */
void extender_event(struct extender *x, enum store_kind kind, const char *key, const char *reason,
                    const char *sentence);

/* extender_end() - counts a verb that began then (clock_monotonic_nsec()). */
void extender_end(struct extender *x, enum verb verb, uint64_t begin_nsec, bool refused);

/* extender_is_closing() - the store gives its last answers: nothing more is asked of it. */
bool extender_is_closing(const struct extender *x);

/* extender_think_again() - holds and evictions are worked out anew, soon. */
void extender_think_again(struct extender *x);

/* extender_refuses() - the sentence with which filter and bind are to be refused now, or NULL. */
const char *extender_refuses(struct extender *x);
