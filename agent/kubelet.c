/* Kubelet: the device plugin, DRA and the pod-resources socket, as one: who has a device by one of the two
 * has it. */
#include "agent/kubelet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/inventory/device_ids.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "plugin/dra/dra.h"
#include "plugin/dra/dra_account.h"
#include "plugin/grants.h"
#include "plugin/pod_resources.h"

#define SCAN_USEC   UINT64_C(1000000) /* many claims come together, and a look at the machine takes a while */
#define ENDING_USEC UINT64_C(200000)
#define LAST_USEC                                                                                            \
        UINT64_C(10000000) /* pods whose claims were allocated before the slices went are started still */

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
        struct grants grants;       /* before DRA was there: it has the account of what comes then */
        struct holder *holders;     /* of pods and of claims */
        sd_event_source *scan;      /* claims hold other devices: told after the kubelet is answered */
        sd_event_source *ending;    /* DRA is to end: is it over? */
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

/* With DRA the account is on disk, which another instance has, too; without it is remembered who has what
 * until it is opened. */
static int on_grant(void *userdata, const char *const *ids, size_t count, struct err *err)
{
        struct kubelet *k = userdata;
        const struct holder *holders;
        uint64_t asked = 0;

        if (k->pods != NULL)
                (void) pod_resources_holders(k->pods, &holders, &asked);
        if (k->dra != NULL)
                return dra_account_grant(k->dra, ids, count, asked, err);
        for (size_t i = 0; i < count; i++)
                if (grants_add(&k->grants, ids[i], clock_monotonic_usec(), asked) < 0)
                        log_line(k->services->log, LOG_ERR, "kubelet",
                                 "error=\"no memory for what is given\"");
        return 0;
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
                if (device_ids_overlap(holders[i].device_id, id))
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
        if (grants_has(&k->grants, id, asked) || (k->dra != NULL && dra_account_granted(k->dra, id, asked))) {
                (void) text_copy(ret_whom, whom_bytes, "a pod that is being started");
                return DRA_HELD;
        }
        return k->pods != NULL && asked == 0 && access(k->pods_socket, F_OK) == 0 ? DRA_NOT_KNOWN : DRA_FREE;
}

static void on_ask(void *userdata)
{
        kubelet_ask_holders(userdata);
}

static void on_scan(void *userdata)
{
        services_scan(((const struct kubelet *) userdata)->services, "kubelet");
}

/* By then a kubelet that was started again has taken all anew, which is no news. */
static void look_soon(void *userdata)
{
        const struct kubelet *k = userdata;

        if (!loop_is_armed(k->scan))
                loop_rearm(k->scan, SCAN_USEC);
}

static void offer_plugin(const struct kubelet *k, const struct inventory *inventory);

/* What a claim got is out of the device plugin's hands before the kubelet is answered. */
static void on_claims(void *userdata)
{
        struct kubelet *k = userdata;

        offer_plugin(k, k->services->published);
        look_soon(k);
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

/* An option that names an API wins; `auto` and no option leave it to the configuration, and say what is where
 * that says nothing. */
static enum plugin_config_offer offer_of(const struct kubelet *k, enum plugin_config_offer said)
{
        static const char *const words[] = { "off", "on", "only", "planned" }; /* enum plugin_config_offer */
        const char *option = k->options->dra;

        for (size_t i = 0; option != NULL && i < ARRAY_SIZE(words); i++) {
                if (strcmp(option, words[i]) != 0)
                        continue;
                if (said != PLUGIN_CONFIG_UNSAID && said != (enum plugin_config_offer) i)
                        log_line(k->services->log, LOG_WARNING, "kubelet",
                                 "offer=%s is not followed: the option --dra %s goes before it; --dra auto "
                                 "would follow it",
                                 plugin_config_offers[said], option);
                return (enum plugin_config_offer) i;
        }
        if (said != PLUGIN_CONFIG_UNSAID)
                return said;
        return option != NULL ? PLUGIN_CONFIG_BOTH : PLUGIN_CONFIG_PLUGIN;
}

/* The options are stronger than the file. */
static void take_config(struct kubelet *k, const struct plugin_config *config)
{
        struct plugin_config usual;

        k->config = *config;
        k->config.offer = offer_of(k, config->offer);
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
                                                .on_registered = look_soon,
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
                                             .ask = on_ask,
                                             .changed = on_claims,
                                             .on_registered = look_soon,
                                             .userdata = k };

        return dra_new(k->services->loop, &options, &k->dra, err);
}

/* Claims are planned for its devices as soon as no scheduler finds them in a slice any more. */
static void await_withdrawal(struct kubelet *k)
{
        if (dra_is_withdrawn(k->dra))
                services_scan(k->services, "planned");
        else
                loop_rearm(k->ending, ENDING_USEC);
}

/* The last slice and the last claim are gone, or it is offered again. */
static void on_ending(void *userdata)
{
        struct kubelet *k = userdata;

        if (k->dra != NULL && k->config.offer == PLUGIN_CONFIG_PLANNED)
                await_withdrawal(k);
        if (k->dra == NULL || k->config.offer != PLUGIN_CONFIG_PLUGIN)
                return;
        if (!dra_is_over(k->dra)) {
                loop_rearm(k->ending, ENDING_USEC);
                return;
        }
        dra_free(TAKE(k->dra));
        log_line(k->services->log, LOG_INFO, "kubelet", "DRA has ended: no claim is left");
        services_scan(k->services, "claims");
}

