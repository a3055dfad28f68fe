/* Ledger, its jobs: what holds pods, a TrainingJob and the slots of a gang's lease together. Pure but for the
 * heap; a look-up O(1), a slot O(pods on its node). */
#pragma once

#include "scheduler-extender/ledger/ledger.h"

#define LEDGER_JOB_POD_BYTES 128

/* What the controller says of a TrainingJob that has no plan, or gives its chips up, in its status: cut to
 * size. */
struct ledger_job_words {
        char phase[16], reason[48], message[512];
        char queue[254]; /* that its label names; "" = none */
};

struct ledger_job_slot {
        struct ledger_job *job;
        struct ledger_node *node;
        struct ledger_job_slot *next_on_node, *next_in_job;
        struct request request; /* of the member it is for */
};

/* A pod may be several of these. */
enum ledger_jobs_members {
        LEDGER_JOBS_THERE,  /* may be placed, or is on a node; a manager without chips, too */
        LEDGER_JOBS_CHIPS,  /* ... and asks for chips */
        LEDGER_JOBS_WAIT,   /* ledger_pods_waits() */
        LEDGER_JOBS_PLACED, /* is on a node */
        LEDGER_JOBS_BEGUN,  /* asks for chips, and is on a node or was */
        LEDGER_JOBS_COUNT,
};

/* A place that a TrainingJob's plan has for one of its pods. */
struct ledger_job_place {
        char pod[LEDGER_JOB_POD_BYTES], node[254];
        struct request request;
        struct ledger_job_slot *slot; /* its lease; NULL = the pod is there, or the node is not known */
};

struct ledger_job {
        struct ledger_pod *pods;
        uint32_t pod_count, slot_count;
        uint32_t members[LEDGER_JOBS_COUNT]; /* of the pods, how many are what */
        struct ledger_job_slot *slots;
        uint64_t lease_ends_usec; /* with slots != NULL */
        bool together;            /* its slots were sought under one switch: members go where they are */
        uint64_t pass_ends_usec;  /* this and the next two: scheduler-extender/groups/group_pass.h */
        uint32_t pass_nodes_gone;
        bool pass_failed;
        bool looked_at; /* room for its plan was looked for in this round (scheduler-extender/reserve.c) */
        uint64_t gave_way_usec;          /* since when others go before its gang's lease; 0 = they do not */
        uint64_t saved_usec;             /* of the TrainingJob's last checkpoint that outlives its pods,
                                            CLOCK_REALTIME; 0 = none is known */
        struct job *training;            /* the TrainingJob of that name, owned; NULL = there is none */
        bool training_borrowed;          /* of the ledger that this one is a copy of */
        struct ledger_job_words *words;  /* of the TrainingJob, owned; NULL = nothing is said. No copy has
                                            them */
        struct ledger_job_place *places; /* of its plan, owned; the slots are then theirs */
        size_t place_count;
        uint32_t references;
        struct ledger_job *next;
        char key[]; /* "namespace/name" */
};

struct ledger_job *ledger_jobs_find(const struct ledger *ledger, const char *namespace_, const char *name);

/* Jobs live while a pod, a lease or a TrainingJob refers to them. ledger_jobs_refer() makes and refers. */
struct ledger_job *ledger_jobs_refer(struct ledger *ledger, const char *namespace_, const char *name);
void ledger_jobs_release(struct ledger *ledger, struct ledger_job *job);

/* Members are counted as they change: each pod of a gang is asked about by itself, and to walk through all
 * its fellows would cost a gang of 4,096 their square. O(1). */

/* ledger_jobs_recount() - something of the pod has changed: its node, its life, its request or its job.
 * ledger_jobs_uncount() - it is about to have no job. */
void ledger_jobs_recount(struct ledger_pod *pod);
void ledger_jobs_uncount(struct ledger_pod *pod);

