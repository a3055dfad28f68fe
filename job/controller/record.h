/* Record: all that the controller knows of one job: its object, its state, its pods, and what is under way.
 * One owner: the controller's map; whoever else needs of it what he is told. */
#pragma once

#include "base/name_map.h"
#include "job/controller/job_pod.h"
#include "job/controller/kueue/kueue_workload.h"
#include "job/launcher/trust/proof.h"
#include "job/spec/job.h"
#include "job/world/job_rate.h"
#include "job/world/restarts.h"

struct template_list_entry; /* job/controller/claim_templates.c */
struct controller;

/* The requests to the manager of a running world. */
struct record_asking {
        struct grpc_client *client;
        struct tls *tls;
        char address[96], token[64];
        struct proof proof; /* that one knows the token, before each question */
        bool under_way;
        bool waits; /* for groups to join, as it said last */
        uint64_t asked_usec, last_seen_usec, written_usec, learnt_usec; /* CLOCK_MONOTONIC */
        uint64_t noted_usec;                       /* CLOCK_MONOTONIC of the last moment for the report */
        double busy_sec[JOB_PROGRESS_POINT_RANKS]; /* by then */
};

#define BUDGET_UNKNOWN UINT32_MAX /* of another controller, perhaps */

/* How it stands in its queue (kueue.h). */
struct record_queue {
        char label[KUEUE_NAME_BYTES]; /* of the object, as it is now; "" = it has none */
        bool holds;                   /* it is not admitted: nothing is planned or made for it */
        bool admitted;                /* its job is as it was admitted */
        bool writing;                 /* a write of its Workload is under way */
        uint64_t retry_usec;          /* CLOCK_MONOTONIC: no other one before */
        bool unlike;                  /* its Workload does not ask for what the job asks for now */
        uint64_t compared_usec; /* CLOCK_MONOTONIC: when that was looked at; 0 = not since either changed */
        char unnamed[120];      /* which of its chips nobody can say the name of; "" = none */
        char refused[300];      /* why the last one was refused; "" = it was not */
        char ignored[KUEUE_NAME_BYTES]; /* the change of its label that was said to be ignored */
        char reason[JOB_REASON_BYTES], sentence[500]; /* why it holds, or held */
};

