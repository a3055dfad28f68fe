/* Agent: the state of remuda-agent and the way of everything through it:
 *
 *      tree changed, or a look is due -> scan (discover, judge) -> told -> kubelet, HTTP, store, events
 *
 * One struct, one loop, no threads. Parts get the struct and touch what is theirs. */
#pragma once

#include <jansson.h>
#include <systemd/sd-event.h>

#include "agent/config/agent_config.h"
#include "agent/discovery/discovery.h"
#include "agent/health/judge.h"
#include "agent/inventory/device.h"
#include "agent/options.h"
#include "agent/state_file.h"
#include "agent/tree/tree.h"
#include "base/metrics_text.h"
#include "io/http/http_server.h"
#include "io/log.h"
#include "store/store.h"

struct deep;
struct door;
struct extender;
struct foreign;
struct kernel_log;
struct measured;
struct plugin;
struct pod_resources;
struct repair_room;
struct report;
struct watch;

struct agent {
        const struct agent_options *options;
        char node[254];
        sd_event *loop;
        struct log log;
        uint64_t started_usec; /* CLOCK_MONOTONIC */

        struct agent_config config;

        struct tree *tree;                            /* NULL while it cannot be opened */
        uint64_t tree_dev, tree_ino, tree_mtime_nsec; /* of the place it was opened from */
        struct watch *watch;
        struct judge judge;
        struct inventory told; /* what everyone is told */
        char *told_json;       /* and its text; NULL before the first scan */
        size_t told_json_bytes;
        sd_event_source *scan_timer;

        struct kernel_log *kernel_log; /* NULL = there is none to read */
        sd_event_source *kernel_timer;
        bool kernel_faults;    /* some are not judged yet */
        char boot_id[40];      /* of this host, whatever the tree says: the state file's clock is its own */
        char state_path[1024]; /* "" = nothing is remembered */
        struct state state;    /* as it was at the start */
        uint64_t state_hash;   /* of what the file holds */
        uint64_t state_retry_usec;

        struct measured *measured; /* speeds that were measured on this node */
        struct deep *deep;
        struct plugin *plugin;      /* NULL = no kubelet */
        struct pod_resources *pods; /* NULL = who holds what is not asked */
        struct report *report;
        struct repair_room *repair;
        struct foreign *foreign;
        struct http_server *http;
        struct door *door;         /* NULL = none */
        struct extender *extender; /* NULL = not served */
        struct extender_options *extender_options;
        struct plugin_config *plugin_config;
        sd_event_source *config_signal, *config_watch;
        int config_fd; /* inotify; -1 = none */

        uint64_t scans_total, scan_failures_total, reloads_total, reload_failures_total;
        struct histogram scan_seconds;
        char scan_trouble[256]; /* why the last scan failed; "" */
};

/* agent_new() - everything is set up and the first scan is done. @options: borrowed for the agent's life. */
int agent_new(sd_event *loop, const struct agent_options *options, struct agent **ret, struct err *err);
void agent_free(struct agent *agent); /* accepts NULL */

/* agent_scan() - look at everything now and tell what is new. @why: for the log */
void agent_scan(struct agent *agent, const char *why);

/* agent_clear() - an operator's word about a device. 0 or -ENOENT. */
int agent_clear(struct agent *agent, const char *id);

/* agent_check_config() - 0, or what is wrong with --config. */
int agent_check_config(const struct agent_options *options, struct err *err);

/* agent_dry_run() - one scan as JSON text (the caller frees it); nothing is written anywhere. */
int agent_dry_run(const struct agent_options *options, char **ret_json, struct err *err);