/* Its devices are offered no more; the kubelet wants it until the last claim is given up. */
static void end_dra(struct kubelet *k)
{
        dra_withdraw(k->dra, true);
        if (dra_claims(k->dra)->count > 0)
                log_line(k->services->log, LOG_WARNING, "kubelet",
                         "DRA stays, and offers nothing: %zu claims are prepared; it ends with their pods",
                         dra_claims(k->dra)->count);
        loop_rearm(k->ending, LAST_USEC);
}

static bool has_claims(const struct kubelet *k)
{
        return dra_account_has_claims(k->options->kubelet_root,
                                      plugin_config_claims_folder(&k->config, k->options->cdi_dir));
}

/* Claims that an agent with DRA has prepared on this node hold their chips, whatever is offered now: without
 * their account nobody gives any. */
static int open_left(struct kubelet *k, struct err *err)
{
        int r = has_claims(k) ? open_dra(k, err) : 0;

        return r < 0 ? err_wrap(err, r, "pods have claims on this node, which DRA serves until they end") : 0;
}

/* Who has what is not known without the kubelet's word. */
static void warn_of_silence(const struct kubelet *k)
{
        if (k->plugin != NULL && k->dra != NULL && k->pods == NULL)
                log_line(k->services->log, LOG_WARNING, "kubelet",
                         "offer: both without pod-resources: what the device plugin gave once is not offered "
                         "by "
                         "claims again; give --pod-resources PATH, or offer by one of both");
}

/* Each API is there as `offer` has it. */
static int open_offered(struct kubelet *k, struct err *err)
{
        bool plugin = plugin_config_offers_plugin(&k->config) && strcmp(k->directory, "none") != 0,
             planned = k->config.offer == PLUGIN_CONFIG_PLANNED,
             dra = k->config.offer != PLUGIN_CONFIG_PLUGIN, news = k->plugin == NULL || k->dra == NULL;
        int r = 0;

        if (dra && k->dra == NULL) /* first: it knows what claims hold */
                r = open_dra(k, err);
        else if (!dra && k->dra == NULL)
                r = open_left(k, err);
        if (r == 0 && plugin && k->plugin == NULL)
                r = open_plugin(k, err);
        if (r < 0)
                return r; /* what is offered by the other API stays */
        if (!plugin)
                plugin_free(TAKE(k->plugin));
        if (!dra && k->dra != NULL)
                end_dra(k);
        else if (k->dra != NULL)
                dra_withdraw(k->dra, planned);
        if (planned)
                loop_rearm(k->ending, ENDING_USEC);
        if (news && dra)
                warn_of_silence(k);
        return 0;
}

static int open_all(struct kubelet *k, struct err *err)
{
        struct pod_resources_options pods = {
                .socket = k->pods_socket, .on_change = on_holders, .on_trouble = on_trouble, .userdata = k
        };
        int r = loop_timer(k->services->loop, on_scan, k, &k->scan);

        if (r == 0)
                r = loop_timer(k->services->loop, on_ending, k, &k->ending);
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
        if (strcmp(k->directory, "none") == 0 && k->config.offer == PLUGIN_CONFIG_PLUGIN &&
            !(options->dra != NULL && has_claims(k))) {
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
        (void) sd_event_source_disable_unref(k->ending);
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

void kubelet_fill(struct kubelet *k, struct inventory *inventory)
{
        const struct holder *holders = NULL;
        uint64_t asked;
        size_t count = kubelet_holders(k, &holders, &asked);

        if (kubelet_knows_holders(k))
                pod_resources_count_free(k->pods, inventory);
        holder_fill_losses(holders, count, inventory);
        if (k == NULL || k->dra == NULL)
                return;
        count_claimed(k, inventory);
        inventory->planned = k->config.offer == PLUGIN_CONFIG_PLANNED && dra_is_withdrawn(k->dra);
}

static void hide_claimed(const struct kubelet *k, struct inventory *inventory)
{
        for (size_t i = 0; i < inventory->device_count; i++) {
                struct device *device = &inventory->devices[i];
                const struct dra_state_claim *claim = dra_holder(k->dra, device->id);

                if (claim == NULL || !device->usable)
                        continue;
                device->usable = false;
                (void) text_copy(device->reason, sizeof(device->reason), "HeldByClaim");
                (void) text_format(device->message, sizeof(device->message), "claim %s/%s has it",
                                   claim->namespace_, claim->name);
        }
}

/* The device plugin's view: what a claim holds is nobody's to allocate. */
static void offer_plugin(const struct kubelet *k, const struct inventory *inventory)
{
        bool claimed = k->dra != NULL && dra_claims(k->dra)->count > 0;
        struct err err = { 0 };
        struct inventory copy;
        int r;

        if (k->plugin == NULL)
                return;
        if (!claimed) {
                r = plugin_update(k->plugin, inventory, &err);
        } else {
                r = inventory_copy(inventory, &copy);
                if (r == 0) {
                        hide_claimed(k, &copy);
                        r = plugin_update(k->plugin, &copy, &err);
                        inventory_free(&copy);
                }
        }
        if (r < 0)
                log_line(k->services->log, LOG_ERR, "kubelet", "error=\"%s\"", err.msg);
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

bool kubelet_dra_status(const struct kubelet *k, struct dra_status *ret)
{
        if (k == NULL || k->dra == NULL)
                return false;
        dra_status(k->dra, ret);
        return true;
}
