/* DRA: this node's devices at the kubelet's other door: what an inventory means, and the life of it all. */
#include "plugin/dra/dra.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "plugin/dra/dra_health.h"
#include "plugin/dra/dra_internal.h"
#include "plugin/dra/dra_registration.h"
#include "plugin/dra/prepare.h"
#include "plugin/dra/publisher.h"
#include "plugin/dra/slices_facts.h"
#include "store/store.h"

#define PUBLISH_USEC UINT64_C(100000)
#define REFRESH_USEC UINT64_C(1000000) /* how soon what another instance wrote is seen */

void dra_log(const struct dra *dra, int priority, const char *fmt, ...)
{
        char line[700];
        va_list list;

        va_start(list, fmt);
        (void) vsnprintf(line, sizeof(line), fmt, list);
        va_end(list);
        dra->options.log(dra->options.userdata, priority, line);
}

struct claim_cdi_node dra_cdi_node(const struct dra *dra)
{
        return (struct claim_cdi_node){ .directory = dra->cdi_directory,
                                        .inventory = &dra->inventory,
                                        .config = &dra->config,
                                        .tree = dra->tree };
}

const struct dra_state_claim *dra_holder(const struct dra *dra, const char *id)
{
        return dra_state_holder(&dra->file.state, id);
}

const struct dra_state *dra_claims(const struct dra *dra)
{
        return &dra->file.state;
}

/* Whoever asks is answered first, and others who come with it. */
static void publish_later(const struct dra *dra)
{
        if (!loop_is_armed(dra->publish))
                loop_rearm(dra->publish, PUBLISH_USEC);
}

void dra_held_changed(struct dra *dra)
{
        publish_later(dra);
}

static void find_holders(struct dra *dra)
{
        char whom[300];

        for (size_t i = 0; i < dra->inventory.device_count; i++) {
                const char *id = dra->inventory.devices[i].id;

                dra->facts[i].hidden =
                        dra->options.held(dra->options.userdata, id, whom, sizeof(whom)) == DRA_HELD;
                dra->facts[i].held = dra->facts[i].hidden || dra_holder(dra, id) != NULL;
        }
}

static json_t *on_build(void *userdata, uint64_t generation, bool taints)
{
        struct dra *dra = userdata;
        const struct slices_options options = {
                .node = dra->node, .generation = generation, .taints = taints, .facts = dra->facts
        };
        json_t *slices = NULL;

        if (dra->facts == NULL) /* before the first look */
                return NULL;
        find_holders(dra);
        return slices_build(&dra->inventory, &options, &slices, NULL) < 0 ? NULL : slices;
}

void dra_claims_changed(struct dra *dra)
{
        dra->told_revision = dra->file.revision;
        dra->options.changed(dra->options.userdata);
        publish_later(dra);
}

static void on_publish(void *userdata)
{
        publisher_update(((const struct dra *) userdata)->publisher);
}

static void on_refresh(void *userdata)
{
        struct dra *dra = userdata;

        dra_file_refresh(&dra->file);
        if (dra->file.revision != dra->told_revision)
                dra_claims_changed(dra);
}

static void on_heartbeat(void *userdata)
{
        dra_health_send(userdata);
}

/* What runtimes read may have been taken away, with /var/run at a reboot or by hand. */
static void restore_specs(const struct dra *dra)
{
        const struct claim_cdi_node node = dra_cdi_node(dra);
        struct err err = { 0 };

        for (size_t i = 0; i < dra->file.state.count; i++)
                if (claim_cdi_write(&node, &dra->file.state.claims[i], &err) < 0)
                        dra_log(dra, LOG_WARNING, "claim %s/%s: %s", dra->file.state.claims[i].namespace_,
                                dra->file.state.claims[i].name, err.msg);
}