struct record {
        struct name_map_entry entry; /* the key is `key` */
        struct controller *controller;
        char *key; /* "namespace/name" */
        char namespace_[256], name[256], uid[64], version[64];
        uint64_t generation, created_usec;
        uint64_t accepted_usec; /* CLOCK_MONOTONIC */
        bool gone;              /* the object is not in the store any more */
        bool deleting, has_finalizer, cancel, emergency;
        json_t *finalizers; /* as they stand in the object; may be NULL */
        struct job job;
        json_t *fixed,
                *ignored; /* of its spec, what may not change; of one that is not taken (spec_change.h) */
        bool valid;
        char why[512]; /* not valid: the sentence */
        struct job_state state;
        char bad_status[400];      /* it was written by somebody else: the sentence */
        bool dirty;                /* the state is to be written */
        bool writing;              /* a write of the status is under way */
        uint64_t restarts_before;  /* it was asked to yield */
        struct restarts_pace pace; /* CLOCK_MONOTONIC: of its faults */
        bool silence_said;         /* it sits on a node that is silent as most are */
        bool yielding;             /* a pod of it was evicted, and has its grace time */
        uint64_t base_restarts, base_reshards,
                base_recuts;            /* before the present manager, which counts its own */
        char keys_uid[64];              /* of the job whose keys these are */
        char *keys;                     /* JOB_ANNOTATION_KEYS of its pods, owned; NULL = not made yet */
        char taken[JOB_POD_NAME_BYTES]; /* the first pod that was there before it was asked for, and that the
                                           watch has not shown as this job's; "" = none */
        bool finalizing, secret_asked, secret_made, queued, pods_counted;
        bool unbound;          /* of a plan made here no group's pod was seen on a node yet */
        uint64_t ended_usec;   /* CLOCK_MONOTONIC: when this process saw that it has ended; 0 = it has not */
        uint64_t end_age_usec; /* how long ago its end was by then, where another process wrote it */
        uint64_t removal_usec; /* CLOCK_MONOTONIC: the deletion of its object is not asked for before */
        char removal_refused[200]; /* why that was refused last; "" = it was not */
        uint64_t blocks_usec;      /* CLOCK_MONOTONIC: since when others wait behind it; 0 = they do not */
        uint64_t said_usec;        /* CLOCK_MONOTONIC: when it was last said why it waits */
        uint64_t retry_usec;       /* CLOCK_MONOTONIC: not before, after a failed write */
        uint64_t refused_usec;     /* CLOCK_MONOTONIC since when its pods are refused; 0 = they are not */
        uint64_t unanswered_usec;  /* CLOCK_MONOTONIC since when asking for them is not answered; 0 = it is */
        uint64_t plan_after_usec;  /* CLOCK_MONOTONIC: not planned before, after its pods were refused or
                                      on no node for too long */
        uint64_t unbound_usec; /* CLOCK_MONOTONIC since when a pod of its plan has no node; 0 = all have */
        uint64_t unbound_look_usec; /* CLOCK_MONOTONIC: when that was looked at */
        struct {
                unsigned pods;       /* that its disruption budget keeps; 0 = there is none, BUDGET_UNKNOWN */
                bool under_way;      /* it is being written */
                unsigned asked;      /* ... to keep so many */
                bool overtaken;      /* ... and what was seen of it last is not that */
                bool refused;        /* that was said */
                bool cleared;        /* it was deleted, for nothing could be written over it */
                uint64_t after_usec; /* CLOCK_MONOTONIC: not before, after a failed write */
        } budget;
        struct {                     /* of the ConfigMap that its profile is read from (profile_read.h) */
                bool under_way;      /* it is being read */
                uint64_t asked_usec; /* CLOCK_MONOTONIC of the last answer; 0 = there was none */
                char why[JOB_MESSAGE_BYTES]; /* it could not be read: the sentence; "" = it could */
        } profile;
        unsigned refusals, unbound_times; /* times in a row that it was given up for either */
        unsigned calls;                   /* writes under way: the record is not freed before they end */
        struct record_asking asking;
        struct record_queue queue;
        struct job_rate rate; /* CLOCK_MONOTONIC */
        uint64_t stragglers;  /* ranks that its managers named slow */
        struct job_pod *pods;
        struct template_list_entry *claim_templates; /* of the present plan, asked for or made; owned */
        struct record *next_queued;
};

/* record_new() - of "namespace/name", entered into the map; NULL without memory. */
struct record *record_new(struct controller *c, const char *key);
void record_free(struct record *record); /* its lease is given back and nobody is asked any more */

/* record_start_again() - another object of the same name: nothing that was known of the old one holds for it.
 * record_forget_budget() - somebody else may have written it. */
void record_start_again(struct record *record, const char *uid);
void record_forget_budget(struct record *record);

/* record_was_planned() - its parents had succeeded then: nobody asks for them again, whatever becomes of it.
 */
bool record_was_planned(const struct record *record);

/* record_lease() - the ledger leases what the record's plan says: nothing of a job that ended or goes. */
void record_lease(struct record *record);

/* record_drop_plan() - and its lease, of which nothing was made: the job waits for chips like a new one.
 * record_give_up() - the whole plan, its lease and its pods. */
void record_drop_plan(struct record *record, const char *reason, const char *sentence);
void record_give_up(struct record *record, const char *reason, const char *sentence);

/* record_uses_chips() - is there a pod of it that has not ended? */
bool record_uses_chips(const struct record *record);

struct job_pod *record_find_pod(struct record *record, const char *name);
struct job_pod *record_add_pod(struct record *record, const char *name); /* NULL without memory */
void record_drop_pod(struct record *record, struct job_pod *pod);

/* record_set_keys() - takes them over (malloc'd, may be NULL). */
void record_set_keys(struct record *record, char *keys);
