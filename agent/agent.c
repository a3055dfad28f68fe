#include "agent/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/extender_host.h"
#include "agent/feature_file.h"
#include "agent/health/foreign.h"
#include "agent/health/kernel_log.h"
#include "agent/health/repair.h"
#include "agent/health/sysfs_probe.h"
#include "agent/http.h"
#include "agent/inventory/continuity.h"
#include "agent/inventory/inventory_json.h"
#include "agent/kubelet.h"
#include "agent/launch/door.h"
#include "agent/measured.h"
#include "agent/probe/deep.h"
#include "agent/report.h"
#include "agent/watch.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "plugin/config.h"
#include "plugin/plugin.h"

#define STATE_RETRY_USEC UINT64_C(30000000)

static const char *place(const struct agent *a)
{
        return a->options->machine != NULL ? a->options->machine : a->options->root;
}

static bool is_same_place(const struct agent *a, const struct stat *st)
{
        if (a->tree == NULL || a->tree_dev != st->st_dev || a->tree_ino != st->st_ino)
                return false;
        return a->options->machine == NULL ||
               (uint64_t) st->st_mtim.tv_sec * 1000000000 + (uint64_t) st->st_mtim.tv_nsec ==
                       a->tree_mtime_nsec;
}

/* The root may have been replaced under the same name: a tree is of the directory that is there now. The
 * plugin borrows the tree and goes on with the other one: the kubelet must not notice. */
static int open_tree(struct agent *a, struct err *err)
{
        struct tree *tree = NULL;
        struct stat st;
        int r;

        if (stat(place(a), &st) < 0)
                return err_set(err, -errno, "'%s': %m", place(a));
        if (is_same_place(a, &st))
                return 0;
        r = a->options->machine != NULL ? tree_open_machine(a->options->machine, &tree, err)
                                        : tree_open(a->options->root, &tree, err);
        if (r < 0)
                return r;
        if (a->plugin != NULL)
                plugin_set_tree(a->plugin, tree);
        tree_close(a->tree);
        a->tree = tree;
        a->tree_dev = st.st_dev;
        a->tree_ino = st.st_ino;
        a->tree_mtime_nsec = (uint64_t) st.st_mtim.tv_sec * 1000000000 + (uint64_t) st.st_mtim.tv_nsec;
        return a->plugin != NULL ? 0 : kubelet_open(a, err);
}

static void on_changed(void *userdata, const struct device_record *record, enum device_health before,
                       bool is_new)
{
        struct agent *a = userdata;
        const struct device *d = &record->device;
        static const char *const reasons[] = {
                [HEALTH_UNKNOWN] = "DeviceUnknown",         [HEALTH_HEALTHY] = "DeviceHealthy",
                [HEALTH_DEGRADED] = "DeviceDegraded",       [HEALTH_UNHEALTHY] = "DeviceUnhealthy",
                [HEALTH_QUARANTINED] = "DeviceQuarantined",
        };

        if (is_new && d->health == HEALTH_HEALTHY)
                return; /* a device that works is no news at the start */
        if (d->health == HEALTH_HEALTHY)
                report_event(a->report, "Normal", reasons[d->health], d->id, "healthy again; it was %s",
                             device_health_name(before));
        else
                report_event(a->report, d->health == HEALTH_UNKNOWN && is_new ? "Normal" : "Warning",
                             reasons[d->health], d->id, "%s: %s", d->reason, d->message);
}

static void on_look(void *userdata, struct device_record *record, struct finding *finding)
{
        struct agent *a = userdata;

        sysfs_probe(a->tree, &a->config, &record->device, &record->counters, finding);
        sysfs_driver_version(a->tree, &record->device, record->driver_version,
                             sizeof(record->driver_version));
        deep_look(a->deep, &record->device, finding);
}

/* A device that a former agent knew: its faults go on. */
static void on_created(void *userdata, struct device_record *record)
{
        struct agent *a = userdata;
        const struct state_device *saved = state_find(&a->state, record->device.id);

        if (saved == NULL)
                return;
        health_restore(&record->health, &saved->health, strcmp(a->state.boot_id, a->boot_id) == 0,
                       clock_usec(CLOCK_BOOTTIME));
        record->device.since_usec = saved->since_usec;
        record->device.health = saved->health.verdict;
}

static void on_kernel_scan(void *userdata)
{
        struct agent *a = userdata;

        a->kernel_timer = sd_event_source_unref(a->kernel_timer);
        if (a->kernel_faults)
                agent_scan(a, "kernel");
}

