/* Kubelet: the device plugin and the pod-resources socket, as one. */
#include "agent/kubelet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/pod_resources.h"

struct kubelet {
        const struct services *services;
        struct plugin *plugin;
        struct pod_resources *pods; /* NULL = who holds what is not asked */
};

static void on_log(void *userdata, int priority, const char *line)
{
        struct kubelet *k = userdata;

        log_line(k->services->log, priority, "kubelet", "%s", line);
}

static void on_allocate(void *userdata)
{
        struct kubelet *k = userdata;

        if (k->pods != NULL)
                pod_resources_poke(k->pods);
}

static void on_holders(void *userdata)
{
        struct kubelet *k = userdata;

        services_scan(k->services, "holders");
}

/* Who holds what is as old as the last answer until there is one again. */
static void on_trouble(void *userdata)
{
        const struct kubelet *k = userdata;
        const char *trouble = pod_resources_trouble(k->pods);

        if (trouble[0] != '\0')
                log_line(k->services->log, LOG_WARNING, "kubelet", "trouble=\"%s\"", trouble);
        else
                log_line(k->services->log, LOG_INFO, "kubelet", "pod-resources answers again");
}

/* "/var/lib/kubelet/device-plugins" -> "/var/lib/kubelet/pod-resources/kubelet.sock" */
static bool pod_resources_path(const char *directory, const char *given, char *path, size_t path_bytes)
{
        size_t n = strlen(directory);
        const char *slash;

        if (given != NULL)
                return strcmp(given, "none") != 0 && text_copy(path, path_bytes, given);
        while (n > 1 && directory[n - 1] == '/')
                n--;
        slash = memrchr(directory, '/', n);
        return slash != NULL && text_format(path, path_bytes, "%.*s/pod-resources/kubelet.sock",
                                            (int) (slash - directory), directory);
}

int kubelet_new(const struct services *services, const char *directory, const char *pod_resources,
                const struct plugin_config *config, const struct tree *tree, struct kubelet **ret,
                struct err *err)
{
        struct kubelet *k = strcmp(directory, "none") != 0 ? calloc(1, sizeof(*k)) : NULL;
        const struct plugin_options plugin = { .kubelet_directory = directory,
                                               .config = config,
                                               .tree = tree,
                                               .log = on_log,
                                               .on_allocate = on_allocate,
                                               .userdata = k };
        struct pod_resources_options pods = { .on_change = on_holders,
                                              .on_trouble = on_trouble,
                                              .userdata = k };
        char path[200];
        int r;

        if (strcmp(directory, "none") == 0)
                return 0;
        if (k == NULL)
                return err_set(err, -ENOMEM, "no memory for the device plugin");
        k->services = services;
        r = plugin_new(services->loop, &plugin, &k->plugin, err);
        if (r < 0)
                (void) err_wrap(err, r, "--kubelet-dir %s", directory);
        else if (pod_resources_path(directory, pod_resources, path, sizeof(path))) {
                pods.socket = path;
                r = pod_resources_new(services->loop, &pods, &k->pods, err);
        }
        if (r < 0)
                kubelet_free(k);
        else
                *ret = k;
        return r;
}

void kubelet_free(struct kubelet *k)
{
        if (k == NULL)
                return;
        pod_resources_free(k->pods);
        plugin_free(k->plugin);
        free(k);
}

void kubelet_set_tree(struct kubelet *k, const struct tree *tree)
{
        if (k != NULL)
                plugin_set_tree(k->plugin, tree);
}

void kubelet_configure(struct kubelet *k, const struct plugin_config *config)
{
        if (k != NULL)
                (void) plugin_configure(k->plugin, config, NULL);
}

void kubelet_fill(const struct kubelet *k, struct inventory *inventory)
{
        if (!kubelet_knows_holders(k))
                return;
        pod_resources_count_free(k->pods, inventory);
        pod_resources_fill_losses(k->pods, inventory);
}

void kubelet_publish(struct kubelet *k, const struct inventory *inventory)
{
        struct err err = { 0 };

        if (k != NULL && plugin_update(k->plugin, inventory, &err) < 0)
                log_line(k->services->log, LOG_ERR, "kubelet", "error=\"%s\"", err.msg);
}

size_t kubelet_holders(const struct kubelet *k, const struct holder **ret, uint64_t *ret_asked_usec)
{
        return kubelet_knows_holders(k) ? pod_resources_holders(k->pods, ret, ret_asked_usec) : 0;
}

void kubelet_ask_holders(struct kubelet *k)
{
        if (kubelet_knows_holders(k))
                pod_resources_request(k->pods);
}

bool kubelet_knows_holders(const struct kubelet *k)
{
        return k != NULL && k->pods != NULL;
}

bool kubelet_serves(struct kubelet *k)
{
        const struct holder *holders;
        struct plugin_status status;
        uint64_t asked = 0;

        if (!kubelet_status(k, &status) || !status.kubelet_present)
                return true;
        if (k->pods != NULL)
                (void) pod_resources_holders(k->pods, &holders, &asked);
        return status.ready && (k->pods == NULL || asked != 0 || pod_resources_trouble(k->pods)[0] != '\0');
}

bool kubelet_status(struct kubelet *k, struct plugin_status *ret)
{
        if (k != NULL)
                plugin_status(k->plugin, ret);
        return k != NULL;
}
