/* Plan shards: the files of `remuda plan shards`, in memory.
 *
 * In:  {"batch", "epoch", "workers": [{"name", "speed" | "alpha_ms", "beta_ms" | "table": [[b, ms], ...],
 *       "min", "max", "multiple", "source"}], "communication": {"alpha_ms", "beta_ms_per_byte", "bytes"}}
 *      ("source" is plan_speeds.h's) or, instead of workers, "groups": [{"name", "workers"}].
 * Out: {"batch", "step_ms", "ideal_ms", "equal_ms", "workers": [{"name", "batch", "weight", "step_ms",
 * "begin", "end"}]}, times null where speeds are no measured ones, with groups also "groups" of the same
 * fields and their "workers". docs/man/remuda-plan.1.
 *
 * Pure. Names are borrowed from the JSON, which must outlive the request. */
#pragma once

#include <jansson.h>

#include "base/json/json_field.h"
#include "planner/shards/plan_speeds.h"
#include "planner/shards/shards.h"

struct plan_shards_group {
        const char *name;
        size_t first, count; /* workers */
};

struct plan_shards_request {
        uint64_t batch;
        uint64_t epoch;               /* samples; 0 = not given */
        struct shard_worker *workers; /* source: one of chip_speed_names; NULL = not asked */
        struct plan_speeds_found speeds;
        size_t worker_count;
        struct plan_shards_group *groups; /* NULL = workers were given without groups */
        size_t group_count;
        bool has_communication;
        struct shard_communication communication;
};

/* What `--drop-harmful` left out: the step and the communication that the plan would have with it. */
struct plan_shards_left_out {
        size_t worker;
        bool priced;
        double step_ms, communication_ms;
};

struct plan_shards_answer {
        struct shard *shards; /* [worker_count] */
        struct shards_plan plan;
        bool least; /* planned with the communication */
        double communication_ms;
        struct plan_shards_left_out *left_out;
        size_t left_out_count;
};

/* plan_shards_request_decode() - Return: 0, and a request for plan_shards_request_free(); -EBADMSG with the
 * field.
 * @known: of the workers that name a device (plan_speeds.h), for the job's @model; NULL = devices are
 * refused */
int plan_shards_request_decode(const json_t *json, const struct plan_speeds_known *known, const char *model,
                               struct plan_shards_request *ret, struct err *err);
void plan_shards_request_free(struct plan_shards_request *request);

/* plan_shards_request_answer() - plan it. @least: with the communication, which must have been given.
 * Return: 0, and an answer for plan_shards_answer_free(); negative errno. */
int plan_shards_request_answer(const struct plan_shards_request *request, bool least,
                               struct plan_shards_answer *ret, struct err *err);
void plan_shards_answer_free(struct plan_shards_answer *answer);

/* plan_shards_worker_decode() - one worker's model and limits (not its name). @points: released with free()
 * by whoever owns the worker. */
int plan_shards_worker_decode(const struct json_field *at, struct shard_worker *ret, struct err *err);
