/* A cluster that a test tells its objects, as lines of YAML, for the tests of what is answered about it. */
#pragma once

#include <cmocka.h>
#include <string.h>

#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "io/clock.h"
#include "scheduler-extender/ledger/cluster.h"
#include "tests/support/dir_store.h"
#include "tests/support/patience.h"

#define TOLD_NOW_USEC UINT64_C(1795255200000000) /* 2026-11-21T10:00:00Z */

/* @POOL: "regular" or "reserved". @GROUPS: TOLD_GROUP(), ... @DEVICES: TOLD_DEVICE(), ... or "" */
#define TOLD_NODE(NAME, CLASS, POOL, GROUPS, DEVICES)                                                        \
        "- {apiVersion: remuda.dev/v1alpha1, kind: NodeAccelerators, metadata: {name: " NAME                 \
        "}, status: {generation: 1, bootID: b, nodeClass: " CLASS ", pool: " POOL ", groups: [" GROUPS       \
        "], devices: [" DEVICES "]}}\n"
#define TOLD_GROUP(NAME, MODEL, TOTAL, HEALTHY)                                                              \
        "{name: " NAME ", vendor: nvidia, runtime: cuda, model: " MODEL                                      \
        ", resource: nvidia.com/gpu, fabric: none, total: " TOTAL ", healthy: " HEALTHY                      \
        ", free: 0, tflopsBf16: 100, memoryBytes: 85899345920}"
#define TOLD_DEVICE(ID, GROUP, HEALTH)                                                                       \
        "{id: " ID ", group: " GROUP                                                                         \
        ", model: H100, index: 0, pci: \"\", numa: 0, nodes: [], health: " HEALTH                            \
        ", reason: said, since: \"2026-11-21T09:00:00Z\"}"
/* A node of one sound group "g". */
#define TOLD_PLAIN(NAME, MODEL, CHIPS)                                                                       \
        TOLD_NODE(NAME, "any", "regular", TOLD_GROUP("g", MODEL, CHIPS, CHIPS), "")
/* @META and @SPEC: more fields, each with a comma behind it. */
#define TOLD_POD(NAME, META, CHIPS, SPEC)                                                                    \
        "- {kind: Pod, metadata: {" META "name: " NAME ", uid: u-" NAME                                      \
        ", creationTimestamp: \"2026-11-21T09:00:00Z\"}, spec: {" SPEC                                       \
        "containers: [{name: c, resources: {limits: {nvidia.com/gpu: " CHIPS "}}}]}}\n"

static inline json_t *told_parse(const char *yaml)
{
        json_t *json = NULL;
        struct err err = { 0 };

        if (yaml_parse(yaml, strlen(yaml), &json, &err) < 0)
                fail_msg("%s in %s", err.msg, yaml);
        return json;
}

static inline void told_cluster_take(struct cluster *cluster, const char *yaml)
{
        json_t *objects = told_parse(yaml);
        struct err err = { 0 };

        for (size_t i = 0; i < json_array_size(objects); i++)
                if (cluster_take(cluster, json_array_get(objects, i), &err) < 0)
                        fail_msg("object %zu: %s in %s", i, err.msg, yaml);
        json_decref(objects);
}

/* told_cluster() - what is told stands on an empty folder, @f. Close it before the folder. */
static inline struct cluster *told_cluster(struct dir_store *f, struct cluster_options options,
                                           const char *yaml)
{
        struct cluster *cluster = NULL;
        struct err err = { 0 };
        char spec[80];

        (void) text_format(spec, sizeof(spec), "dir:%s", f->path);
        options.store = spec;
        if (cluster_open(f->loop, &options, &cluster, &err) < 0)
                fail_msg("%s", err.msg);
        for (uint64_t end = clock_monotonic_usec() + patience_usec(); !cluster_is_ready(cluster);) {
                if (clock_monotonic_usec() > end)
                        fail_msg("%s was not read", spec);
                (void) sd_event_run(f->loop, 20000);
        }
        told_cluster_take(cluster, yaml);
        return cluster;
}
