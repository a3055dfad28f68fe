/* Agent: what happens when, from the start to the end of the daemon. */
#include "agent/agent.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "agent/extender_host.h"
#include "agent/feature_file.h"
#include "agent/health/foreign.h"
#include "agent/health/kernel_log.h"
#include "agent/health/repair.h"
#include "agent/health/sysfs_probe.h"
#include "agent/http.h"
#include "agent/inventory/inventory_json.h"
#include "agent/inventory/link_report_line.h"
#include "agent/kubelet.h"
#include "agent/measured.h"
#include "agent/node_report.h"
#include "agent/probe/vendor_probe.h"
#include "agent/self_facts.h"
#include "agent/stages.h"
#include "agent/tree/tree_directory.h"
#include "agent/tree/tree_machine.h"
#include "agent/watch.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/failpoint.h"
#include "io/loop.h"

static void on_scan(void *userdata, const char *why);

static void on_event(void *userdata, const char *type, const char *reason, const char *device,
                     const char *sentence)
{
        struct agent *a = userdata;

        if (a->report != NULL)
                node_report_event(a->report, type, reason, device, sentence);
}

static size_t on_holders(void *userdata, const struct holder **ret, uint64_t *ret_asked_usec)
{
        return kubelet_holders(((const struct agent *) userdata)->kubelet, ret, ret_asked_usec);
}

static void on_ask_holders(void *userdata)
{
        kubelet_ask_holders(((const struct agent *) userdata)->kubelet);
}

static bool on_serves(void *userdata)
{
        return kubelet_serves(((const struct agent *) userdata)->kubelet);
}

/* Nobody holds it for certain: the kubelet, where there is one, must have said so. */
static bool on_is_held(void *userdata, const char *id)
{
        const struct agent *a = userdata;
        const struct holder *holders = NULL;
        struct plugin_status kubelet;
        uint64_t asked = 0;

        if (launch_api_holds(a->launch_api, id))
                return true;
        (void) kubelet_holders(a->kubelet, &holders, &asked);
        if (kubelet_knows_holders(a->kubelet) && asked == 0) /* one that is there has not answered yet */
                return kubelet_status(a->kubelet, &kubelet) && kubelet.kubelet_present;
        return services_is_held(&a->services, id, NULL, NULL);
}

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

static int open_kubelet(struct agent *a, struct err *err)
{
        int r = kubelet_new(&a->services, a->options, a->node, a->configuration.plugin, a->tree, &a->kubelet,
                            err);

        if (kubelet_knows_holders(a->kubelet))
                a->services.holders = on_holders;
        return r;
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
        r = a->options->machine != NULL ? tree_machine_open(a->options->machine, &tree, err)
                                        : tree_directory_open(a->options->root, &tree, err);
        if (r < 0)
                return r;
        kubelet_set_tree(a->kubelet, tree);
        tree_close(a->tree);
        a->tree = tree;
        a->tree_dev = st.st_dev;
        a->tree_ino = st.st_ino;
        a->tree_mtime_nsec = (uint64_t) st.st_mtim.tv_sec * 1000000000 + (uint64_t) st.st_mtim.tv_nsec;
        return a->kubelet != NULL || a->loop == NULL ? 0 : open_kubelet(a, err);
}

static void on_changed(void *userdata, const struct judge_record *record, enum device_health before,
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
                services_event(&a->services, "Normal", reasons[d->health], d->id, "healthy again; it was %s",
                               device_health_name(before));
        else
                services_event(&a->services, d->health == HEALTH_UNKNOWN && is_new ? "Normal" : "Warning",
                               reasons[d->health], d->id, "%s: %s", d->reason, d->message);
}

static void on_look(void *userdata, struct judge_record *record, struct finding *finding)
{
        struct agent *a = userdata;

        sysfs_probe(a->tree, &a->configuration.agent, &record->device, &record->counters, finding);
        sysfs_probe_driver_version(a->tree, &record->device, record->driver_version,
                                   sizeof(record->driver_version));
        if (a->probe != NULL)
                vendor_probe_look(a->probe, &record->device, finding);
}