static void on_kernel_fault(void *userdata, const struct kernel_fault *fault)
{
        struct agent *a = userdata;
        bool known = false;

        for (size_t i = 0; i < a->judge.record_count; i++) {
                struct device_record *record = a->judge.records[i];
                enum finding_level level;

                if (!kernel_fault_concerns(fault, record->device.pci))
                        continue;
                known = true;
                level = agent_config_level(&a->config, fault->finding.rule, fault->finding.level);
                finding_add(&record->event, level, fault->finding.rule, fault->finding.reason, "%s",
                            fault->finding.message);
                (void) text_copy(record->last_error_space, sizeof(record->last_error_space), fault->space);
                record->last_error_code = fault->code;
                record->last_error_usec = clock_realtime_usec();
                record->kernel_errors++;
        }
        if (known) {
                log_line(&a->log, LOG_WARNING, "kernel", "pci=%s rule=%s", fault->pci, fault->finding.rule);
                a->kernel_faults = true;
                if (a->kernel_timer == NULL)
                        (void) loop_after(a->loop, 10000, on_kernel_scan, a, &a->kernel_timer);
        }
}

static void write_features(struct agent *a)
{
        struct err err = { 0 };

        if (a->config.node_feature_file[0] != '\0' &&
            feature_file_write(a->config.node_feature_file, &a->told, &err) < 0)
                report_event(a->report, "Warning", "FeatureFileNotWritten", NULL, "%s", err.msg);
}

/* Everyone is told: the text for HTTP at once, the rest by their own pace. */
static void tell(struct agent *a, struct inventory *inventory)
{
        json_t *object;
        char *text;

        inventory->generation = a->told.generation + 1;
        object = inventory_encode(inventory);
        text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
        json_decref(object);
        if (text == NULL) {
                log_line(&a->log, LOG_ERR, "scan", "error=\"no memory to tell the inventory\"");
                inventory_free(inventory);
                return;
        }
        free(a->told_json);
        a->told_json = text;
        a->told_json_bytes = strlen(text);
        inventory_free(&a->told);
        a->told = *inventory;
        kubelet_told(a);
        report_changed(a->report);
        write_features(a);
}

/* Nothing that is told is new, but the plugin shall prefer others. */
static void rewire(struct agent *a, struct inventory *inventory)
{
        inventory->generation = a->told.generation;
        inventory_free(&a->told);
        a->told = *inventory;
        kubelet_told(a);
}

static int scan(struct agent *a, struct inventory *inventory, struct err *err)
{
        const struct judge_callbacks callbacks = {
                .look = on_look, .changed = on_changed, .created = on_created, .userdata = a
        };
        int r = open_tree(a, err);

        if (r == 0)
                r = discover_linked(a->tree, &a->config.discovery, deep_links(a->deep), inventory, err);
        if (r < 0)
                return r;
        if (continuity_keep(&a->told, inventory) < 0) {
                inventory_free(inventory);
                return err_set(err, -ENOMEM, "no memory for the scan");
        }
        (void) text_copy(inventory->node, sizeof(inventory->node), a->node);
        inventory->node_class = a->config.node_class;
        (void) text_copy(inventory->pool, sizeof(inventory->pool), a->config.pool);
        kernel_log_poll(a->kernel_log);
        a->kernel_faults = false;
        r = judge_scan(&a->judge, &a->config, &a->told, inventory, clock_usec(CLOCK_BOOTTIME),
                       clock_realtime_usec(), &callbacks);
        if (r < 0)
                return err_set(err, r, "no memory for the scan");
        measured_tell(a->measured, inventory);
        kubelet_name_resources(a, inventory);
        door_fill(a->door, inventory);
        return 0;
}

static void save_state(struct agent *a)
{
        uint64_t hash = state_hash(&a->judge), now = clock_monotonic_usec();
        struct err err = { 0 };

        if (a->state_path[0] == '\0' || hash == a->state_hash || now < a->state_retry_usec)
                return;
        if (state_save(a->state_path, &a->judge, a->boot_id, a->told.generation,
                       kernel_log_sequence(a->kernel_log), &err) < 0) {
                a->state_retry_usec = now + STATE_RETRY_USEC;
                report_event(a->report, "Warning", "StateNotPersisted", NULL,
                             "faults would not survive a restart: %s", err.msg);
                return;
        }
        a->state_hash = hash;
}

static void on_scan_timer(void *userdata)
{
        agent_scan(userdata, "probe");
}

/* The next look: often while a device is on its way back, so that it is not kept waiting by our own pace. */
static void arm_scan(struct agent *a)
{
        uint64_t delay_usec = (uint64_t) a->config.probe_sec * 1000000;
        const struct health_rules *rules = &a->config.health;

        if (a->judge.recovering) {
                uint64_t often = rules->recovery_usec / (rules->recovery_probes + 1);

                often = often > 1000000 ? 1000000 : often < 200000 ? 200000 : often;
                delay_usec = often < delay_usec ? often : delay_usec;
        }
        a->scan_timer = sd_event_source_unref(a->scan_timer);
        (void) loop_after(a->loop, delay_usec, on_scan_timer, a, &a->scan_timer);
}

