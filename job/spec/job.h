/* Job: one TrainingJob, as `remuda run` and the controller understand it. Pure data and its rules.
 *
 * The same struct comes from a YAML file and from a custom resource (job/spec/job_yaml.h); both are judged
 * here, in the same words. The job owns its lists; names are fixed fields (docs/reference/trainingjob.md). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/object_name.h"
#include "job/spec/job_levels.h"
#include "job/spec/job_role.h"
#include "job/spec/job_split.h"

#define JOB_USER             65532 /* of pods, where the job names none: nobody in particular */
#define JOB_DNS_BYTES        OBJECT_NAME_DNS_BYTES
#define JOB_NAME_BYTES       OBJECT_NAME_LABEL_BYTES /* so that it may be the value of a label */
#define JOB_PATH_BYTES       1024
#define JOB_TEXT_BYTES       1024
#define JOB_ROLES_MAX        64
#define JOB_CHIPS_MAX        65536
#define JOB_PROGRAMS_MAX     32
#define JOB_DEPENDENCIES_MAX 32
#define JOB_SEGMENTS_MAX     1024
#define JOB_ARGS_MAX         256
#define JOB_HANG_SECONDS     60 /* unless the job says another */

enum job_urgency { JOB_URGENCY_REGULAR, JOB_URGENCY_EMERGENCY, JOB_URGENCY_COUNT };
enum job_placement {
        JOB_PLACEMENT_FASTEST,
        JOB_PLACEMENT_UNIFORM,
        JOB_PLACEMENT_LARGEST_FREE,
        JOB_PLACEMENT_PACKED,
        JOB_PLACEMENT_COUNT
};
enum job_strategy {
        JOB_STRATEGY_ALLREDUCE,
        JOB_STRATEGY_PS_SYNC,
        JOB_STRATEGY_PS_ASYNC,
        JOB_STRATEGY_PS_SSP,
        JOB_STRATEGY_SPLIT,
        JOB_STRATEGY_COUNT
};
enum job_disruption { JOB_EVICTION_AUTO, JOB_EVICTION_NEVER, JOB_EVICTION_ALLOWED, JOB_EVICTION_COUNT };
enum job_shards { JOB_SHARDS_WEIGHTED, JOB_SHARDS_EQUAL, JOB_SHARDS_COUNT };
enum job_segments { JOB_SEGMENTS_AUTO, JOB_SEGMENTS_NONE, JOB_SEGMENTS_LIST };
enum job_format { JOB_FORMAT_IDX, JOB_FORMAT_RAW, JOB_FORMAT_TEXT, JOB_FORMAT_COUNT };
enum job_distribute { JOB_DATA_SHARED, JOB_DATA_MANAGER, JOB_DATA_ONCE, JOB_DATA_COUNT };
enum job_order { JOB_ORDER_BLOCKS, JOB_ORDER_ROUND_ROBIN, JOB_ORDER_COUNT };

/* The program of a runtime in pods; `remuda run` uses the program table and says that this is ignored. */
struct job_program {
        char runtime[JOB_RUNTIME_BYTES];
        char image[512];
        char **command; /* command_count strings and a NULL */
        size_t command_count;
};

struct job {
        char name[JOB_NAME_BYTES];
        char namespace_[JOB_NAME_BYTES]; /* "" = not given */
        int urgency; /* enum job_urgency, and so on: int, since the decoder writes them by table */
        bool preemptible, equal_nodes, suspend;
        int placement, disruption; /* ... enum job_disruption: may its pods be evicted? */
        int64_t priority;
        char priority_class[JOB_DNS_BYTES]; /* of its pods; "" = the cluster's default one */
        char (*depends_on)[JOB_NAME_BYTES];
        size_t dependency_count;
        int strategy;
        uint64_t staleness;              /* ps-ssp: clocks a worker may be ahead of the slowest */
        uint64_t replicas, microbatches; /* split: pipelines, 0 = as many as are best; and what follows */
        struct job_split_stage *stages;  /* bound by hand, growing; what they leave out is planned */
        struct job_split_profile profile;
        char model[JOB_NAME_BYTES];
        double learning_rate;                                  /* 0 = the program's default */
        uint64_t global_batch, epochs, seed, min_network_mbps; /* ... of each node's fastest interface */
        int shards, segments;
        uint64_t *segment_list; /* indices of last tensors, growing */
        size_t segment_count, stage_count;
        struct job_levels levels;  /* of the sum of gradients: spec.groups */
        double neighbour_exchange; /* 0..1 */