/* ledger_jobs_others() - of the job (NULL = 0), but for `self` (NULL = the store does not know it). */
uint32_t ledger_jobs_others(const struct ledger_job *job, const struct ledger_pod *self,
                            enum ledger_jobs_members which);

/* ledger_jobs_wanted() - of a gang, as its list says, else its label. */
uint32_t ledger_jobs_wanted(const struct request *request, const struct request_member *kinds,
                            size_t kind_count);

/* ledger_jobs_set_training() - the TrainingJob of this name; `training` is taken over (malloc'd), NULL = it
 * is gone. 0 or -ENOMEM (then it was freed). */
int ledger_jobs_set_training(struct ledger *ledger, const char *namespace_, const char *name,
                             struct job *training);

/* ledger_jobs_set_words() - what is said of it, until the TrainingJob is set again; NULL, or without memory:
 * nothing. */
void ledger_jobs_set_words(struct ledger_job *job, const struct ledger_job_words *words);

/* ledger_jobs_set_plan() - what was decided for a TrainingJob: chips are leased for each place until its pod
 * is on a node, without an end; a gang's own lease of that name goes, and of other gangs' leases what is in
 * its way, but for those whose members are all there and have begun to be placed. Only pod, node and request
 * of @places are read; count 0 = it has no plan. Return: 0 or -ENOMEM, then nothing has changed. */
int ledger_jobs_set_plan(struct ledger *ledger, const char *namespace_, const char *name,
                         const struct ledger_job_place *places, size_t count);

/* ledger_jobs_planning() - whose plan has a place for the pod "namespace/name", whatever its labels say, or
 * NULL. ledger_jobs_keep_plan() - a pod of the job has come or gone; ledger_jobs_keep_plans() - a node has.
 */
struct ledger_job *ledger_jobs_planning(const struct ledger *ledger, const char *pod_key);
void ledger_jobs_keep_plan(struct ledger *ledger, struct ledger_job *job);
void ledger_jobs_keep_plans(struct ledger *ledger);

/* ledger_jobs_claim_place() - a planned claim, which is called like its pod, has chips of a node, or
 * none any more (NULL): those of a place there are leased no longer, or again. 0 or -ENOMEM. */
int ledger_jobs_claim_place(struct ledger *ledger, const char *pod_key, const char *node);

/* Leases: slots are added one by one, and go all together. */
int ledger_jobs_add_slot(struct ledger *ledger, struct ledger_job *job, struct ledger_node *node,
                         const struct request *request);
void ledger_jobs_drop_lease(struct ledger *ledger, struct ledger_job *job);
void ledger_jobs_drop_slot(struct ledger *ledger, struct ledger_job_slot *slot);

/* ledger_jobs_give_up_slot() - the pod comes to the node (NULL = not known which): of its gang's slots the
 * one that suits it best goes. ledger_jobs_set_claimed() - its claims have chips, there, or have not any
 * more. */
void ledger_jobs_give_up_slot(struct ledger *ledger, const struct ledger_pod *pod,
                              const struct ledger_node *node);
void ledger_jobs_set_claimed(struct ledger *ledger, struct ledger_pod *pod, bool claimed,
                             const struct ledger_node *node);

/* ledger_jobs_refer_texts(), ledger_jobs_release_texts() - what the request demands is kept for one more who
 * holds it, and is not any more. */
void ledger_jobs_refer_texts(struct ledger *ledger, const struct request *request);
void ledger_jobs_release_texts(struct ledger *ledger, const struct request *request);

/* ledger_jobs_namespace() - of the job, as text. Return: false if `ret` is too small.
 * ledger_jobs_abandon() - nobody is left to use the job's lease: it goes, and ledger.gang_left has its
 * namespace. */
bool ledger_jobs_namespace(const struct ledger_job *job, char *ret, size_t bytes);
void ledger_jobs_abandon(struct ledger *ledger, struct ledger_job *job);

void ledger_jobs_free_all(struct ledger *ledger); /* at the ledger's end */
