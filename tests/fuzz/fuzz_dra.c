/* Any bytes as what DRA reads: Prepare, Unprepare and the watch of health of the kubelet, and the answers of
 * its registration, through the whole stack; a claim of the store; the state file and its journal. No device
 * is ever held twice, and what was read of a state is written as it was. First byte: which. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "io/grpc/grpc_client.h"
#include "plugin/dra/claim.h"
#include "plugin/dra/claim_cdi.h"
#include "plugin/dra/dra.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
        sd_event *loop;
        char directory[64];
        struct inventory inventory;
        struct dra_name names[8];
        struct bundles bundles;
        struct plugin_config config;
        struct dra *dra;
        struct grpc_client *driver, *registry;
} stage;

static void fill(struct inventory *inventory)
{
        inventory_init(inventory);
        for (unsigned i = 0; i < 6; i++) {
                struct device *device = inventory_add_device(inventory);

                (void) text_format(device->id, sizeof(device->id), "d%u", i);
                (void) text_format(device->group, sizeof(device->group), "g-%u", i / 3);
                device->index = i;
                device->usable = i != 4;
                device->memory_bytes = 10;
        }
        for (unsigned i = 0; i < 2; i++) {
                struct device_group *group = inventory_add_group(inventory);

                (void) text_format(group->name, sizeof(group->name), "g-%u", i);
                (void) text_copy(group->vendor, sizeof(group->vendor), "none");
                (void) text_format(group->resource, sizeof(group->resource), "n.com/g%u", i);
                (void) text_copy(group->fabric, sizeof(group->fabric), i == 0 ? "nvlink" : "none");
                group->shares = i == 0 ? 0 : 3;
        }
}

static void on_log(void *userdata, int priority, const char *line)
{
        (void) userdata;
        (void) priority;
        (void) line;
}

static void on_ask(void *userdata)
{
        (void) userdata;
}

static enum dra_held on_held(void *userdata, const char *id, char *ret_whom, size_t whom_bytes)
{
        (void) userdata;
        (void) text_copy(ret_whom, whom_bytes, "pod n/p");
        return strcmp(id, "d5") == 0 ? DRA_HELD : DRA_FREE;
}

static void on_changed(void *userdata)
{
        (void) userdata;
}

/* Claims "a" to "i" of uids "u0" to "u8": two want the same device, four a share of another, which has not
 * enough memory for all, nor shares, one shares of it that are more than it has by themselves, and one a
 * share of what nobody shares. */
static void write_claims(const char *store)
{
        static const struct {
                const char *device, *more;
        } claims[] = {
                { "d0", "" },
                { "d0", "" },
                { "d1", "" },
                { "d3", ",\"shareID\":\"s0\",\"consumedCapacity\":{\"memory\":\"6\"}" },
                { "d3", ",\"shareID\":\"s1\",\"consumedCapacity\":{\"memory\":\"6\"}" },
                { "d3", ",\"shareID\":\"s2\",\"consumedCapacity\":{\"memory\":\"2\"}" },
                { "d3", ",\"shareID\":\"s5\",\"consumedCapacity\":{\"memory\":\"2\",\"shares\":\"2\"}" },
                { "d3", ",\"shareID\":\"s3\",\"consumedCapacity\":{\"memory\":\"6\"}},{\"request\":\"r\","
                        "\"driver\":\"remuda.dev\",\"pool\":\"n1\",\"device\":\"d3\",\"shareID\":\"s4\","
                        "\"consumedCapacity\":{\"memory\":\"6\"}" },
                { "d2", ",\"shareID\":\"s6\"" },
        };

        for (unsigned i = 0; i < ARRAY_SIZE(claims); i++) {
                char path[128];
                FILE *file;

                (void) text_format(path, sizeof(path), "%s/claim%u.json", store, i);
                file = fopen(path, "we");
                if (file == NULL)
                        abort();
                fprintf(file,
                        "{\"apiVersion\":\"resource.k8s.io/"
                        "v1\",\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"%c\","
                        "\"namespace\":\"n\",\"uid\":\"u%u\"},\"status\":{\"reservedFor\":[{}],"
                        "\"allocation\":{\"devices\":{"
                        "\"results\":[{"
                        "\"request\":\"r\",\"driver\":\"remuda.dev\",\"pool\":\"n1\",\"device\":\"%s\"%s}]}}}"
                        "}",
                        'a' + (int) i, i, claims[i].device, claims[i].more);
                (void) fclose(file);
        }
}

static void turn(void)
{
        for (int i = 0; i < 200 && sd_event_run(stage.loop, 0) > 0; i++)
                ;
}

