/* Trace CSV: node and pod lists of a cluster trace ("openb" form) <-> what scheduler-extender/replay/replay.h
 * takes.
 *
 * The first line names the columns; their order is free and unknown ones are passed over. Nodes need `sn` (or
 * `name`), `cpu_milli`, `memory_mib`, `gpu` (or `num_gpu`), and may have `model`; pods need `name`,
 * `cpu_milli`, `memory_mib`, `num_gpu`, and may have `gpu_milli`, `gpu_spec` (accepted models, `A|B`),
 * `creation_time`, `deletion_time`. Plain CSV: no quotes. In memory only. */
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "scheduler-extender/replay/replay.h"

#define TRACE_MODELS_MAX 64

struct trace_csv_models {
        char names[TRACE_MODELS_MAX][64];
        size_t count;
};

struct trace_csv_nodes {
        struct replay_node *nodes;
        const char **names; /* into `text` */
        size_t count;
        char *text;
};

struct trace_csv_pods {
        struct replay_pod *pods;
        const char **names; /* into `text` */
        size_t count;
        char *text;
};

/* Both take over nothing and copy the text; release in any case. @models: grows with every new name.
 * Return: 0; -EBADMSG with "line L: column: why"; -ENOMEM. */
int trace_csv_nodes_decode(const char *text, size_t size_bytes, struct trace_csv_models *models,
                           struct trace_csv_nodes *ret, struct err *err);
int trace_csv_pods_decode(const char *text, size_t size_bytes, struct trace_csv_models *models,
                          struct trace_csv_pods *ret, struct err *err);
void trace_csv_nodes_free(struct trace_csv_nodes *nodes);
void trace_csv_pods_free(struct trace_csv_pods *pods);
