/* Controller, inside: its state, and what the files of this folder ask of it. */
#pragma once

#include "base/metrics.h"
#include "job/controller/claims/claim_plan.h"
#include "job/controller/controller_options.h"
#include "job/controller/kueue/kueue.h"
#include "job/controller/record.h"
#include <systemd/sd-event.h>

struct controller {
        sd_event *loop;
        struct controller_options options;
        struct name_map records;
        struct record *first_queued, **last_queued;
        sd_event_source *work; /* defer: reconciles what is queued, then plans */
        sd_event_source *tick;
        sd_event_source *later;   /* wakes the work when planning may go on */
        uint64_t plan_again_usec; /* CLOCK_MONOTONIC: planning takes a tenth of the time at most */
        uint64_t learnt_usec;     /* CLOCK_MONOTONIC: when the SpeedTable was refined */
        bool learning_failed;
        bool plan_wanted, leading, jobs_synced, pods_synced;
        struct kueue kueue;
        struct claim_plan_list claim_plans;
        bool held; /* held: most nodes are silent, so that none is lost */
        struct {
                uint64_t pods_created, pods_existed, pods_refused, unbound, faults, restarts, recuts, moves,
                        launcher_crashes, stragglers, planned, ended[JOB_PHASE_COUNT];
                struct histogram accepted_to_pods;
        } metrics;
};

void controller_log(struct controller *c, int priority, const char *event, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
uint64_t controller_now(const struct controller *c);       /* CLOCK_REALTIME */
uint64_t controller_monotonic(const struct controller *c); /* CLOCK_MONOTONIC */
bool controller_leads(struct controller *c);
struct ledger *controller_ledger(const struct controller *c);
/* controller_may_look() - is the namespace read? What is not shown is not gone: nothing is done about its
 * jobs. */
bool controller_may_look(const struct record *record);
void controller_queue(struct record *record); /* reconcile it soon */
void controller_want_plan(struct controller *c);
struct record *controller_find(struct controller *c, const char *key);
