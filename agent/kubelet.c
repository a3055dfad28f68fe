#include "agent/kubelet.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/report.h"
#include "base/text.h"
#include "plugin/plugin.h"
#include "plugin/pod_resources.h"

static void on_log(void *userdata, int priority, const char *line)
{
        struct agent *a = userdata;

        log_line(&a->log, priority, "kubelet", "%s", line);
}

static void on_allocate(void *userdata)
{
        struct agent *a = userdata;

        if (a->pods != NULL)
                pod_resources_poke(a->pods);
}

static void on_holders(void *userdata)
{
        agent_scan(userdata, "holders");
}

/* "/var/lib/kubelet/device-plugins" -> "/var/lib/kubelet/pod-resources/kubelet.sock" */
static bool pod_resources_path(const struct agent *a, char *path, size_t path_bytes)
{
        const char *directory = a->options->kubelet_dir, *slash;
        size_t n = strlen(directory);

        if (a->options->pod_resources != NULL)
                return strcmp(a->options->pod_resources, "none") != 0 &&
                       text_copy(path, path_bytes, a->options->pod_resources);
        while (n > 1 && directory[n - 1] == '/')
                n--;
        slash = memrchr(directory, '/', n);
        return slash != NULL && text_format(path, path_bytes, "%.*s/pod-resources/kubelet.sock",
                                            (int) (slash - directory), directory);
}

int kubelet_open(struct agent *a, struct err *err)
{
        const struct plugin_options plugin = { .kubelet_directory = a->options->kubelet_dir,
                                               .config = a->plugin_config,
                                               .tree = a->tree,
                                               .log = on_log,
                                               .on_allocate = on_allocate,
                                               .userdata = a };
        struct pod_resources_options pods = { .on_change = on_holders, .userdata = a };
        char path[200];
        int r;

        if (strcmp(a->options->kubelet_dir, "none") == 0)
                return 0;
        r = plugin_new(a->loop, &plugin, &a->plugin, err);
        if (r < 0)
                return err_wrap(err, r, "--kubelet-dir %s", a->options->kubelet_dir);
        if (!pod_resources_path(a, path, sizeof(path)))
                return 0;
        pods.socket = path;
        return pod_resources_new(a->loop, &pods, &a->pods, err);
}

void kubelet_close(struct agent *a)
{
        pod_resources_free(a->pods);
        plugin_free(a->plugin);
        a->pods = NULL;
        a->plugin = NULL;
}

void kubelet_name_resources(struct agent *a, struct inventory *inventory)
{
        struct err err = { 0 };

        if (resource_map_apply(&a->plugin_config->resources, inventory, &err) < 0)
                report_event(a->report, "Warning", "ResourceNamesRefused", NULL, "%s", err.msg);
        if (a->pods != NULL) {
                pod_resources_count_free(a->pods, inventory);
                pod_resources_tell_losses(a->pods, inventory);
        }
}

void kubelet_told(struct agent *a)
{
        struct err err = { 0 };

        if (a->plugin != NULL && plugin_update(a->plugin, &a->told, &err) < 0)
                log_line(&a->log, LOG_ERR, "kubelet", "error=\"%s\"", err.msg);
}