static void on_created(void *userdata, struct judge_record *record)
{
        memory_recall(&((const struct agent *) userdata)->memory, record);
}

static void on_kernel_scan(void *userdata)
{
        struct agent *a = userdata;

        if (a->kernel_faults)
                on_scan(a, "kernel");
}

static void on_kernel_fault(void *userdata, const struct kernel_fault *fault)
{
        struct agent *a = userdata;
        bool known = false;

        for (size_t i = 0; i < a->judge.record_count; i++) {
                struct judge_record *record = a->judge.records[i];
                enum finding_level level;

                if (!kernel_fault_concerns(fault, record->device.pci))
                        continue;
                known = true;
                level = agent_config_level(&a->configuration.agent, fault->finding.rule,
                                           fault->finding.level);
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
                if (!loop_is_armed(a->kernel_timer))
                        loop_rearm(a->kernel_timer, 10000);
        }
}

static void write_features(struct agent *a)
{
        struct err err = { 0 };

        if (a->configuration.agent.node_feature_file[0] != '\0' &&
            feature_file_write(a->configuration.agent.node_feature_file, &a->published, &err) < 0)
                services_event(&a->services, "Warning", "FeatureFileNotWritten", NULL, "%s", err.msg);
}

/* It is published: the text for HTTP at once, the rest by their own pace. */
static void publish(struct agent *a, struct stages_published *new)
{
        struct inventory *inventory = &new->inventory;
        json_t *object;
        char *text;

        inventory->generation = a->published.generation + 1;
        object = inventory_json_encode(inventory);
        text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
        json_decref(object);
        if (text == NULL) {
                log_line(&a->log, LOG_ERR, "scan", "error=\"no memory to tell the inventory\"");
                inventory_free(inventory);
                return;
        }
        free(a->published_json);
        a->published_json = text;
        a->published_json_bytes = strlen(text);
        inventory_free(&a->published);
        a->published = *inventory;
        FAILPOINT("agent.publish");
        kubelet_publish(a->kubelet, &a->published);
        node_report_changed(a->report);
        FAILPOINT("agent.published");
        write_features(a);
}

/* Nothing that is published is new, but the plugin shall prefer others. */
static void rewire(struct agent *a, struct stages_published *new)
{
        struct inventory *inventory = &new->inventory;

        inventory->generation = a->published.generation;
        inventory->agent = a->published.agent; /* as it was told */
        inventory_free(&a->published);
        a->published = *inventory;
        kubelet_publish(a->kubelet, &a->published);
}

static void on_fill(void *userdata, struct inventory *inventory)
{
        struct agent *a = userdata;

        vendor_probe_update(a->probe, inventory);
        self_facts_fill(&inventory->agent, a->probe, a->kubelet);
        measured_tell(a->measured, inventory);
        kubelet_fill(a->kubelet, inventory);
        launch_programs_fill(&a->programs, inventory);
        launch_api_fill(a->launch_api, inventory);
}

/* The machine as it is to be published now. */
static int look(struct agent *a, struct stages_published *ret, struct err *err)
{
        const struct judge_callbacks callbacks = {
                .look = on_look, .changed = on_changed, .created = on_created, .userdata = a
        };
        const struct stages_additions additions = { .node = a->node,
                                                    .config = &a->configuration.agent,
                                                    .resources = &a->configuration.plugin->resources,
                                                    .fill = on_fill,
                                                    .userdata = a };
        struct stages_found found;
        struct stages_judged judged;
        struct err refused = { 0 };
        int r = open_tree(a, err);

        if (r == 0)
                r = stages_find(a->tree, &a->configuration.agent.discovery, vendor_probe_links(a->probe),
                                &a->published, &a->memory.state.numbers, &found, err);
        if (r < 0)
                return r;
        FAILPOINT("agent.found");
        kernel_log_poll(a->kernel_log);
        a->kernel_faults = false;
        r = stages_judge(&found, &a->judge, &a->configuration.agent, &a->published,
                         clock_usec(CLOCK_BOOTTIME), clock_realtime_usec(), &callbacks, &judged);
        if (r < 0)
                return err_set(err, r, "no memory for the scan");
        if (stages_publish(&judged, &additions, ret, &refused) < 0)
                services_event(&a->services, "Warning", "ResourceNamesRefused", NULL, "%s", refused.msg);
        return 0;
}

