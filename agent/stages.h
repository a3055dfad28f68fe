/* Stages: one look at the machine, from what is there to what is published:
 *
 *      tree --stages_find--> found --stages_judge--> judged --stages_publish--> published
 *
 * Each step takes the stage before it and leaves it empty, so that nothing half done is published and no step
 * is left out: the daemon's scan and `--dry-run` are the same three calls. */
#pragma once

#include "agent/discovery/discovery_options.h"
#include "agent/health/judge.h"
#include "agent/inventory/inventory.h"
#include "agent/inventory/link_report.h"
#include "agent/inventory/numbers.h"
#include "agent/inventory/resource_map.h"
#include "agent/tree/tree.h"
#include "base/err.h"

/* What the machine's files say, under the ids and group names of before. Health is what sysfs says of this
 * moment. */
struct stages_found {
        struct inventory inventory;
};

/* And with the past: verdicts, devices that left, devices that are kept out. */
struct stages_judged {
        struct inventory inventory;
};

/* And with what the node's owner and others add: names, measurements, who holds what, programs. */
struct stages_published {
        struct inventory inventory;
};

/* stages_find() - @links: what vendors' libraries said of links, NULL = nothing; @before: what was published
 * last; @numbers: that devices had since the node is up, and have from now on. */
int stages_find(const struct tree *tree, const struct discovery_options *options,
                const struct link_report_list *links, const struct inventory *before, struct numbers *numbers,
                struct stages_found *ret, struct err *err);

/* stages_judge() - the times are those of judge_scan(). Return: 0 or -ENOMEM. */
int stages_judge(struct stages_found *found, struct judge *judge, const struct agent_config *config,
                 const struct inventory *before, uint64_t now_usec, uint64_t real_usec,
                 const struct judge_callbacks *callbacks, struct stages_judged *ret);

/* What is added; a part that a NULL says is not there adds nothing. */
struct stages_additions {
        const char *node;
        const struct agent_config *config;
        const struct resource_map *resources;
        void (*fill)(void *userdata, struct inventory *inventory); /* the owners of the rest */
        void *userdata;
};

/* stages_describe() - what the node's configuration says: its class, its pool, what the groups' resources are
 * called. Return: as stages_publish(). */
int stages_describe(const struct agent_config *config, const struct resource_map *resources,
                    struct inventory *inventory, struct err *err);

/* stages_publish() - Return: 0; -EINVAL and *err when the configuration's resource names cannot be given:
 * *ret is good, with the usual names. */
int stages_publish(struct stages_judged *judged, const struct stages_additions *additions,
                   struct stages_published *ret, struct err *err);
