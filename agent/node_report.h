/* Report: what is published goes into the store: the inventory, when it changed and at most once a second;
 * its file's time every ten seconds (a dir: store); events, at most one of a reason about a device in five
 * minutes. A store that fails is tried again; nothing waits for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/config/services.h"
#include "base/err.h"

struct node_report;

#define NODE_REPORT_FIRST_USEC UINT64_C(5000000)

/* node_report_new() - @node: the name that everything is published under; @store: "none", "dir:PATH" or
 * "kubernetes";
 * @kubeconfig: NULL = the usual place. Borrowed for its life. */
int node_report_new(const struct services *services, const char *node, const char *store,
                    const char *kubeconfig, struct node_report **ret, struct err *err);
void node_report_free(struct node_report *report); /* accepts NULL */

/* node_report_changed() - services->published is new. The first is told when services->serves says so, or
 * NODE_REPORT_FIRST_USEC after the start: before, pods would be sent to a plugin that is not there. */
void node_report_changed(struct node_report *report);

/* node_report_leave() - at once, and until the end: the agent ends (summary_leave()). */
void node_report_leave(struct node_report *report);

/* node_report_event() - about a device, or about the node when `device` is NULL.
 * @type: "Normal" or "Warning"; @reason: CamelCase literal */
void node_report_event(struct node_report *report, const char *type, const char *reason, const char *device,
                       const char *sentence);

struct node_report_status {
        bool enabled, in_step; /* in_step: what was published last is in the store */
        uint64_t writes_total, failures_total, events_total;
        char trouble[200];
};
void node_report_status(const struct node_report *report, struct node_report_status *ret);
