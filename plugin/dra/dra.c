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
#include "io/clock.h"
#include "io/loop.h"
#include "plugin/dra/account/claim_records.h"
#include "plugin/dra/dra_health.h"
#include "plugin/dra/dra_internal.h"
#include "plugin/dra/dra_registration.h"
#include "plugin/dra/prepare.h"
#include "plugin/dra/publisher.h"
#include "plugin/dra/slices_facts.h"
#include "store/store.h"

#define PUBLISH_USEC UINT64_C(100000)
#define REFRESH_USEC UINT64_C(1000000)  /* how soon what another instance wrote is seen */
#define EARLIER_USEC UINT64_C(30000000) /* how often claims of an earlier boot are asked for */

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

void dra_status(const struct dra *dra, struct dra_status *ret)
{
        *ret = dra->status;
        ret->claims = dra->file.state.count;
        publisher_count(dra->publisher, ret);
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

static json_t *on_build(void *userdata, uint64_t generation, unsigned features, unsigned kept)
{
        struct dra *dra = userdata;
        const struct slices_options options = { .node = dra->node,
                                                .generation = generation,
                                                .features = features,
                                                .bundles = (features & kept & SLICES_COUNTERS) != 0,
                                                .facts = dra->facts,
                                                .config = &dra->config };
        json_t *slices = NULL;

        if (dra->withdrawn)
                return json_array();
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

void dra_reached(const struct dra *dra)
{
        publisher_hurry(dra->publisher);
}

void dra_withdraw(struct dra *dra, bool withdraw)
{
        if (dra->withdrawn == withdraw)
                return;
        dra->withdrawn = withdraw;
        publisher_update(dra->publisher);
}

bool dra_is_withdrawn(const struct dra *dra)
{
        return dra->withdrawn && publisher_is_empty(dra->publisher);
}

bool dra_is_over(const struct dra *dra)
{
        return dra_is_withdrawn(dra) && dra->file.state.count == 0 && dra->calls == NULL;
}

/* Under the lock, on what the files say then: it may have been prepared meanwhile. */
static void give_up_earlier(struct dra *dra, const struct claim_lookup_claim *asked)
{
        struct err err = { 0 };
        const struct dra_state_claim *claim;
        bool gone = false;

        if (dra_file_begin(&dra->file, DRA_FILE_WAIT_USEC, NULL) < 0)
                return; /* another look will */
        claim = dra_state_find(&dra->file.state, asked->uid);
        if (claim != NULL && dra_state_is_earlier(claim, dra->inventory.boot_id)) {
                claim_cdi_remove(dra->cdi_directory, asked->uid); /* the entry of one that is kept has none */
                dra_file_remove(&dra->file, asked->uid);
                gone = dra_file_save(&dra->file, &err) == 0;
                dra_log(dra, gone ? LOG_NOTICE : LOG_WARNING,
                        "claim %s/%s is of before the node's start, and the cluster does not give it these "
                        "devices any more: %s%s",
                        asked->namespace_, asked->name, gone ? "it is given up" : "it is kept: ", err.msg);
        }
        dra_file_end(&dra->file);
        if (!gone)
                return;
        dra->status.unprepared_total++;
        dra_claims_changed(dra);
}

static bool on_earlier(void *userdata, const struct claim_lookup_claim *asked, enum claim_lookup_answer said)
{
        if (said == CLAIM_LOOKUP_GONE)
                give_up_earlier(userdata, asked);
        return true;
}

static void on_earlier_end(void *userdata)
{
        (void) userdata;
}

void dra_look_for_earlier(struct dra *dra, uint64_t since_usec)
{
        const struct claim_lookup_options options = { .state = &dra->file.state,
                                                      .store = dra->store,
                                                      .node = dra->node,
                                                      .each = on_earlier,
                                                      .end = on_earlier_end,
                                                      .userdata = dra };
        const struct dra_state *state = &dra->file.state;
        uint64_t now = clock_monotonic_usec();

        if (!dra->claims_listed || dra->earlier.busy || dra->store == NULL ||
            (dra->earlier_usec != 0 && now < dra->earlier_usec + since_usec))
                return;
        for (size_t i = 0; i < state->count; i++)
                if (dra_state_is_earlier(&state->claims[i], dra->inventory.boot_id) &&
                    claim_lookup_add(&dra->earlier, &state->claims[i]) == 0)
                        dra->earlier_usec = now;
        (void) claim_lookup_begin(&dra->earlier, &options);
}

static void on_heartbeat(void *userdata)
{
        dra_health_send(userdata);
}

/* What runtimes read may have been taken away, with /var/run at a reboot or by hand, and what a dead driver
 * left goes. Under the lock, on what the files say then: a spec is a record, and one of a claim that another
 * instance gives up meanwhile would bring it back. Claims of an earlier boot get theirs with their devices.
 */
static void settle_specs(struct dra *dra)
{
        const struct claim_cdi_node node = dra_cdi_node(dra);
        const struct dra_state *state = &dra->file.state;
        struct err err = { 0 };

        if (dra_file_begin(&dra->file, DRA_FILE_WAIT_USEC, &err) < 0) { /* on_refresh() tries again */
                if (err.code != -EBUSY && strcmp(dra->trouble, err.msg) != 0)
                        dra_log(dra, LOG_ERR, "claims: %s; until that is mended none is prepared or given up",
                                err.msg);
                (void) text_copy(dra->trouble, sizeof(dra->trouble), err.code != -EBUSY ? err.msg : "");
                return;
        }
        claim_cdi_sweep(dra->cdi_directory, state);
        for (size_t i = 0; dra->facts != NULL && i < state->count; i++)
                if (!dra_state_is_earlier(&state->claims[i], dra->inventory.boot_id) &&
                    claim_cdi_write(&node, &state->claims[i], &err) < 0)
                        dra_log(dra, LOG_WARNING, "claim %s/%s: %s", state->claims[i].namespace_,
                                state->claims[i].name, err.msg);
        dra_file_end(&dra->file);
        dra->specs_settled = dra->facts != NULL;
}

static void on_refresh(void *userdata)
{
        struct dra *dra = userdata;

        dra_file_refresh(&dra->file);
        if (dra->facts != NULL && !dra->specs_settled)
                settle_specs(dra);
        if (dra->file.revision != dra->told_revision)
                dra_claims_changed(dra);
        dra_look_for_earlier(dra, EARLIER_USEC);
}

/* Once for each: whoever selects by the attribute does not find them. */
static void tell_long_resources(const struct dra *dra, const struct inventory *inventory)
{
        for (size_t i = 0; i < inventory->group_count; i++) {
                const struct device_group *group = &inventory->groups[i],
                                          *before = inventory_find_group(&dra->inventory, group->name);

                if (!slices_has_resource(group) &&
                    (before == NULL || strcmp(before->resource, group->resource) != 0))
                        dra_log(dra, LOG_WARNING,
                                "group %s: resource '%s' is longer than the %d bytes of an attribute: "
                                "'resource' of its devices is \"\"",
                                group->name, group->resource, SLICES_TEXT_BYTES - 1);
        }
}

int dra_update(struct dra *dra, const struct inventory *inventory, struct err *err)
{
        struct slices_fact *facts = calloc(inventory->device_count + 1, sizeof(*facts));
        struct dra_name *names = calloc(inventory->device_count + 1, sizeof(*names));
        bool first = dra->facts == NULL;
        struct bundles bundles = { .count = 0 };
        struct inventory copy;
        int r = facts == NULL || names == NULL ? -ENOMEM : 0;

        inventory_init(&copy);
        if (r == 0)
                r = inventory_copy(inventory, &copy);
        if (r == 0) {
                dra_name_all(&copy, names);
                r = bundles_find(&copy, names, &bundles);
        }
        if (r < 0) {
                free(facts);
                free(names);
                inventory_free(&copy);
                return err_set(err, -ENOMEM, "no memory for the slices of %zu devices",
                               inventory->device_count);
        }
        if (dra->tree != NULL)
                slices_facts_read(dra->tree, &copy, facts);
        tell_long_resources(dra, &copy);
        inventory_free(&dra->inventory);
        free(dra->facts);
        free(dra->names);
        bundles_free(&dra->bundles);
        dra->inventory = copy;
        dra->bundles = bundles;
        dra->facts = facts;
        dra->names = names;
        if (first)
                settle_specs(dra);
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
        struct dra *dra = userdata;

        if (kind == STORE_RESOURCE_SLICE)
                publisher_synced(dra->publisher);
        if (kind == STORE_RESOURCE_CLAIM)
                dra->claims_listed = true;
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

        dra->claims_listed = (options.kinds & 1U << STORE_RESOURCE_CLAIM) == 0; /* each is asked for */
        if (r < 0)
                return err_wrap(err, r, "--store %s", dra->options.store);
        publisher_set_store(dra->publisher, dra->store);
        return 0;
}

static bool on_early(void *userdata)
{
        const struct dra *dra = userdata;

        return dra->registration != NULL && dra_registration_is_awaited(dra->registration);
}

static bool on_followed(void *userdata)
{
        const struct dra *dra = userdata;

        return dra->registration != NULL && dra_registration_is_followed(dra->registration);
}

static void on_publisher_log(void *userdata, int priority, const char *line)
{
        dra_log(userdata, priority, "%s", line);
}

static int open_publisher(struct dra *dra, struct err *err)
{
        const struct publisher_options options = { .node = dra->node,
                                                   .build = on_build,
                                                   .early = on_early,
                                                   .followed = on_followed,
                                                   .log = on_publisher_log,
                                                   .userdata = dra };

        return publisher_new(dra->loop, &options, &dra->publisher, err);
}

static int on_known(void *userdata, struct dra_state *state, struct text *left, struct err *err)
{
        return claim_records_read(((const struct dra *) userdata)->cdi_directory, state, left, err);
}

static void on_mended(void *userdata, const struct dra_file_mended *mended)
{
        const struct dra *dra = userdata;

        for (const char *at = mended->left, *end; (end = strchr(at, '\n')) != NULL; at = end + 1)
                dra_log(dra, LOG_WARNING, "%.*s: it is left out of the account of claims", (int) (end - at),
                        at);
        if (mended->anew)
                dra_log(dra, LOG_ERR,
                        "%s%s: the account of claims is written anew, with %zu from memory and %zu from CDI "
                        "specs",
                        mended->why,
                        mended->put_aside ? "; " DRA_FILE_NAME " and " DRA_JOURNAL_NAME
                                            " are both put aside as *.broken"
                                          : "",
                        mended->kept, mended->more);
}

static int open_state(struct dra *dra, struct err *err)
{
        const struct dra_file_owner owner = { .known = on_known, .mended = on_mended, .userdata = dra };
        char directory[128];
        int r;

        if (!text_format(directory, sizeof(directory), "%s/plugins/" DRA_NAME_DRIVER,
                         dra->options.kubelet_root))
                return err_set(err, -ENAMETOOLONG, "--kubelet-root %.100s: is too long",
                               dra->options.kubelet_root);
        r = dra_file_open(&dra->file, directory, &owner, err);
        if (r < 0)
                return r;
        settle_specs(dra);
        dra->told_revision = dra->file.revision;
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
        const char *cdi = plugin_config_claims_folder(options->config, options->cdi_directory);
        int r = check_options(options, err);
        struct dra *dra = r < 0 ? NULL : calloc(1, sizeof(*dra));

        if (dra == NULL)
                return r < 0 ? r : err_set(err, -ENOMEM, "no memory for DRA");
        dra->loop = sd_event_ref(loop);
        dra->options = *options;
        dra->config = *options->config;
        dra->tree = options->tree;
        dra->file.lock = -1;
        dra->status.prepare.bounds = histogram_duration_bounds;
        dra->status.prepare.bound_count = HISTOGRAM_DURATION_BOUNDS;
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
        claim_lookup_free(&dra->earlier);
        dra_registration_free(dra->registration);
        dra_health_close(dra);
        publisher_free(dra->publisher);
        (void) sd_event_source_disable_unref(dra->heartbeat);
        (void) sd_event_source_disable_unref(dra->refresh);
        (void) sd_event_source_disable_unref(dra->publish);
        dra_file_close(&dra->file);
        inventory_free(&dra->inventory);
        bundles_free(&dra->bundles);
        free(dra->names);
        free(dra->facts);
        (void) sd_event_unref(dra->loop);
        free(dra);
}
