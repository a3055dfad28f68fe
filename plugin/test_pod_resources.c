/* Pod resources: who holds what, from the kubelet's answers, whole and broken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/pb.h"
#include "base/text.h"
#include "io/grpc/grpc_server.h"
#include "io/loop.h"
#include "plugin/pod_resources.h"
#include "plugin/pod_resources.pb-c.h"

#define RESOURCE "example.com/npu"

static void add_group(struct inventory *inventory, const char *name, const char *resource, unsigned shares)
{
        struct device_group *group = inventory_add_group(inventory);

        assert_non_null(group);
        (void) text_copy(group->name, sizeof(group->name), name);
        (void) text_copy(group->resource, sizeof(group->resource), resource);
        group->shares = shares;
}

static void add_device(struct inventory *inventory, const char *id, const char *group)
{
        struct device *device = inventory_add_device(inventory);

        assert_non_null(device);
        (void) text_copy(device->id, sizeof(device->id), id);
        (void) text_copy(device->group, sizeof(device->group), group);
        device->usable = true;
}

static void turn_until_asked(sd_event *loop, const struct pod_resources *pods)
{
        const struct holder *holders;
        uint64_t asked = 0;

        for (unsigned i = 0; asked == 0 && i < 1000; i++) {
                assert_true(sd_event_run(loop, 10000) >= 0);
                (void) pod_resources_holders(pods, &holders, &asked);
        }
        assert_true(asked > 0);
}

static void turn_until_trouble(sd_event *loop, const struct pod_resources *pods, bool trouble)
{
        for (unsigned i = 0; (pod_resources_trouble(pods)[0] != '\0') != trouble && i < 1000; i++)
                assert_true(sd_event_run(loop, 10000) >= 0);
}

static bool is_broken; /* the kubelet's answer */
static unsigned changes, troubles;

static void on_change(void *userdata)
{
        (void) userdata;
        changes++;
}

static void on_trouble(void *userdata)
{
        (void) userdata;
        troubles++;
}

/* Two containers of one pod hold shares of "a", one of them two; "b" is held under a resource of no group. */
static void handle_list(void *userdata, struct grpc_call *call, const uint8_t *message, size_t size)
{
        static char *ids[] = { "a::0", "a::1", "b", "a::2" };
        PodResources__ContainerDevices devices[3];
        PodResources__ContainerDevices *first[] = { &devices[0], &devices[1] }, *second[] = { &devices[2] };
        PodResources__ContainerResources containers[2], *both[] = { &containers[0], &containers[1] };
        PodResources__PodResources pod = POD_RESOURCES__POD_RESOURCES__INIT, *pods[] = { &pod };
        PodResources__ListResponse list = POD_RESOURCES__LIST_RESPONSE__INIT;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        size_t bytes_size = 0;

        (void) userdata;
        (void) message;
        (void) size;
        for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
                pod_resources__container_devices__init(&devices[i]);
                devices[i].resource_name = i == 1 ? "example.com/none" : RESOURCE;
                devices[i].device_ids = &ids[i == 0 ? 0 : i + 1];
                devices[i].n_device_ids = i == 0 ? 2 : 1;
        }
        for (size_t i = 0; i < ARRAY_SIZE(containers); i++) {
                pod_resources__container_resources__init(&containers[i]);
                containers[i].name = i == 0 ? "main" : "side";
                containers[i].devices = i == 0 ? first : second;
                containers[i].n_devices = i == 0 ? 2 : 1;
        }
        pod.name = "train-0";
        pod.namespace_ = "lab";
        pod.containers = both;
        pod.n_containers = 2;
        list.pod_resources = pods;
        list.n_pod_resources = 1;
        bytes = pb_pack(&list, &bytes_size);
        assert_non_null(bytes);
        if (is_broken)
                bytes[0] = 0xff;
        grpc_call_reply(call, bytes, bytes_size);
}

static void check_holders(struct pod_resources *pods)
{
        const struct holder *holders = NULL;

        assert_int_equal(pod_resources_holders(pods, &holders, NULL), 3);
        assert_string_equal(holders[0].device_id, "a");
        assert_string_equal(holders[0].container, "main");
        assert_int_equal(holders[0].shares, 2);
        assert_string_equal(holders[1].container, "side");
        assert_string_equal(holders[2].device_id, "b");
        assert_int_equal(changes, 1);
}

static void check_inventory(struct pod_resources *pods)
{
        const struct holder *holders = NULL;
        struct inventory inventory;
        uint64_t asked;
        size_t count;

        inventory_init(&inventory);
        add_group(&inventory, "g1", RESOURCE, 4);
        add_group(&inventory, "g2", "example.com/other", 1);
        add_device(&inventory, "a", "g1");
        add_device(&inventory, "b", "g2");
        add_device(&inventory, "c", "");
        pod_resources_count_free(pods, &inventory);
        assert_int_equal(inventory.groups[0].free, 1);
        assert_int_equal(inventory.groups[1].free, 1);
        inventory.groups[0].shares = 3;
        pod_resources_count_free(pods, &inventory);
        assert_int_equal(inventory.groups[0].free, 0);
        inventory.devices[0].usable = false;
        count = pod_resources_holders(pods, &holders, &asked);
        holder_fill_losses(holders, count, &inventory);
        assert_int_equal(inventory.loss_count, 1); /* one pod, whatever its containers */
        assert_string_equal(inventory.losses[0].pod, "lab/train-0");
        inventory_free(&inventory);
}

static void holders_are_told_from_the_kubelets_answer(void **state)
{
        static const struct grpc_method methods[] = { { "/v1.PodResourcesLister/List", handle_list },
                                                      { NULL, NULL } };
        char folder[] = "/tmp/test_pod_resources.XXXXXX", address[128];
        const struct grpc_server_options serving = { .address = address, .methods = methods };
        struct pod_resources_options options = { .period_usec = 20000,
                                                 .on_change = on_change,
                                                 .on_trouble = on_trouble };
        struct pod_resources *pods = NULL;
        struct grpc_server *server = NULL;
        const struct holder *holders;
        sd_event *loop = NULL;

        (void) state;
        assert_non_null(mkdtemp(folder));
        assert_true(text_format(address, sizeof(address), "unix:%s/pods.sock", folder));
        options.socket = address + strlen("unix:");
        assert_int_equal(loop_new(&loop, NULL), 0);
        assert_int_equal(grpc_server_new(loop, &serving, &server, NULL), 0);
        assert_int_equal(pod_resources_new(loop, &options, &pods, NULL), 0);
        pod_resources_request(pods);
        pod_resources_poke(pods);
        assert_int_equal(pod_resources_holders(pods, &holders, NULL), 0);
        turn_until_asked(loop, pods);
        pod_resources_request(pods); /* so soon again: not at once */
        check_holders(pods);
        check_inventory(pods);
        is_broken = true;
        turn_until_trouble(loop, pods, true);
        is_broken = false;
        assert_string_equal(pod_resources_trouble(pods), "the pod-resources answer cannot be read");
        check_holders(pods); /* the last answer stands */
        turn_until_trouble(loop, pods, false);
        assert_int_equal(troubles, 2); /* that it is there, and that it is over */
        check_holders(pods);
        pod_resources_free(pods);
        pod_resources_free(NULL);
        grpc_server_free(server);
        sd_event_unref(loop);
        assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(holders_are_told_from_the_kubelets_answer),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