int dra_update(struct dra *dra, const struct inventory *inventory, struct err *err)
{
        struct slices_fact *facts = calloc(inventory->device_count + 1, sizeof(*facts));
        struct dra_name *names = calloc(inventory->device_count + 1, sizeof(*names));
        bool first = dra->facts == NULL;
        struct inventory copy;

        if (facts == NULL || names == NULL || inventory_copy(inventory, &copy) < 0) {
                free(facts);
                free(names);
                return err_set(err, -ENOMEM, "no memory for the slices of %zu devices",
                               inventory->device_count);
        }
        dra_name_all(&copy, names);
        if (dra->tree != NULL)
                slices_facts_read(dra->tree, &copy, facts);
        inventory_free(&dra->inventory);
        free(dra->facts);
        free(dra->names);
        dra->inventory = copy;
        dra->facts = facts;
        dra->names = names;
        if (first)
                restore_specs(dra);
        dra_health_send(dra);
        publisher_update(dra->publisher);
        return 0;
}

void dra_set_tree(struct dra *dra, const struct tree *tree)
{
        dra->tree = tree;
}

void dra_configure(struct dra *dra, const struct plugin_config *config)
{
        dra->config = *config;
}

static void on_object(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        if (kind == STORE_RESOURCE_SLICE)
                publisher_changed(((const struct dra *) userdata)->publisher, key, object);
}

static void on_synced(void *userdata, enum store_kind kind)
{
        if (kind == STORE_RESOURCE_SLICE)
                publisher_synced(((const struct dra *) userdata)->publisher);
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        dra_log(userdata, LOG_WARNING, "%s: %s", store_kind_name(kind), sentence);
}

/* A folder's claims may lie in files of any name, which are found by reading all of them; an API server is
 * asked for the one that is meant. */
static int open_store(struct dra *dra, struct err *err)
{
        const struct store_options options = {
                .spec = dra->options.store,
                .kubeconfig = dra->options.kubeconfig,
                .kinds = 1U << STORE_RESOURCE_SLICE |
                         (store_directory(dra->options.store) != NULL ? 1U << STORE_RESOURCE_CLAIM : 0),
                .field_selector_node = dra->node,
                .changed = on_object,
                .synced = on_synced,
                .trouble = on_trouble,
                .userdata = dra,
        };
        int r = store_open(dra->loop, &options, &dra->store, err);

        if (r < 0)
                return err_wrap(err, r, "--store %s", dra->options.store);
        publisher_set_store(dra->publisher, dra->store);
        return 0;
}

static void on_publisher_log(void *userdata, int priority, const char *line)
{
        dra_log(userdata, priority, "%s", line);
}

static int open_publisher(struct dra *dra, struct err *err)
{
        const struct publisher_options options = {
                .node = dra->node, .build = on_build, .log = on_publisher_log, .userdata = dra
        };

        return publisher_new(dra->loop, &options, &dra->publisher, err);
}

static int open_state(struct dra *dra, struct err *err)
{
        struct err broken = { 0 };
        char directory[128];
        int r;

        if (!text_format(directory, sizeof(directory), "%s/plugins/" DRA_NAME_DRIVER,
                         dra->options.kubelet_root))
                return err_set(err, -ENAMETOOLONG, "--kubelet-root %.100s: is too long",
                               dra->options.kubelet_root);
        r = dra_file_open(&dra->file, directory, &broken, err);
        if (r < 0)
                return r;
        if (broken.code != 0)
                dra_log(dra, LOG_ERR,
                        "'%s/" DRA_FILE_NAME "' is put aside as " DRA_FILE_NAME
                        ".broken: %s; claims are prepared anew",
                        directory, broken.msg);
        dra->told_revision = dra->file.revision;
        if (dra_file_begin(&dra->file, NULL) ==
            0) /* else another instance prepares one that is not read yet */
                claim_cdi_sweep(dra->cdi_directory, &dra->file.state);
        dra_file_end(&dra->file);
        return 0;
}

