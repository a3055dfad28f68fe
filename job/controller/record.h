/* Records of jobs, shared by the files of this folder and by nobody else. */
#pragma once

#include "base/metrics_text.h"
#include "base/name_map.h"
#include "job/controller/controller.h"
#include "job/controller/job_pod.h"
#include "job/plan/job_report.h"

/* The questions to the manager of a running world. */
struct job_asking {
        struct grpc_client *client;
        struct tls *tls;
        char address[96];
        bool under_way;
        uint64_t asked_usec, heard_usec, written_usec, learnt_usec; /* CLOCK_MONOTONIC */
        uint64_t noted_usec;              /* CLOCK_MONOTONIC of the last moment for the report */
        double busy_sec[JOB_POINT_RANKS]; /* by then */
};

struct job_record {
        struct name_entry entry; /* the key is `key` */
        struct controller *controller;
        char *key; /* "namespace/name" */
        char namespace_[256], name[256], uid[64], version[64];
        uint64_t generation, created_usec;
        uint64_t first_seen_usec, accepted_usec; /* CLOCK_MONOTONIC */
        bool gone;                               /* the object is not in the store any more */
        bool deleting, has_finalizer, cancel, emergency;
        json_t *finalizers; /* as they stand in the object; may be NULL */
        struct job job;
        bool valid;
        char why[512]; /* not valid: the sentence */
        struct job_state state;
        char bad_status[400];                  /* it was written by somebody else: the sentence */
        bool dirty;                            /* the state is to be written */
        bool writing;                          /* a write of the status is under way */
        uint64_t restarts_before;              /* it was asked to yield */
        bool yielding;                         /* a pod of it was evicted, and has its grace time */
        uint64_t base_restarts, base_reshards; /* before the present manager, which counts its own */
        char keys_uid[64];                     /* of the job whose keys these are */
        char *keys; /* JOB_ANNOTATION_KEYS of its pods, owned; NULL = not made yet */
        bool finalizing, secret_asked, secret_made, queued, pods_counted;
        uint64_t said_usec;  /* CLOCK_REALTIME: when it was last said why it waits */
        uint64_t retry_usec; /* CLOCK_MONOTONIC: not before, after a failed write */
        unsigned calls;      /* writes under way: the record is not freed before they end */
        struct job_asking asking;
        struct job_pod *pods;
        struct job_record *next_queued;
};

struct controller {
        sd_event *loop;
        struct controller_options options;
        struct name_map records;
        struct job_record *first_queued, **last_queued;
        sd_event_source *work; /* defer: reconciles what is queued, then plans */
        sd_event_source *tick;
        sd_event_source *later;   /* wakes the work when planning may go on */
        uint64_t plan_again_usec; /* CLOCK_MONOTONIC: planning takes a tenth of the time at most */
        uint64_t learnt_usec;     /* CLOCK_MONOTONIC: when the SpeedTable was refined */
        bool learning_failed;
        unsigned signing;   /* finalizers that are being set */
        bool signing_waits; /* and more are to be */
        bool plan_wanted, leading, jobs_synced, pods_synced;
        bool closing;
        struct {
                uint64_t pods_created, pods_existed, faults, restarts, moves, planned, ended[JOB_PHASE_COUNT];
                struct histogram accepted_to_pods;
        } metrics;
};

/* controller.c */
void controller_log(struct controller *c, int priority, const char *event, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
uint64_t controller_now(const struct controller *c);       /* CLOCK_REALTIME */
uint64_t controller_monotonic(const struct controller *c); /* CLOCK_MONOTONIC */
bool controller_leads(struct controller *c);
void controller_queue(struct job_record *record); /* reconcile it soon */
void controller_want_plan(struct controller *c);
struct job_record *controller_find(struct controller *c, const char *key);

/* observe.c */
void observe_job(struct controller *c, const char *key, const json_t *object);
void observe_pod(struct controller *c, const char *key, const json_t *object);
void observe_node(struct controller *c, const char *node);
struct job_pod *record_find_pod(struct job_record *record, const char *name);
void record_drop_pod(struct job_record *record, struct job_pod *pod);
void record_free(struct job_record *record);

/* record_set_keys() - takes them over (malloc'd, may be NULL). */
void record_set_keys(struct job_record *record, char *keys);
bool record_make_token(char token[49]); /* 48 random hexadecimal digits */

/* reconcile.c */
void reconcile(struct job_record *record);
void record_release_lease(struct job_record *record);
void record_sync_lease(struct job_record *record);

/* watch.c: groups and the manager as they are now; faults are found and repaired here */
void watch_job(struct job_record *record);
bool record_node_lost(const struct job_record *record, const char *node);

/* progress.c: the manager is asked how far it is, now and then; its restarts and events are passed on */
void progress_ask(struct job_record *record);
void progress_close(struct job_record *record);
void progress_take_ranks(struct job_record *record, const struct job_report *report);
bool progress_pass_events(struct job_record *record, const struct job_report *report);
void progress_count_samples(struct job_record *record);
void progress_note_moment(struct job_record *record);

/* plan_queue.c */
void plan_waiting(struct controller *c);

/* writes.c */
void write_status(struct job_record *record); /* if it is dirty and none is under way */
void write_finalizer(struct job_record *record, bool present);
bool write_secret(struct job_record *record); /* Return: is it there? */
void write_pod(struct job_record *record, const char *name, const char *subtask, json_t *pod); /* takes it */
void write_manager(struct job_record *record, struct job_pod *pod, const char *value);
void delete_pod(struct job_record *record, struct job_pod *pod, unsigned grace_sec);
void record_event(struct job_record *record, bool warning, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
void record_owner(const struct job_record *record, struct job_owner *ret);