        struct job_role *workers;
        size_t worker_count;
        bool has_servers; /* given; else one on a processor, where the strategy has servers */
        struct job_role servers;
        struct job_role_place manager_place;
        char (*pull_secrets)[JOB_DNS_BYTES]; /* by which its pods pull their images */
        struct job_program *programs;
        size_t program_count, pull_secret_count;
        bool has_ttl, has_model, has_seed, has_epochs; /* given; else a default, mostly the trainer's */
        bool has_args; /* `args` replaces the options of the reference trainer */
        char **args;   /* arg_count strings and a NULL */
        size_t arg_count;

        struct {
                bool given;
                char path[JOB_PATH_BYTES];
                char claim[JOB_NAME_BYTES]; /* PersistentVolumeClaim, of pods alone; "" = none */
                int format;
                char preprocess[JOB_TEXT_BYTES];
                int distribute, order;
                uint64_t poll_seconds; /* 0 = never */
        } data;
        struct {
                bool given;
                char path[JOB_PATH_BYTES];  /* "" = a folder of the job's own */
                char claim[JOB_NAME_BYTES]; /* as above */
                uint64_t every_steps;
        } checkpoint;
        struct {
                bool given;
                uint64_t max; /* new starts of the world; without `restart`: 3 with a checkpoint, else 0 */
                bool migrate, resplit; /* ranks to other chips; layers of a split to other ranks */
                uint64_t hang_seconds; /* no progress for max(this, 5 median steps) = hung */
        } restart;
        struct {
                /* the manager's and the groups' (tls.crt, tls.key, ca.crt); "" = keys are made for it */
                char secret[JOB_DNS_BYTES], group_secret[JOB_DNS_BYTES];
                char server_name[JOB_DNS_BYTES], group_name[JOB_DNS_BYTES]; /* that their certificates have */
        } tls;                                                              /* of pods alone */
        uint64_t ttl_seconds;               /* of the object after the end, if has_ttl; of pods alone */
        uint64_t run_as_user, run_as_group; /* of pods alone; user 0 is root, which many namespaces refuse */
};

/* job_init() - every default; no name and no workers yet. job_free() accepts NULL and leaves job_init(). */
void job_init(struct job *job);
void job_free(struct job *job);

/* job_check() - rules of decoded fields. Return: 0; -EINVAL, "field: value is wrong; remedy". */
int job_check(const struct job *job, struct err *err);

bool job_strategy_has_servers(int strategy);
bool job_shares_follow_speeds(const struct job *job); /* else all are equal: shards: equal, a split */
bool job_shares_change_live(const struct job *job);   /* ... and the reference trainer takes new ones */
uint64_t job_worker_chips(const struct job *job);
uint64_t job_server_chips(const struct job *job); /* 0 unless the strategy has servers; 1 unless given */
uint64_t job_restart_max(const struct job *job);

/* Names of the enums, as they are written in a job; NULL ends them. */
extern const char *const job_urgency_names[JOB_URGENCY_COUNT + 1];
extern const char *const job_placement_names[JOB_PLACEMENT_COUNT + 1];
extern const char *const job_strategy_names[JOB_STRATEGY_COUNT + 1];
extern const char *const job_disruption_names[JOB_EVICTION_COUNT + 1];
extern const char *const job_shards_names[JOB_SHARDS_COUNT + 1];
extern const char *const job_format_names[JOB_FORMAT_COUNT + 1];
extern const char *const job_distribute_names[JOB_DATA_COUNT + 1];
extern const char *const job_order_names[JOB_ORDER_COUNT + 1];