static const struct grpc_method methods[] = {
        { "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources", prepare_handle },
        { "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodeUnprepareResources", prepare_undo },
        { "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodePrepareResources", prepare_handle },
        { "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources", prepare_undo },
        { "/v1.DRAResourceHealth/NodeWatchResources", dra_health_watch },
        { "/v1alpha1.DRAResourceHealth/NodeWatchResources", dra_health_watch },
        { NULL, NULL },
};

static int check_options(const struct dra_options *options, struct err *err)
{
        if (!object_name_dns_valid(options->node, strlen(options->node)))
                return err_set(err, -EINVAL, "--dra: '%.100s' is no name of a node; give --node-name",
                               options->node);
        if (strcmp(options->store, "none") == 0)
                return err_set(err, -EINVAL,
                               "--dra: slices and claims need a --store: kubernetes, or dir:PATH");
        if (options->pod_uid != NULL && !dra_state_uid_valid(options->pod_uid))
                return err_set(err, -EINVAL, "--pod-uid '%.100s': must be 1 to 63 letters, digits and '-'",
                               options->pod_uid);
        return 0;
}

static int open_all(struct dra *dra, struct err *err)
{
        int r = loop_every(dra->loop, REFRESH_USEC, REFRESH_USEC, on_refresh, dra, &dra->refresh);

        if (r == 0)
                r = loop_every(dra->loop, DRA_HEALTH_HEARTBEAT_USEC, DRA_HEALTH_HEARTBEAT_USEC, on_heartbeat,
                               dra, &dra->heartbeat);
        if (r == 0)
                r = loop_timer(dra->loop, on_publish, dra, &dra->publish);
        if (r < 0)
                return err_set(err, r, "no timer for DRA");
        r = open_state(dra, err);
        if (r == 0)
                r = open_publisher(dra, err);
        if (r == 0)
                r = open_store(dra, err);
        if (r == 0)
                r = dra_registration_new(dra, dra->options.kubelet_root, dra->options.pod_uid, methods,
                                         &dra->registration, err);
        return r;
}

int dra_new(sd_event *loop, const struct dra_options *options, struct dra **ret, struct err *err)
{
        const char *cdi = options->cdi_directory != NULL              ? options->cdi_directory
                          : options->config->cdi_directory[0] != '\0' ? options->config->cdi_directory
                                                                      : DRA_CDI_DIRECTORY;
        int r = check_options(options, err);
        struct dra *dra = r < 0 ? NULL : calloc(1, sizeof(*dra));

        if (dra == NULL)
                return r < 0 ? r : err_set(err, -ENOMEM, "no memory for DRA");
        dra->loop = sd_event_ref(loop);
        dra->options = *options;
        dra->config = *options->config;
        dra->tree = options->tree;
        dra->file.lock = -1;
        inventory_init(&dra->inventory);
        (void) text_copy(dra->node, sizeof(dra->node), options->node);
        if (!text_copy(dra->cdi_directory, sizeof(dra->cdi_directory), cdi))
                r = err_set(err, -ENAMETOOLONG, "--cdi-dir %.100s: is too long", cdi);
        if (r == 0)
                r = open_all(dra, err);
        if (r < 0) {
                dra_free(dra);
                return r;
        }
        *ret = dra;
        return 0;
}

void dra_free(struct dra *dra)
{
        if (dra == NULL)
                return;
        store_close(TAKE(dra->store)); /* answers what waits, while that is there */
        prepare_close(dra);
        dra_registration_free(dra->registration);
        dra_health_close(dra);
        publisher_free(dra->publisher);
        (void) sd_event_source_disable_unref(dra->heartbeat);
        (void) sd_event_source_disable_unref(dra->refresh);
        (void) sd_event_source_disable_unref(dra->publish);
        dra_file_close(&dra->file);
        inventory_free(&dra->inventory);
        free(dra->names);
        free(dra->facts);
        (void) sd_event_unref(dra->loop);
        free(dra);
}
