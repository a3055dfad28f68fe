/* Any bytes as a message of the kubelet's: to Allocate, GetPreferredAllocation, NotifyRegistrationStatus, and
 * as the answers of Register and of pod-resources; through the whole stack. GetPreferredAllocation never
 * fails. First byte: which. */
#include <stdint.h>
#include <stdlib.h>
#include <systemd/sd-event.h>

#include "base/text.h"
#include "io/grpc/grpc_client.h"
#include "io/grpc/grpc_server.h"
#include "plugin/plugin.h"
#include "plugin/pod_resources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct stage {
        sd_event *loop;
        char directory[64];
        struct plugin *plugin;
        struct grpc_server *kubelet;
        struct grpc_client *client;
        struct pod_resources *pods;
        const uint8_t *data;
        size_t size;
};

struct answer {
        bool done;
        enum grpc_status status;
};

/* The kubelet's Register and List: the input is the answer. */
static void answer_input(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size)
{
        struct stage *stage = userdata;

        (void) message;
        (void) size;
        grpc_call_reply(call, stage->data, stage->size);
}

static const struct grpc_method methods[] = { { "/v1beta1.Registration/Register", answer_input },
                                              { "/v1.PodResourcesLister/List", answer_input },
                                              { NULL, NULL } };

static void fill(struct inventory *inventory)
{
        inventory_init(inventory);
        for (unsigned i = 0; i < 6; i++) {
                struct device *device = inventory_add_device(inventory);

                (void) text_format(device->id, sizeof(device->id), "d%u", i);
                (void) text_format(device->group, sizeof(device->group), "g-%u", i / 3);
                device->index = i;
                device->usable = i != 4;
        }
        for (unsigned i = 0; i < 2; i++) {
                struct device_group *group = inventory_add_group(inventory);

                (void) text_format(group->name, sizeof(group->name), "g-%u", i);
                (void) text_copy(group->vendor, sizeof(group->vendor), "nvidia");
                (void) text_copy(group->resource, sizeof(group->resource), "n.com/g");
                (void) text_copy(group->fabric, sizeof(group->fabric), "nvlink");
                group->shares = 2;
        }
}

static void turn(struct stage *stage)
{
        for (int i = 0; i < 200 && sd_event_run(stage->loop, 0) > 0; i++)
                ;
}

static void begin(struct stage *stage)
{
        struct plugin_options options = { .kubelet_directory = stage->directory };
        char address[128];
        struct grpc_server_options server = { .address = address, .methods = methods, .userdata = stage };
        struct grpc_client_options client = { .address = address };
        struct plugin_status status;
        struct inventory inventory;

        (void) text_copy(stage->directory, sizeof(stage->directory), "/tmp/remuda-fuzz-XXXXXX");
        if (mkdtemp(stage->directory) == NULL || sd_event_new(&stage->loop) < 0 ||
            plugin_new(stage->loop, &options, &stage->plugin, NULL) < 0)
                abort();
        fill(&inventory);
        if (plugin_update(stage->plugin, &inventory, NULL) < 0)
                abort();
        inventory_free(&inventory);
        plugin_status(stage->plugin, &status);
        (void) text_format(address, sizeof(address), "unix:%s", status.resources[0].socket);
        if (grpc_client_new(stage->loop, &client, &stage->client, NULL) < 0)
                abort();
        (void) text_format(address, sizeof(address), "unix:%s/kubelet.sock", stage->directory);
        if (grpc_server_new(stage->loop, &server, &stage->kubelet, NULL) < 0)
                abort();
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct answer *answer = userdata;

        (void) sentence;
        answer->done = true;
        answer->status = status;
}

static enum grpc_status ask(struct stage *stage, const char *method)
{
        struct answer answer = { 0 };
        struct grpc_client_handlers handlers = { .on_done = on_done, .userdata = &answer };

        if (grpc_client_call(stage->client, method, stage->data, stage->size, 0, &handlers, NULL) < 0)
                abort();
        for (int i = 0; i < 10000 && !answer.done; i++)
                (void) sd_event_run(stage->loop, 10000);
        if (!answer.done)
                abort();
        return answer.status;
}

static void read_pods(struct stage *stage)
{
        char path[128];
        struct pod_resources_options options = { .socket = path };
        const struct holder *holders;
        struct pod_resources *pods;

        (void) text_format(path, sizeof(path), "%s/kubelet.sock", stage->directory);
        if (pod_resources_new(stage->loop, &options, &pods, NULL) < 0)
                abort();
        turn(stage);
        if (pod_resources_holders(pods, &holders, NULL) > stage->size)
                abort();
        pod_resources_free(pods);
        turn(stage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct stage stage;

        if (stage.loop == NULL)
                begin(&stage);
        if (size == 0 || size > 60000)
                return 0;
        stage.data = data + 1;
        stage.size = size - 1;
        switch (data[0] & 3) {
        case 0:
                (void) ask(&stage, "/v1beta1.DevicePlugin/Allocate");
                break;
        case 1:
                if (ask(&stage, "/v1beta1.DevicePlugin/GetPreferredAllocation") != GRPC_OK)
                        abort();
                break;
        case 2:
                (void) ask(&stage, "/pluginregistration.Registration/NotifyRegistrationStatus");
                break;
        default:
                read_pods(&stage);
        }
        turn(&stage);
        return 0;
}