static void on_scan_timer(void *userdata)
{
        on_scan(userdata, "probe");
}

/* The next look: often while a device is on its way back, so that it is not kept waiting by our own pace. */
static void arm_scan(struct agent *a)
{
        uint64_t delay_usec = (uint64_t) a->configuration.agent.probe_sec * 1000000;
        const struct health_rules *rules = &a->configuration.agent.health;

        if (a->judge.recovering) {
                uint64_t often = rules->recovery_usec / (rules->recovery_probes + 1);

                often = often > 1000000 ? 1000000 : often < 200000 ? 200000 : often;
                delay_usec = often < delay_usec ? often : delay_usec;
        }
        loop_rearm(a->scan_timer, delay_usec);
}

static void on_scan(void *userdata, const char *why)
{
        struct agent *a = userdata;
        uint64_t begin = clock_monotonic_usec();
        struct stages_published new;
        struct err err = { 0 };
        int r = look(a, &new, &err);

        a->scans_total++;
        histogram_observe(&a->scan_seconds, (double) (clock_monotonic_usec() - begin) / 1e6);
        if (r < 0) {
                a->scan_failures_total++;
                (void) text_copy(a->scan_trouble, sizeof(a->scan_trouble), err.msg);
                log_line(&a->log, LOG_WARNING, "scan", "why=%s keeping=last error=\"%s\"", why, err.msg);
                services_event(&a->services, "Warning", "ScanFailed", NULL, "%s", err.msg);
        } else {
                a->scan_trouble[0] = '\0';
                (void) watch_tree(a->watch, a->tree, &new.inventory);
                if (a->published_json == NULL || !inventory_same(&a->published, &new.inventory) ||
                    agent_facts_are_news(&a->facts_pace, &a->published.agent, &new.inventory.agent, begin))
                        publish(a, &new);
                else if (!inventory_wired_same(&a->published, &new.inventory))
                        rewire(a, &new);
                else
                        inventory_free(&new.inventory);
                memory_keep(&a->memory, &a->services, &a->judge, a->published.generation,
                            kernel_log_sequence(a->kernel_log));
                repair_consider(a->repair, &a->judge);
        }
        arm_scan(a);
}

/* An operator's word about a device. */
static int on_clear(void *userdata, const char *id)
{
        struct agent *a = userdata;
        int r = judge_clear(&a->judge, id);

        if (r == 0)
                on_scan(a, "cleared");
        return r;
}

static void load_programs(struct agent *a)
{
        const char *given = a->options->programs;

        if (a->options->launch_socket == NULL || strcmp(a->options->launch_socket, "none") != 0)
                launch_programs_load(&a->programs,
                                     given != NULL ? given : a->configuration.agent.programs_path,
                                     given != NULL, &a->log);
}

static void on_configuration(void *userdata)
{
        struct agent *a = userdata;
        struct err err = { 0 };

        (void) sd_notify(0, "RELOADING=1");
        if (configuration_load(a->options, &a->configuration, &err) < 0) {
                a->reload_failures_total++;
                log_line(&a->log, LOG_ERR, "reload", "keeping=last error=\"%s\"", err.msg);
                services_event(&a->services, "Warning", "ConfigurationRefused", NULL, "%s", err.msg);
        } else {
                a->reloads_total++;
                configuration_apply_log(a->options, &a->configuration, &a->log);
                log_line(&a->log, LOG_INFO, "reload", "result=done");
                if (a->kubelet == NULL && open_kubelet(a, &err) < 0) /* nothing was offered until now */
                        log_line(&a->log, LOG_ERR, "reload", "error=\"%s\"", err.msg);
                kubelet_configure(a->kubelet, a->configuration.plugin);
                vendor_probe_configure(a->probe);
                if (a->launch_api != NULL)
                        load_programs(a);
                on_scan(a, "reload");
        }
        (void) sd_notify(0, "READY=1");
}

