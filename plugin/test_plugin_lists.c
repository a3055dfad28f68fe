/* Plugin: what the kubelet's lists say while chips move, are cut in another way or are too many, and who
 * reads them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/support/patience.h"
#include "tests/support/plugin_fixture.h"
#include "tests/support/refused_timers.h"

static void a_chip_moves_once_its_old_list_has_gone_out(void **state)
{
        struct place *p = *state;
        struct device *part;

        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_group(p, "g2", "huawei", "example.com/other", 1);
        add_device(p, "a", "g1", "huawei");
        add_device(p, "b", "g1", "huawei");
        start(p, NULL);
        update(p);
        assert_int_equal(offered(p, RESOURCE), 2);
        (void) text_copy(p->inventory.devices[1].group, DEVICE_GROUP_BYTES, "g2");
        update(p);
        assert_int_equal(offered(p, RESOURCE), 1);
        assert_int_equal(offered(p, "example.com/other"), 0);
        for (unsigned i = 0; offered(p, "example.com/other") == 0 && i < 100; i++)
                turn(p, 100);
        assert_int_equal(offered(p, "example.com/other"), 1);
        p->inventory.device_count = 1; /* b's chip is cut in two */
        for (unsigned i = 0; i < 2; i++) {
                part = add_device(p, i == 0 ? "b0" : "b1", "g1", "huawei");
                (void) text_copy(part->pci, sizeof(part->pci), "0000:01:00.0");
                (void) text_format(part->partition, sizeof(part->partition), "half-%u", i);
        }
        update(p);
        assert_int_equal(offered(p, RESOURCE), 1);
        for (unsigned i = 0; offered(p, RESOURCE) == 1 && i < 100; i++)
                turn(p, 100);
        assert_int_equal(offered(p, RESOURCE), 3);
}

/* A resource that could not wait for its kubelet is none, and said; what waits needs nothing more. */
static void what_waits_has_its_timers(void **state)
{
        struct place *p = *state;
        struct err err = { 0 };

        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_group(p, "g2", "huawei", "example.com/other", 1);
        add_device(p, "a", "g1", "huawei");
        add_device(p, "b", "g1", "huawei");
        add_device(p, "c", "g2", "huawei");
        start(p, NULL);
        timers_refused = true;
        assert_int_equal(plugin_update(p->plugin, &p->inventory, &err), -ENOMEM);
        assert_non_null(strstr(err.msg, "the timers of resource"));
        timers_refused = false;
        update(p);
        timers_refused = true;
        (void) text_copy(p->inventory.devices[1].group, DEVICE_GROUP_BYTES, "g2");
        update(p);
        assert_int_equal(offered(p, "example.com/other"), 1);
        for (unsigned i = 0; offered(p, "example.com/other") == 1 && i < 100; i++)
                turn(p, 100);
        timers_refused = false;
        assert_int_equal(offered(p, "example.com/other"), 2);
}

static bool sends_refused;
static unsigned sends_tried; /* of those that are refused */
int __real_grpc_call_send(struct grpc_call *call, const uint8_t *message, size_t size_bytes);
int __wrap_grpc_call_send(struct grpc_call *call, const uint8_t *message, size_t size_bytes);

int __wrap_grpc_call_send(struct grpc_call *call, const uint8_t *message, size_t size_bytes)
{
        sends_tried += sends_refused;
        return sends_refused ? -ENOMEM : __real_grpc_call_send(call, message, size_bytes);
}

/* What a kubelet has been told: devices of the last list. */
static void on_list(void *userdata, const uint8_t *message, size_t size)
{
        struct pb_arena arena;
        DevicePlugin__DeviceList *list;

        pb_arena_init(&arena, 1 << 20);
        list = pb_unpack(&arena, &device_plugin__device_list__descriptor, message, size);
        assert_non_null(list);
        *(size_t *) userdata = list->n_devices;
        pb_arena_free(&arena);
}

static void on_stream_end(void *userdata, enum grpc_status status, const char *sentence)
{
        (void) userdata;
        fail_msg("the stream ended: %d %s", (int) status, sentence);
}

#define WAIT(p, what)                                                                                        \
        for (uint64_t until_ = loop_now_usec((p)->loop) + patience_usec(); !(what); turn(p, 10))             \
        assert_true(loop_now_usec((p)->loop) < until_)

/* The kubelet goes on with an older list for as long as nothing else changes: what could not be sent is sent
 * later, by a timer that is there. */
static void a_list_that_could_not_be_sent_is_sent_later(void **state)
{
        struct place *p = *state;
        char address[160];
        const struct grpc_client_options options = { .address = address };
        static size_t told; /* static: clang thinks that no loop can change it otherwise */
        const struct grpc_client_handlers handlers = { .on_message = on_list,
                                                       .on_done = on_stream_end,
                                                       .userdata = &told };
        struct grpc_client *client = NULL;

        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_device(p, "a", "g1", "huawei");
        start(p, NULL);
        update(p);
        assert_true(text_format(address, sizeof(address), "unix:%s", status_of(p, RESOURCE)->socket));
        assert_int_equal(grpc_client_new(p->loop, &options, &client, NULL), 0);
        assert_int_equal(
                grpc_client_call(client, "/v1beta1.DevicePlugin/ListAndWatch", NULL, 0, 0, &handlers, NULL),
                0);
        WAIT(p, told == 1);
        sends_refused = timers_refused = true;
        add_device(p, "b", "g1", "huawei");
        update(p);
        WAIT(p, sends_tried >= 2);
        assert_int_equal(told, 1);
        sends_refused = false;
        WAIT(p, told == 2);
        timers_refused = false;
        grpc_client_free(client);
}