void agent_scan(struct agent *a, const char *why)
{
        uint64_t begin = clock_monotonic_usec();
        struct inventory inventory;
        struct err err = { 0 };
        int r;

        inventory_init(&inventory);
        r = scan(a, &inventory, &err);
        a->scans_total++;
        histogram_observe(&a->scan_seconds, (double) (clock_monotonic_usec() - begin) / 1e6);
        if (r < 0) {
                inventory_free(&inventory);
                a->scan_failures_total++;
                (void) text_copy(a->scan_trouble, sizeof(a->scan_trouble), err.msg);
                log_line(&a->log, LOG_WARNING, "scan", "why=%s keeping=last error=\"%s\"", why, err.msg);
        } else {
                a->scan_trouble[0] = '\0';
                (void) watch_tree(a->watch, a->tree, &inventory);
                deep_update(a->deep, &inventory);
                if (a->told_json == NULL || !inventory_same(&a->told, &inventory))
                        tell(a, &inventory);
                else if (!inventory_wired_same(&a->told, &inventory))
                        rewire(a, &inventory);
                else
                        inventory_free(&inventory);
                save_state(a);
                repair_consider(a->repair);
        }
        arm_scan(a);
}

int agent_clear(struct agent *a, const char *id)
{
        int r = judge_clear(&a->judge, id);

        if (r == 0)
                agent_scan(a, "cleared");
        return r;
}

static void on_tree_changed(void *userdata, const char *why)
{
        agent_scan(userdata, why);
}

static int name_node(struct agent *a, struct err *err)
{
        if (a->options->node_name != NULL) {
                if (a->options->node_name[0] == '\0' ||
                    !text_copy(a->node, sizeof(a->node), a->options->node_name))
                        return err_set(err, -EINVAL, "--node-name: must be 1 to %zu bytes",
                                       sizeof(a->node) - 1);
                return 0;
        }
        if (gethostname(a->node, sizeof(a->node) - 1) < 0)
                return err_set(err, -errno, "the host's name: %m; give --node-name");
        return 0;
}

/* A machine keeps its own state: this one in /var/lib, a directory that is read as one has it inside, once
 * there is a fault to remember; a recorded machine has none. */
static void place_state(struct agent *a)
{
        const char *folder = getenv("STATE_DIRECTORY"), *root = a->options->root; /* systemd's */

        if (a->options->state != NULL) {
                if (strcmp(a->options->state, "none") != 0)
                        (void) text_copy(a->state_path, sizeof(a->state_path), a->options->state);
        } else if (folder != NULL && folder[0] == '/')
                (void) text_format(a->state_path, sizeof(a->state_path), "%s/agent.json", folder);
        else if (a->options->machine == NULL)
                (void) text_format(a->state_path, sizeof(a->state_path), "%s/var/lib/remuda/agent.json",
                                   watch_is_live(root) ? "" : root);
}

static void restore_state(struct agent *a)
{
        CLEANUP(fclose_p) FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "re");
        struct err err = { 0 };
        int r;

        if (boot != NULL && fgets(a->boot_id, sizeof(a->boot_id), boot) != NULL)
                a->boot_id[strcspn(a->boot_id, "\n")] = '\0';
        place_state(a);
        if (a->state_path[0] == '\0')
                return;
        r = state_load(a->state_path, &a->state, &err);
        if (r < 0 && r != -ENOENT)
                log_line(&a->log, LOG_WARNING, "state", "discarded=true error=\"%s\"", err.msg);
        a->told.generation = a->state.generation;
}

/* A log that cannot be read is one source of faults less, and said. */
static void follow_kernel_log(struct agent *a)
{
        bool same_boot = strcmp(a->state.boot_id, a->boot_id) == 0;
        struct err err = { 0 };

        if (a->options->machine != NULL)
                return;
        if (kernel_log_new(a->loop, a->options->root, same_boot ? a->state.kernel_sequence : 0,
                           on_kernel_fault, a, &a->kernel_log, &err) < 0)
                log_line(&a->log, LOG_WARNING, "kernel",
                         "trouble=\"%s\" going_on=without remedy=\"CAP_SYSLOG\"", err.msg);
        else if (strcmp(kernel_log_way(a->kernel_log), "syslog") == 0)
                log_line(&a->log, LOG_INFO, "kernel", "log=syslog why=\"%s/dev/kmsg may not be opened\"",
                         strcmp(a->options->root, "/") == 0 ? "" : a->options->root);
        kernel_log_poll(a->kernel_log);
}