/* A log that cannot be read is one source of faults less, and said. */
static void follow_kernel_log(struct agent *a)
{
        struct err err = { 0 };

        if (a->options->machine != NULL)
                return;
        if (kernel_log_new(a->loop, a->options->root,
                           memory_is_of_this_boot(&a->memory) ? a->memory.state.kernel_sequence : 0,
                           on_kernel_fault, a, &a->kernel_log, &err) < 0)
                log_line(&a->log, LOG_WARNING, "kernel",
                         "trouble=\"%s\" going_on=without remedy=\"CAP_SYSLOG\"", err.msg);
        else if (strcmp(kernel_log_way(a->kernel_log), "syslog") == 0)
                log_line(&a->log, LOG_INFO, "kernel", "log=syslog why=\"%s/dev/kmsg may not be opened\"",
                         strcmp(a->options->root, "/") == 0 ? "" : a->options->root);
        kernel_log_poll(a->kernel_log);
}

/* What is there without any part: enough for one look. @loop: NULL = for no more than that */
static int prepare(struct agent *a, sd_event *loop, const struct agent_options *options, struct err *err)
{
        int r;

        a->loop = sd_event_ref(loop);
        a->options = options;
        a->started_usec = clock_monotonic_usec();
        a->scan_seconds.bounds = histogram_duration_bounds;
        a->scan_seconds.bound_count = HISTOGRAM_DURATION_BOUNDS;
        log_init(&a->log, "remuda-agent", options->log_format, options->log_level);
        inventory_init(&a->published);
        a->services = (struct services){ .loop = a->loop,
                                         .log = &a->log,
                                         .config = &a->configuration.agent,
                                         .published = &a->published,
                                         .scan = on_scan,
                                         .event = on_event,
                                         .ask_holders = on_ask_holders,
                                         .serves = on_serves,
                                         .userdata = a };
        r = configuration_load(options, &a->configuration, err);
        configuration_apply_log(a->options, &a->configuration, &a->log);
        if (r == 0)
                r = agent_options_name_node(options, a->node, err);
        if (r == 0)
                r = open_tree(a, err); /* a root that is not there at the start is a mistake */
        if (r < 0)
                return r;
        memory_open(&a->memory, options, options->machine == NULL && watch_is_live(options->root), &a->log);
        a->published.generation = a->memory.state.generation;
        a->measured = measured_new(&a->services, a->memory.path);
        return 0;
}

/* What libraries said of links lies beside what runs, or in a directory read as one; a record has none. */
static int open_probe(struct agent *a, struct err *err)
{
        const struct agent_options *o = a->options;
        bool live = o->machine == NULL && watch_is_live(o->root);
        char links[900] = "";

        if (o->machine == NULL && (o->state == NULL || strcmp(o->state, "none") != 0))
                (void) text_format(links, sizeof(links), "%s/" LINK_REPORT_LINE_FOLDER, live ? "" : o->root);
        return vendor_probe_new(&a->services, live, links, &a->probe, err);
}

static int open_launch_api(struct agent *a, struct err *err)
{
        a->launch_options = (struct launch_api_options){ .socket = a->options->launch_socket,
                                                         .programs = &a->programs,
                                                         .get_inventory = http_get_inventory,
                                                         .get_metrics = http_get_metrics,
                                                         .clear = on_clear };
        return launch_api_new(&a->services, &a->launch_options, &a->launch_api, err);
}

