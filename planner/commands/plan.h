/* Plan: `remuda plan WHAT ...`. One file a planner (plan_shards.c ...), a row each in plan.c, and what they
 * share: reading FILE, and the two ways of answering. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"
#include "base/options.h"
#include "base/text.h"
#include "planner/shards/plan_speeds.h"

struct plan_host;

struct plan_command {
        const char *name;    /* "shards" */
        const char *summary; /* one line for `remuda plan --help` */
        /* argv[0] is the name. Return: an exit code */
        int (*run)(int argc, char **argv, const struct plan_host *host);
        const struct option_program *options; /* what it takes */
};

/* What the program around the planners has and they do not; each may be NULL. */
struct plan_host {
        const struct plan_command *more; /* commands after our own; ends with name == NULL */
        /* the SpeedTable of a store and its chips, for plan_speeds_known_free(). 0 or a negative errno */
        int (*read_speeds)(const char *store, const char *kubeconfig, struct plan_speeds_known *ret,
                           struct err *err);
};

/* plan_run() - argv[0] is "plan". Return: an exit code. */
int plan_run(const struct plan_host *host, int argc, char **argv);

/* plan_command_at() - our own, then the host's. Return: NULL when there are no @i + 1. */
const struct plan_command *plan_command_at(const struct plan_host *host, size_t i);

int plan_shards(int argc, char **argv, const struct plan_host *host);
int plan_reshard(int argc, char **argv, const struct plan_host *host);
int plan_segments(int argc, char **argv, const struct plan_host *host);
int plan_split(int argc, char **argv, const struct plan_host *host);
int plan_model(int argc, char **argv, const struct plan_host *host);
extern const struct option_program plan_shards_options, plan_reshard_options, plan_segments_options,
        plan_split_options, plan_model_options;

#define PLAN_INPUT_MAX_BYTES ((size_t) 256 << 20)

/* plan_read_bytes() - the whole of a file, "-" = standard input. *ret is the caller's, NUL-terminated.
 * Return: 0 or negative errno; *err without the file's name. */
int plan_read_bytes(const char *file, char **ret, size_t *ret_size_bytes, struct err *err);

/* plan_parse_json() - what is broken is answered with line and column. */
int plan_parse_json(const char *bytes, size_t size_bytes, json_t **ret, struct err *err);

/* plan_read_json() - a file as JSON. */
int plan_read_json(const char *file, json_t **ret, struct err *err);

/* plan_network_read() - a network of operators with shapes: JSON (network_json.h) or ONNX, by its first byte.
 */
struct network;
int plan_network_read(const char *file, uint64_t tokens, struct network *ret, struct err *err);

/* plan_finish() - the end of a planner: the answer on standard output or, where r < 0, "remuda plan shards:
 * FILE: sentence" on standard error. Releases the answer. Return: an exit code; EXIT_USAGE for what is wrong
 * with the input, EXIT_FAILED for what is wrong with us. */
int plan_finish(const char *planner, const char *file, int r, struct text *answer, const struct err *err);
