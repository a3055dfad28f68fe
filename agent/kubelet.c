/* Kubelet: the device plugin, DRA and the pod-resources socket, as one: who has a device by one of the two
 * has it. */
#include "agent/kubelet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "plugin/dra/dra.h"
#include "plugin/grants.h"
#include "plugin/pod_resources.h"

#define SCAN_USEC UINT64_C(1000000) /* many claims come together, and a look at the machine takes a while */

struct kubelet {
        const struct services *services;
        const struct agent_options *options;
        const char *node;
        const struct tree *tree;
        struct plugin_config config; /* with what the options say instead */
        char directory[200];         /* of device plugins; "none" */
        char pods_socket[200];
        struct plugin *plugin; /* NULL = not offered by it, as the next */
        struct dra *dra;
        struct pod_resources *pods; /* NULL = who holds what is not asked */
        struct grants grants;
        struct holder *holders; /* of pods and of claims */
        sd_event_source *scan;  /* claims hold other devices: told after the kubelet is answered */
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

static void on_grant(void *userdata, const char *id)
{
        struct kubelet *k = userdata;
        const struct holder *holders;
        uint64_t asked = 0;

        if (k->pods != NULL)
                (void) pod_resources_holders(k->pods, &holders, &asked);
        if (grants_add(&k->grants, id, clock_monotonic_usec(), asked) < 0)
                log_line(k->services->log, LOG_ERR, "kubelet", "error=\"no memory for what is given\"");
        if (k->dra != NULL)
                dra_held_changed(k->dra);
}

static void on_holders(void *userdata)
{
        struct kubelet *k = userdata;

        if (k->dra != NULL)
                dra_held_changed(k->dra);
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

static const struct holder *find_pod(const struct kubelet *k, const char *id, uint64_t *ret_asked_usec)
{
        const struct holder *holders = NULL;
        size_t count = k->pods == NULL ? 0 : pod_resources_holders(k->pods, &holders, ret_asked_usec);

        for (size_t i = 0; i < count; i++)
                if (strcmp(holders[i].device_id, id) == 0)
                        return &holders[i];
        return NULL;
}

/* Has a pod the device by the device plugin? After a start the kubelet alone knows; one without that socket
 * cannot be asked. */
static enum dra_held on_held(void *userdata, const char *id, char *ret_whom, size_t whom_bytes)
{
        const struct kubelet *k = userdata;
        uint64_t asked = 0;
        const struct holder *pod = find_pod(k, id, &asked);

        if (pod != NULL) {
                (void) text_format(ret_whom, whom_bytes, "pod %s/%s", pod->pod_namespace, pod->pod);
                return DRA_HELD;
        }
        if (grants_has(&k->grants, id, asked)) {
                (void) text_copy(ret_whom, whom_bytes, "a pod that is being started");
                return DRA_HELD;
        }
        return k->pods != NULL && asked == 0 && access(k->pods_socket, F_OK) == 0 ? DRA_NOT_KNOWN : DRA_FREE;
}

static void on_scan(void *userdata)
{
        services_scan(((const struct kubelet *) userdata)->services, "claims");
}

static void offer_plugin(const struct kubelet *k, const struct inventory *inventory);

/* What a claim got is out of the device plugin's hands before the kubelet is answered. */
static void on_claims(void *userdata)
{
        struct kubelet *k = userdata;

        offer_plugin(k, k->services->published);
        if (!loop_is_armed(k->scan))
                loop_rearm(k->scan, SCAN_USEC);
}

/* "/var/lib/kubelet/device-plugins" -> "/var/lib/kubelet/pod-resources/kubelet.sock" */
static bool pod_resources_path(struct kubelet *k)
{
        const char *given = k->options->pod_resources;
        size_t n = strlen(k->directory);
        const char *slash;

        if (given != NULL)
                return strcmp(given, "none") != 0 && text_copy(k->pods_socket, sizeof(k->pods_socket), given);
        if (strcmp(k->directory, "none") == 0)
                return text_format(k->pods_socket, sizeof(k->pods_socket), "%s/pod-resources/kubelet.sock",
                                   k->options->kubelet_root);
        while (n > 1 && k->directory[n - 1] == '/')
                n--;
        slash = memrchr(k->directory, '/', n);
        return slash != NULL &&
               text_format(k->pods_socket, sizeof(k->pods_socket), "%.*s/pod-resources/kubelet.sock",
                           (int) (slash - k->directory), k->directory);
}

/* The options are stronger than the file. */
static void take_config(struct kubelet *k, const struct plugin_config *config)
{
        static const char *const words[] = { "off", "on", "only" }; /* enum plugin_config_offer */
        struct plugin_config usual;

        k->config = *config;
        for (size_t i = 0; k->options->dra != NULL && i < ARRAY_SIZE(words); i++)
                if (strcmp(k->options->dra, words[i]) == 0)
                        k->config.offer = (enum plugin_config_offer) i;
        if (k->options->cdi_dir != NULL && k->config.cdi_directory[0] != '\0')
                (void) text_copy(k->config.cdi_directory, sizeof(k->config.cdi_directory),
                                 k->options->cdi_dir);
        plugin_config_default(&usual);
        if (strcmp(k->config.plugins_registry, usual.plugins_registry) == 0)
                (void) text_format(k->config.plugins_registry, sizeof(k->config.plugins_registry),
                                   "%s/plugins_registry", k->options->kubelet_root);
}

static int open_plugin(struct kubelet *k, struct err *err)
{
        const struct plugin_options options = { .kubelet_directory = k->directory,
                                                .config = &k->config,
                                                .tree = k->tree,
                                                .log = on_log,
                                                .on_allocate = on_allocate,
                                                .on_grant = on_grant,
                                                .userdata = k };
        int r = plugin_new(k->services->loop, &options, &k->plugin, err);

        return r < 0 ? err_wrap(err, r, "--kubelet-dir %s", k->directory) : 0;
}

static int open_dra(struct kubelet *k, struct err *err)
{
        const struct dra_options options = { .node = k->node,
                                             .kubelet_root = k->options->kubelet_root,
                                             .pod_uid = k->options->pod_uid,
                                             .cdi_directory = k->options->cdi_dir,
                                             .store = k->options->store,
                                             .kubeconfig = k->options->kubeconfig,
                                             .config = &k->config,
                                             .tree = k->tree,
                                             .log = on_log,
                                             .held = on_held,
                                             .changed = on_claims,
                                             .userdata = k };

        return dra_new(k->services->loop, &options, &k->dra, err);
}

/* Each API is there as `offer` has it. */
static int open_offered(struct kubelet *k, struct err *err)
{
        bool plugin = k->config.offer != PLUGIN_CONFIG_DRA && strcmp(k->directory, "none") != 0,
             dra = k->config.offer != PLUGIN_CONFIG_PLUGIN;
        int r = 0;

        if (dra && k->dra == NULL) /* first: it knows what claims hold */
                r = open_dra(k, err);
        if (r == 0 && plugin && k->plugin == NULL)
                r = open_plugin(k, err);
        if (r < 0)
                return r; /* what is offered by the other API stays */
        if (!plugin)
                plugin_free(TAKE(k->plugin));
        if (!dra && k->dra != NULL &&
            dra_claims(k->dra)->count > 0) /* the kubelet wants it to unprepare them */
                log_line(k->services->log, LOG_WARNING, "kubelet",
                         "DRA stays: %zu claims are prepared; end their pods, then offer again",
                         dra_claims(k->dra)->count);
        else if (!dra)
                dra_free(TAKE(k->dra));
        return 0;
}

static int open_all(struct kubelet *k, struct err *err)
{
        struct pod_resources_options pods = {
                .socket = k->pods_socket, .on_change = on_holders, .on_trouble = on_trouble, .userdata = k
        };
        int r = loop_timer(k->services->loop, on_scan, k, &k->scan);

        if (r < 0)
                return err_set(err, r, "no timer for claims");
        if (pod_resources_path(k))
                r = pod_resources_new(k->services->loop, &pods, &k->pods, err);
        return r < 0 ? r : open_offered(k, err);
}

int kubelet_new(const struct services *services, const struct agent_options *options, const char *node,
                const struct plugin_config *config, const struct tree *tree, struct kubelet **ret,
                struct err *err)
{
        struct kubelet *k = calloc(1, sizeof(*k));
        bool fits;
        int r;

        if (k == NULL)
                return err_set(err, -ENOMEM, "no memory for the kubelet's side");
        *k = (struct kubelet){ .services = services, .options = options, .node = node, .tree = tree };
        fits = options->kubelet_dir != NULL
                       ? text_copy(k->directory, sizeof(k->directory), options->kubelet_dir)
                       : text_format(k->directory, sizeof(k->directory), "%s/device-plugins",
                                     options->kubelet_root);
        take_config(k, config);
        if (strcmp(k->directory, "none") == 0 && k->config.offer == PLUGIN_CONFIG_PLUGIN) {
                free(k);
                return 0;
        }
        r = fits ? open_all(k, err)
                 : err_set(err, -ENAMETOOLONG, "--kubelet-dir %.180s: is too long", k->directory);
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
        dra_free(k->dra);
        plugin_free(k->plugin);
        pod_resources_free(k->pods);
        (void) sd_event_source_disable_unref(k->scan);
        grants_free(&k->grants);
        free(k->holders);
        free(k);
}

void kubelet_set_tree(struct kubelet *k, const struct tree *tree)
{
        if (k == NULL)
                return;
        k->tree = tree;
        if (k->plugin != NULL)
                plugin_set_tree(k->plugin, tree);
        if (k->dra != NULL)
                dra_set_tree(k->dra, tree);
}

void kubelet_configure(struct kubelet *k, const struct plugin_config *config)
{
        struct err err = { 0 };

        if (k == NULL)
                return;
        take_config(k, config);
        if (open_offered(k, &err) < 0)
                log_line(k->services->log, LOG_ERR, "kubelet", "error=\"%s\"", err.msg);
        if (k->plugin != NULL)
                (void) plugin_configure(k->plugin, &k->config, NULL);
        if (k->dra != NULL)
                dra_configure(k->dra, &k->config);
        kubelet_publish(k, k->services->published);
}

/* Is it held by a claim and not, too, by a pod that counts already? */
static void count_claimed(const struct kubelet *k, struct inventory *inventory)
{
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *device = &inventory->devices[i];
                struct device_group *group = inventory_find_group(inventory, device->group);
                uint64_t asked;

                if (group != NULL && group->free > 0 && device->usable &&
                    dra_holder(k->dra, device->id) != NULL && find_pod(k, device->id, &asked) == NULL)
                        group->free--;
        }
}

void kubelet_fill(const struct kubelet *k, struct inventory *inventory)
{
        if (kubelet_knows_holders(k)) {
                pod_resources_count_free(k->pods, inventory);
                pod_resources_fill_losses(k->pods, inventory);
        }
        if (k != NULL && k->dra != NULL)
                count_claimed(k, inventory);
}

/* The device plugin's view: what a claim holds is nobody's to allocate. */
static void offer_plugin(const struct kubelet *k, const struct inventory *inventory)
{
        struct err err = { 0 };
        struct inventory copy;
        int r;

        if (k->plugin == NULL)
                return;
        r = inventory_copy(inventory, &copy);
        for (size_t i = 0; r == 0 && k->dra != NULL && i < copy.device_count; i++) {
                struct device *device = &copy.devices[i];
                const struct dra_state_claim *claim = dra_holder(k->dra, device->id);

                if (claim == NULL || !device->usable)
                        continue;
                device->usable = false;
                (void) text_copy(device->reason, sizeof(device->reason), "HeldByClaim");
                (void) text_format(device->message, sizeof(device->message), "claim %s/%s has it",
                                   claim->namespace_, claim->name);
        }
        if (r == 0)
                r = plugin_update(k->plugin, &copy, &err);
        if (r < 0)
                log_line(k->services->log, LOG_ERR, "kubelet", "error=\"%s\"", err.msg);
        inventory_free(&copy);
}

void kubelet_publish(struct kubelet *k, const struct inventory *inventory)
{
        struct err err = { 0 };

        if (k == NULL)
                return;
        offer_plugin(k, inventory);
        if (k->dra != NULL && dra_update(k->dra, inventory, &err) < 0)
                log_line(k->services->log, LOG_ERR, "kubelet", "error=\"%s\"", err.msg);
}

static int by_device(const void *a, const void *b)
{
        return strcmp(((const struct holder *) a)->device_id, ((const struct holder *) b)->device_id);
}

static void fill_holder(const struct dra_state_claim *claim, const struct dra_state_device *device,
                        struct holder *ret)
{
        *ret = (struct holder){ .shares = 1 };
        (void) text_copy(ret->device_id, sizeof(ret->device_id), device->id);
        (void) text_copy(ret->pod_namespace, sizeof(ret->pod_namespace), claim->namespace_);
        (void) text_copy(ret->pod, sizeof(ret->pod), claim->pod[0] != '\0' ? claim->pod : claim->name);
}

/* The kubelet's pods and the pods of claims, sorted. */
static size_t merge(struct kubelet *k, const struct holder *pods, size_t count, const struct holder **ret)
{
        const struct dra_state *claims = dra_claims(k->dra);
        struct holder *all;
        size_t most = count + 1;

        for (size_t i = 0; i < claims->count; i++)
                most += claims->claims[i].device_count;
        all = reallocarray(k->holders, most, sizeof(*all));
        if (all == NULL)
                return count;
        k->holders = all;
        if (count > 0)
                memcpy(all, pods, count * sizeof(*all));
        for (size_t i = 0; i < claims->count; i++)
                for (size_t j = 0; j < claims->claims[i].device_count; j++)
                        if (!claims->claims[i].devices[j].admin)
                                fill_holder(&claims->claims[i], &claims->claims[i].devices[j], &all[count++]);
        if (count > 0)
                qsort(all, count, sizeof(*all), by_device);
        *ret = all;
        return count;
}

size_t kubelet_holders(struct kubelet *k, const struct holder **ret, uint64_t *ret_asked_usec)
{
        size_t count = kubelet_knows_holders(k) ? pod_resources_holders(k->pods, ret, ret_asked_usec) : 0;

        return k == NULL || k->dra == NULL || dra_claims(k->dra)->count == 0 ? count
                                                                             : merge(k, *ret, count, ret);
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
        if (k == NULL || k->plugin == NULL)
                return false;
        plugin_status(k->plugin, ret);
        return true;
}