static int open_timers(struct agent *a, struct err *err)
{
        int r = loop_timer(a->loop, on_scan_timer, a, &a->scan_timer);

        if (r == 0)
                r = loop_timer(a->loop, on_kernel_scan, a, &a->kernel_timer);
        return r < 0 ? err_set(err, r, "make the agent's timers: %s", strerrordesc_np(-r)) : 0;
}

static int start(struct agent *a, struct err *err)
{
        const struct agent_options *o = a->options;
        const struct watch_options watch = { .path = place(a),
                                             .is_file = o->machine != NULL,
                                             .period_ms = o->rescan_ms,
                                             .changed = on_scan,
                                             .userdata = a };
        int r = node_report_new(&a->services, a->node, o->store, o->kubeconfig, &a->report, err);

        if (r == 0)
                r = open_timers(a, err);
        if (r == 0)
                r = watch_new(a->loop, &watch, &a->watch, err);
        if (r == 0)
                r = open_probe(a, err);
        if (r == 0)
                r = repair_new(&a->services, on_is_held, &a->repair, err);
        if (r == 0)
                r = foreign_new(&a->services, o->machine == NULL && watch_is_live(o->root), &a->foreign, err);
        if (r == 0)
                r = open_launch_api(a, err);
        if (r < 0)
                return r;
        if (a->launch_api != NULL)
                load_programs(a);
        on_scan(a, "start");
        follow_kernel_log(a);
        r = configuration_watch_new(a->loop, &a->log, o->config, on_configuration, a, &a->configuration_watch,
                                    err);
        if (r == 0)
                r = extender_host_new(a->loop, &a->log, o, &a->extender_host, err);
        return r < 0 ? r : http_open(a, err);
}

int agent_new(sd_event *loop, const struct agent_options *options, struct agent **ret, struct err *err)
{
        struct agent *a = calloc(1, sizeof(*a));
        int r;

        if (a == NULL)
                return err_set(err, -ENOMEM, "no memory for the agent");
        r = prepare(a, loop, options, err);
        if (r == 0)
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
        extender_host_free(a->extender_host);
        launch_api_free(a->launch_api);
        kubelet_free(a->kubelet);
        vendor_probe_free(a->probe);
        repair_free(a->repair);
        foreign_free(a->foreign);
        measured_close(a->measured);
        sd_event_source_disable_unref(a->scan_timer);
        sd_event_source_disable_unref(a->kernel_timer);
        kernel_log_free(a->kernel_log);
        configuration_watch_free(a->configuration_watch);
        watch_free(a->watch);
        node_report_free(a->report);
        launch_programs_free(&a->programs);
        judge_free(&a->judge);
        memory_close(&a->memory);
        inventory_free(&a->published);
        free(a->published_json);
        tree_close(a->tree);
        configuration_free(&a->configuration);
        (void) sd_event_unref(a->loop);
        free(a);
}

int agent_check_config(const struct agent_options *options, struct err *err)
{
        struct configuration configuration = { 0 };
        int r = configuration_load(options, &configuration, err);

        configuration_free(&configuration);
        return r;
}

int agent_dry_run(const struct agent_options *options, char **ret_json, struct err *err)
{
        struct agent *a = calloc(1, sizeof(*a));
        struct stages_published new;
        json_t *object = NULL;
        int r;

        if (a == NULL)
                return err_set(err, -ENOMEM, "no memory for the agent");
        r = prepare(a, NULL, options, err);
        if (r == 0) {
                load_programs(a);
                r = look(a, &new, err);
        }
        if (r == 0) {
                object = inventory_json_encode(&new.inventory);
                *ret_json = object != NULL ? json_dumps(object, JSON_INDENT(2)) : NULL;
                json_decref(object);
                inventory_free(&new.inventory);
                r = *ret_json == NULL ? err_set(err, -ENOMEM, "no memory for the inventory") : 0;
        }
        agent_free(a);
        return r;
}