static void begin(void)
{
        char store[80], spec[96], cdi[80], address[128];
        const struct dra_options options = { .node = "n1",
                                             .kubelet_root = stage.directory,
                                             .cdi_directory = cdi,
                                             .store = spec,
                                             .config = &stage.config,
                                             .log = on_log,
                                             .held = on_held,
                                             .ask = on_ask,
                                             .changed = on_changed };
        const struct grpc_client_options client = { .address = address };

        (void) text_copy(stage.directory, sizeof(stage.directory), "/tmp/remuda-fuzz-XXXXXX");
        if (mkdtemp(stage.directory) == NULL || sd_event_new(&stage.loop) < 0)
                abort();
        (void) text_format(store, sizeof(store), "%s/store", stage.directory);
        (void) text_format(spec, sizeof(spec), "dir:%s", store);
        (void) text_format(cdi, sizeof(cdi), "%s/cdi", stage.directory);
        if (mkdir(store, 0700) < 0)
                abort();
        write_claims(store);
        plugin_config_default(&stage.config);
        fill(&stage.inventory);
        dra_name_all(&stage.inventory, stage.names);
        if (bundles_find(&stage.inventory, stage.names, &stage.bundles) < 0 ||
            dra_new(stage.loop, &options, &stage.dra, NULL) < 0 ||
            dra_update(stage.dra, &stage.inventory, NULL) < 0)
                abort();
        (void) text_format(address, sizeof(address), "unix:%s/plugins/remuda.dev/dra.sock", stage.directory);
        if (grpc_client_new(stage.loop, &client, &stage.driver, NULL) < 0)
                abort();
        (void) text_format(address, sizeof(address), "unix:%s/plugins_registry/remuda.dev-reg.sock",
                           stage.directory);
        if (grpc_client_new(stage.loop, &client, &stage.registry, NULL) < 0)
                abort();
        turn();
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        bool *done = userdata;

        (void) status;
        (void) sentence;
        *done = true;
}

/* Nobody is in anybody's way: no device has two holders, and no shares are more than theirs has. */
static void check_holders(void)
{
        const struct dra_state *state = dra_claims(stage.dra);

        for (size_t i = 0; i < state->count; i++)
                for (size_t j = 0; j < state->claims[i].device_count; j++) {
                        const char *id = state->claims[i].devices[j].id;
                        const struct dra_share_room room =
                                bundles_room(&stage.inventory, inventory_find_device(&stage.inventory, id));

                        if (dra_holder(stage.dra, id) == NULL ||
                            dra_state_rival(state, &state->claims[i], j, &room) != NULL)
                                abort();
                }
}

static void ask(struct grpc_client *client, const char *method, const uint8_t *data, size_t size)
{
        bool done = false;
        struct grpc_client_handlers handlers = { .on_done = on_done, .userdata = &done };

        if (grpc_client_call(client, method, data, size, 0, &handlers, NULL) < 0)
                abort();
        for (int i = 0; i < 10000 && !done; i++)
                (void) sd_event_run(stage.loop, 10000);
        if (!done)
                abort();
        check_holders();
}

static void read_claim(const uint8_t *data, size_t size)
{
        const struct claim_node node = {
                .name = "n1", .inventory = &stage.inventory, .names = stage.names, .bundles = &stage.bundles
        };
        const struct claim_cdi_node cdi = { .directory = "/none",
                                            .inventory = &stage.inventory,
                                            .config = &stage.config };
        json_t *object = json_read((const char *) data, size, 0, NULL), *spec = NULL;
        struct dra_state_claim claim;

        if (object != NULL && claim_read(object, "u", &node, &claim, NULL) == 0) {
                if (claim_cdi_build(&cdi, &claim, &spec, NULL) == 0)
                        json_decref(spec);
                dra_state_claim_free(&claim);
        }
        json_decref(object);
}

static void read_state(const uint8_t *data, size_t size)
{
        struct dra_state state, again;
        char *text, *second;

        if (dra_state_decode((const char *) data, size, &state, NULL) < 0)
                return;
        text = dra_state_encode(&state);
        if (text == NULL || dra_state_decode(text, strlen(text), &again, NULL) < 0)
                abort();
        second = dra_state_encode(&again);
        if (second == NULL || strcmp(text, second) != 0)
                abort();
        free(text);
        free(second);
        dra_state_free(&state);
        dra_state_free(&again);
}

/* Lines of a journal: what was done is written whole as it is. */
static void read_journal(const uint8_t *data, size_t size)
{
        struct dra_state state = { .count = 0 }, again;
        const char *at = (const char *) data, *end;
        char *text;

        while (size > 0 && (end = memchr(at, '\n', size)) != NULL) {
                (void) dra_state_apply(&state, at, (size_t) (end - at), NULL);
                size -= (size_t) (end - at) + 1;
                at = end + 1;
        }
        text = dra_state_encode(&state);
        if (text == NULL ||
            (dra_state_check(&state, NULL) == 0) != (dra_state_decode(text, strlen(text), &again, NULL) == 0))
                abort();
        free(text);
        dra_state_free(&state);
        dra_state_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (stage.loop == NULL)
                begin();
        if (size == 0 || size > 60000)
                return 0;
        switch (data[0] % 6) {
        case 0:
                ask(stage.driver, "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources", data + 1,
                    size - 1);
                break;
        case 1:
                ask(stage.driver, "/k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin/NodeUnprepareResources",
                    data + 1, size - 1);
                break;
        case 2:
                ask(stage.registry, "/pluginregistration.Registration/NotifyRegistrationStatus", data + 1,
                    size - 1);
                break;
        case 3:
                read_claim(data + 1, size - 1);
                break;
        case 4:
                read_state(data + 1, size - 1);
                break;
        default:
                read_journal(data + 1, size - 1);
        }
        turn();
        return 0;
}