/* Another device in the place of the last, and whether it is offered before the lists have gone out. */
static const struct {
        const char *what;
        const char *vendor, *pci, *partition;
        bool waits;
} recuts[] = {
        { "in parts now", "huawei", "0000:01:00.0", "half-0", true },
        { "whole as before", "huawei", "0000:01:00.0", "", false },
        { "another's chip", "nvidia", "0000:01:00.0", "half-0", false },
        { "another chip", "huawei", "0000:02:00.0", "half-0", false },
        { "of no address", "huawei", "", "half-0", false },
};

static void only_another_cut_of_the_same_chip_waits(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(recuts); i++) {
                void *own = NULL;
                struct device *device;
                struct place *p;

                (void) set_up(&own);
                p = own;
                add_group(p, "g1", "huawei", RESOURCE, 1);
                add_device(p, "a", "g1", "huawei");
                add_device(p, "b", "g1", "huawei");
                start(p, NULL);
                update(p);
                p->inventory.device_count = 1;
                device = add_device(p, "c", "g1", recuts[i].vendor);
                (void) text_copy(device->pci, sizeof(device->pci), recuts[i].pci);
                (void) text_copy(device->partition, sizeof(device->partition), recuts[i].partition);
                update(p);
                if (offered(p, RESOURCE) != (recuts[i].waits ? 1 : 2))
                        fail_msg("%s: %u are offered", recuts[i].what, offered(p, RESOURCE));
                device->index = 9; /* told again while it waits */
                update(p);
                assert_int_equal(offered(p, RESOURCE), recuts[i].waits ? 1 : 2);
                for (unsigned k = 0; offered(p, RESOURCE) == 1 && k < 100; k++)
                        turn(p, 100);
                assert_int_equal(offered(p, RESOURCE), 2);
                (void) tear_down(&own);
        }
}

static void of_doubles_the_first_that_can_be_is_offered(void **state)
{
        struct place *p = *state;
        struct reply reply;

        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_device(p, "b", "", "huawei"); /* davinci0 */
        add_device(p, "b", "g1", "huawei");
        add_device(p, "b", "g1", "huawei");
        start(p, NULL);
        update(p);
        assert_int_equal(offered(p, RESOURCE), 1);
        allocate(p, "b", NULL, &reply);
        assert_int_equal(reply.status, GRPC_OK);
        assert_true(has_file(&reply, "/dev/davinci1", "/dev/davinci1"));
        pb_arena_free(&reply.arena);
}

static void a_list_that_no_kubelet_takes_is_cut_and_said(void **state)
{
        struct place *p = *state;
        char id[DEVICE_ID_BYTES];

        add_group(p, "g1", "huawei", RESOURCE, 100);
        for (unsigned i = 0; i < 512; i++) {
                memset(id, 'x', sizeof(id));
                (void) text_format(id + sizeof(id) - 5, 5, "%04u", i);
                add_device(p, id, "g1", "huawei");
        }
        start(p, NULL);
        update(p);
        assert_in_range(offered(p, RESOURCE), 30000, 51199);
        assert_non_null(strstr(status_of(p, RESOURCE)->trouble, "lower `replicas`"));
}

static void a_kubelet_that_comes_is_seen(void **state)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct place *p = *state;
        struct plugin_config config;
        struct plugin_status status;
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        plugin_config_default(&config);
        config.watcher = true;
        (void) text_copy(config.plugins_registry, sizeof(config.plugins_registry), p->directory);
        add_group(p, "g1", "huawei", RESOURCE, 1);
        add_device(p, "a", "g1", "huawei");
        start(p, &config);
        update(p);
        plugin_status(p->plugin, &status);
        assert_false(status.kubelet_present);
        assert_true(text_format(address.sun_path, sizeof(address.sun_path), "%s/kubelet.sock", p->directory));
        assert_int_equal(bind(fd, (const struct sockaddr *) &address, sizeof(address)), 0);
        for (uint64_t until = loop_now_usec(p->loop) + patience_usec();
             !status.kubelet_present && loop_now_usec(p->loop) < until;) {
                turn(p, 10);
                plugin_status(p->plugin, &status);
        }
        assert_true(status.kubelet_present);
        assert_int_equal(status.kubelet_seen_total, 1);
        assert_false(status.resources[0].registered); /* it finds the socket by itself */
        assert_false(status.ready);
        p->inventory.device_count = 0;
        update(p);
        assert_int_equal(unlink(address.sun_path), 0);
        for (uint64_t until = loop_now_usec(p->loop) + patience_usec();
             status.kubelet_present && loop_now_usec(p->loop) < until;) {
                turn(p, 10);
                plugin_status(p->plugin, &status);
        }
        assert_false(status.kubelet_present);
        assert_true(status.ready); /* nothing is to be offered */
        assert_int_equal(close(fd), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_chip_moves_once_its_old_list_has_gone_out, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(what_waits_has_its_timers, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_list_that_could_not_be_sent_is_sent_later, set_up,
                                                tear_down),
                cmocka_unit_test(only_another_cut_of_the_same_chip_waits),
                cmocka_unit_test_setup_teardown(of_doubles_the_first_that_can_be_is_offered, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_list_that_no_kubelet_takes_is_cut_and_said, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_kubelet_that_comes_is_seen, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
