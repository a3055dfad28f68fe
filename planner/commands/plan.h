/* Plan: `remuda plan WHAT ...`. One file a planner (plan_shards.c ...), a row each in plan_table.c, and what
 * they share: reading FILE, and the two ways of answering. */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"
#include "base/text.h"

struct plan_command {
        const char *name;                  /* "shards" */
        const char *summary;               /* one line for `remuda plan --help` */
        int (*run)(int argc, char **argv); /* argv[0] is the name. Return: an exit code */
};

extern const struct plan_command plan_commands[]; /* plan_table.c; ends with name == NULL */

int plan_shards(int argc, char **argv);
int plan_reshard(int argc, char **argv);
int plan_segments(int argc, char **argv);
int plan_model(int argc, char **argv);
int plan_launch(int argc, char **argv);

int plan_split(int argc, char **argv);
int plan_devices(int argc, char **argv);

#define PLAN_INPUT_MAX_BYTES ((size_t) 256 << 20)

/* plan_read_bytes() - the whole of a file, "-" = standard input. *ret is the caller's, NUL-terminated.
 * Return: 0 or negative errno; *err without the file's name. */
int plan_read_bytes(const char *file, char **ret, size_t *ret_size_bytes, struct err *err);

/* plan_read_json() - the same as JSON; what is broken is answered with line and column. */
int plan_read_json(const char *file, json_t **ret, struct err *err);

/* plan_network_read() - a network of operators with shapes: JSON (network_json.h) or ONNX, by its first byte.
 */
struct network;
int plan_network_read(const char *file, uint64_t tokens, struct network *ret, struct err *err);

/* plan_refuse() - the end of a planner that cannot answer: "remuda plan shards: FILE: sentence" on standard
 * error. Return: EXIT_USAGE for what is wrong with the input, EXIT_FAILED for what is wrong with us. */
int plan_refuse(const char *planner, const char *file, const struct err *err);

/* plan_print() - write the answer and release it. Return: an exit code. */
int plan_print(const char *planner, struct text *answer);
