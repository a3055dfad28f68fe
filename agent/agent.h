/* Agent: the state of remuda-agent and the way of everything through it:
 *
 *      tree changed, or a look is due -> found -> judged -> published (stages.h) -> kubelet, HTTP, store,
 * events
 *
 * One loop, no threads. This struct has one owner, agent.c; http.c and metrics.c read it. Parts get what they
 * need as arguments, and services (agent/config/services.h) to speak back. */
#pragma once

#include <systemd/sd-event.h>

#include "agent/agent_options.h"
#include "agent/config/services.h"
#include "agent/configuration.h"
#include "agent/health/judge.h"
#include "agent/launch/launch_api.h"
#include "agent/launch/launch_programs.h"
#include "agent/memory.h"
#include "base/histogram.h"
#include "io/log.h"

struct agent {
        const struct agent_options *options;
        char node[AGENT_OPTIONS_NODE_BYTES];
        sd_event *loop;
        struct log log;
        struct services services;
        struct configuration configuration;
        struct configuration_watch *configuration_watch;
        uint64_t started_usec; /* CLOCK_MONOTONIC */

        struct tree *tree;                            /* NULL while it cannot be opened */
        uint64_t tree_dev, tree_ino, tree_mtime_nsec; /* of the place it was opened from */
        struct watch *watch;
        struct judge judge;
        struct inventory published; /* to everyone */
        char *published_json;       /* and its text; NULL before the first scan */
        size_t published_json_bytes;
        struct agent_facts_pace facts_pace; /* of what the agent says of itself */
        sd_event_source *scan_timer;

        struct kernel_log *kernel_log; /* NULL = there is none to read */
        sd_event_source *kernel_timer;
        bool kernel_faults; /* some are not judged yet */
        struct memory memory;

        struct measured *measured; /* speeds that were measured on this node */
        struct vendor_probe *probe;
        struct kubelet *kubelet; /* NULL = none */
        struct node_report *report;
        struct repair *repair;
        struct foreign *foreign;
        struct http_server *http;
        struct launch_programs programs;
        struct launch_api_options launch_options;
        struct launch_api *launch_api;       /* NULL = none */
        struct extender_host *extender_host; /* NULL = not served */

        uint64_t scans_total, scan_failures_total, reloads_total, reload_failures_total;
        struct histogram scan_seconds;
        char scan_trouble[256]; /* why the last scan failed; "" */
};

/* agent_new() - everything is set up and the first scan is done. @options: borrowed for the agent's life. */
int agent_new(sd_event *loop, const struct agent_options *options, struct agent **ret, struct err *err);
void agent_free(struct agent *agent); /* accepts NULL */

/* agent_check_config() - 0, or what is wrong with --config. */
int agent_check_config(const struct agent_options *options, struct err *err);

/* agent_dry_run() - one scan as JSON text (the caller frees it); nothing is written anywhere, and nobody but
 * the machine's files is asked. */
int agent_dry_run(const struct agent_options *options, char **ret_json, struct err *err);