static int start(struct agent *a, struct err *err)
{
        const struct watch_options watch = { .path = place(a),
                                             .is_file = a->options->machine != NULL,
                                             .period_ms = a->options->rescan_ms,
                                             .changed = on_tree_changed,
                                             .userdata = a };
        int r = name_node(a, err);

        if (r == 0)
                r = agent_config_load(a, err);
        if (r == 0)
                r = open_tree(a, err); /* a root that is not there at the start is a mistake */
        if (r == 0)
                r = report_new(a, &a->report, err);
        if (r == 0)
                r = watch_new(a->loop, &watch, &a->watch, err);
        if (r == 0)
                r = deep_new(a, &a->deep, err);
        if (r == 0)
                r = repair_new(a, &a->repair, err);
        if (r == 0)
                r = foreign_new(a, &a->foreign, err);
        if (r < 0)
                return r;
        restore_state(a);
        a->measured = measured_new(a, a->state_path);
        r = door_open(a, err);
        if (r < 0)
                return r;
        agent_scan(a, "start");
        follow_kernel_log(a);
        r = agent_config_watch(a, err);
        if (r == 0)
                r = extender_host_open(a, err);
        return r < 0 ? r : http_open(a, err);
}

int agent_new(sd_event *loop, const struct agent_options *options, struct agent **ret, struct err *err)
{
        struct agent *a = calloc(1, sizeof(*a));
        int r;

        if (a == NULL)
                return err_set(err, -ENOMEM, "no memory for the agent");
        a->loop = sd_event_ref(loop);
        a->options = options;
        a->config_fd = -1;
        a->started_usec = clock_monotonic_usec();
        a->scan_seconds.bounds = histogram_duration_bounds;
        a->scan_seconds.bound_count = HISTOGRAM_DURATION_BOUNDS;
        log_init(&a->log);
        inventory_init(&a->told);
        r = start(a, err);
        if (r < 0) {
                agent_free(a);
                return r;
        }
        *ret = a;
        return 0;
}

void agent_free(struct agent *a)
{
        if (a == NULL)
                return;
        http_server_free(a->http);
        extender_host_close(a);
        door_free(a->door);
        kubelet_close(a);
        deep_free(a->deep);
        repair_free(a->repair);
        foreign_free(a->foreign);
        measured_close(a->measured);
        (void) sd_event_source_unref(a->scan_timer);
        (void) sd_event_source_unref(a->kernel_timer);
        kernel_log_free(a->kernel_log);
        agent_config_unwatch(a);
        watch_free(a->watch);
        report_free(a->report);
        judge_free(&a->judge);
        state_free(&a->state);
        inventory_free(&a->told);
        free(a->told_json);
        tree_close(a->tree);
        agent_config_free(&a->config);
        free(a->plugin_config);
        (void) sd_event_unref(a->loop);
        free(a);
}

int agent_check_config(const struct agent_options *options, struct err *err)
{
        struct agent a = { .options = options, .config_fd = -1 };
        int r = agent_config_load(&a, err);

        agent_config_free(&a.config);
        free(a.plugin_config);
        return r;
}

int agent_dry_run(const struct agent_options *options, char **ret_json, struct err *err)
{
        struct agent a = { .options = options, .config_fd = -1 };
        const struct judge_callbacks nothing = { .userdata = NULL };
        struct inventory inventory;
        json_t *object = NULL;
        int r = agent_config_load(&a, err);

        inventory_init(&inventory);
        inventory_init(&a.told);
        if (r == 0)
                r = name_node(&a, err);
        if (r == 0)
                r = options->machine != NULL ? tree_open_machine(options->machine, &a.tree, err)
                                             : tree_open(options->root, &a.tree, err);
        if (r == 0)
                r = discover(a.tree, &a.config.discovery, &inventory, err);
        if (r == 0)
                r = judge_scan(&a.judge, &a.config, &a.told, &inventory, clock_usec(CLOCK_BOOTTIME),
                               clock_realtime_usec(), &nothing);
        if (r == 0) {
                (void) text_copy(inventory.node, sizeof(inventory.node), a.node);
                inventory.node_class = a.config.node_class;
                (void) text_copy(inventory.pool, sizeof(inventory.pool), a.config.pool);
                (void) resource_map_apply(&a.plugin_config->resources, &inventory, NULL);
                object = inventory_encode(&inventory);
                *ret_json = object != NULL ? json_dumps(object, JSON_INDENT(2)) : NULL;
                json_decref(object);
                r = *ret_json == NULL ? err_set(err, -ENOMEM, "no memory for the inventory") : 0;
        }
        judge_free(&a.judge);
        inventory_free(&inventory);
        tree_close(a.tree);
        agent_config_free(&a.config);
        free(a.plugin_config);
        return r;
}
