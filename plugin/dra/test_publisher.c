/* Publisher: what is written when, of which generation, and a cluster that drops taints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "plugin/dra/publisher.h"
#include "plugin/dra/slices.h"
#include "tests/support/memory_store.h"

#define SLICE "ResourceSlice remuda.dev-n1-"

static struct {
        sd_event *loop;
        struct memory_store *store;
        struct publisher *publisher;
        struct inventory inventory;
        struct slices_fact facts[200];
        bool withdrawn, early, followed;
} bed;

static json_t *on_build(void *userdata, uint64_t generation, unsigned features, unsigned kept)
{
        const struct slices_options options = { .node = "n1",
                                                .generation = generation,
                                                .features = features,
                                                .bundles = (features & kept & SLICES_COUNTERS) != 0,
                                                .facts = bed.facts };
        json_t *slices = NULL;

        (void) userdata;
        if (bed.withdrawn)
                return json_array();
        assert_int_equal(slices_build(&bed.inventory, &options, &slices, NULL), 0);
        return slices;
}

static bool on_early(void *userdata)
{
        (void) userdata;
        return bed.early;
}

static bool on_followed(void *userdata)
{
        (void) userdata;
        return bed.followed;
}

static void on_log(void *userdata, int priority, const char *line)
{
        (void) userdata;
        (void) priority;
        (void) line;
}

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        (void) userdata;
        assert_int_equal(kind, STORE_RESOURCE_SLICE);
        publisher_changed(bed.publisher, key, object);
}

static void turn(void)
{
        for (unsigned i = 0; i < 30; i++) {
                memory_store_tell(bed.store);
                assert_true(sd_event_run(bed.loop, 10000) >= 0);
        }
}

static void add_devices(size_t count)
{
        for (size_t i = 0; i < count; i++) {
                struct device *device = inventory_add_device(&bed.inventory);

                (void) text_format(device->id, sizeof(device->id), "d%zu", i);
                (void) text_copy(device->group, sizeof(device->group), "g");
                device->index = (unsigned) i;
                device->usable = true;
        }
}

static int set_up(void **state)
{
        const struct store_options store = { .kinds = 1U << STORE_RESOURCE_SLICE, .changed = on_changed };
        const struct publisher_options options = {
                .node = "n1", .build = on_build, .early = on_early, .followed = on_followed, .log = on_log
        };
        struct device_group *group;

        (void) state;
        memset(&bed, 0, sizeof(bed));
        inventory_init(&bed.inventory);
        group = inventory_add_group(&bed.inventory);
        (void) text_copy(group->name, sizeof(group->name), "g");
        (void) text_copy(group->resource, sizeof(group->resource), "a.com/b");
        assert_int_equal(loop_new(&bed.loop, NULL), 0);
        bed.store = memory_store_new(bed.loop, &store);
        assert_int_equal(publisher_new(bed.loop, &options, &bed.publisher, NULL), 0);
        publisher_set_store(bed.publisher, &bed.store->store);
        return 0;
}

static int tear_down(void **state)
{
        (void) state;
        store_close(&bed.store->store);
        publisher_free(bed.publisher);
        inventory_free(&bed.inventory);
        assert_null(sd_event_unref(bed.loop));
        return 0;
}

static json_int_t generation(unsigned slice)
{
        char name[64];
        const json_t *object;

        (void) text_format(name, sizeof(name), SLICE "%u", slice);
        object = json_object_get(bed.store->objects, name);
        return json_integer_value(
                json_object_get(json_object_get(json_object_get(object, "spec"), "pool"), "generation"));
}

static void nothing_is_written_before_what_is_there_is_known(void **state)
{
        (void) state;
        add_devices(2);
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), 0);
        publisher_synced(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put " SLICE "0"), 1);
        publisher_update(bed.publisher); /* as it is */
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), 1);
}

static void what_is_withdrawn_goes(void **state)
{
        (void) state;
        add_devices(2);
        publisher_synced(bed.publisher);
        assert_false(publisher_is_empty(bed.publisher)); /* it is being written */
        turn();
        assert_false(publisher_is_empty(bed.publisher));
        bed.withdrawn = true;
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "force " SLICE "0"), 1);
        assert_true(publisher_is_empty(bed.publisher));
        bed.withdrawn = false;
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put " SLICE "0"), 2);
}

static void a_generation_grows_where_several_slices_change(void **state)
{
        (void) state;
        add_devices(100);
        publisher_synced(bed.publisher);
        turn();
        assert_int_equal(generation(0), 1); /* nobody knew of any */
        assert_int_equal(generation(1), 1);
        bed.inventory.devices[99].numa = 1;
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(generation(1), 1);
        assert_int_equal(memory_store_count(bed.store, "put " SLICE "0"), 1);
        assert_int_equal(memory_store_count(bed.store, "put " SLICE "1"), 2);
        bed.inventory.device_count = 10;
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(generation(0), 2);
        assert_int_equal(memory_store_count(bed.store, "force " SLICE "1"), 1);
}

/* The last that a slice can have, which another program wrote: the API server refuses a negative one. */
static void after_the_last_generation_a_pool_is_made_anew(void **state)
{
        (void) state;
        add_devices(100);
        publisher_synced(bed.publisher);
        turn();
        memory_store_merge(bed.store, SLICE "0",
                           "{\"spec\":{\"pool\":{\"generation\":9223372036854775807}}}");
        turn();
        memory_store_refuse(bed.store, "force " SLICE "1", -EIO, "not now");
        bed.inventory.devices[0].numa = bed.inventory.devices[99].numa = 1;
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put " SLICE "0"), 1); /* not before all are gone */
        memory_store_refuse(bed.store, NULL, 0, NULL);
        for (unsigned i = 0; i < 3; i++) /* a second */
                turn();
        assert_int_equal(generation(0), 1);
        assert_int_equal(generation(1), 1);
        bed.inventory.devices[0].numa = bed.inventory.devices[99].numa = 2;
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(generation(0), 2);
        assert_int_equal(generation(1), 2);
}

static void what_is_taken_away_comes_again(void **state)
{
        (void) state;
        add_devices(2);
        publisher_synced(bed.publisher);
        turn();
        memory_store_drop(bed.store, SLICE "0");
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), 2);
        assert_int_equal(generation(0), 1);
}

/* Between a kubelet that wipes slices as it starts and its word that the driver is registered. */
static void none_is_made_while_nobody_could_serve_it(void **state)
{
        (void) state;
        add_devices(2);
        publisher_synced(bed.publisher);
        turn();
        bed.early = true;
        bed.inventory.devices[1].numa = 1; /* what is there is set right */
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put " SLICE "0"), 2);
        memory_store_drop(bed.store, SLICE "0");
        turn();
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), 2);
        bed.early = false;
        publisher_hurry(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), 3);
        bed.inventory.devices[1].numa = 2;
        publisher_hurry(bed.publisher); /* nobody waits for it */
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), 3);
}

/* Two instances that want other slices would set each other's right for ever. */
static void one_of_two_instances_writes(void **state)
{
        (void) state;
        add_devices(2);
        publisher_synced(bed.publisher);
        turn();
        bed.followed = true;
        memory_store_drop(bed.store, SLICE "0");
        turn();
        bed.inventory.devices[1].numa = 1;
        publisher_update(bed.publisher);
        publisher_hurry(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), 1);
        bed.followed = false;
        publisher_hurry(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), 2);
}

/* Of a pool of several slices: what waits is no change yet, or what is there would be written for ever. */
static void what_waits_makes_no_generation(void **state)
{
        size_t before;

        (void) state;
        add_devices(180);
        publisher_synced(bed.publisher);
        turn();
        bed.early = true;
        memory_store_drop(bed.store, SLICE "1");
        memory_store_drop(bed.store, SLICE "2");
        turn();
        before = memory_store_count(bed.store, "put");
        turn();
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), before);
        assert_int_equal(before, 3);
        assert_int_equal(generation(0), 1);
        bed.early = false;
        publisher_hurry(bed.publisher);
        turn();
        assert_int_equal(generation(0), 2);
        assert_int_equal(generation(1), 2);
        assert_int_equal(generation(2), 2);
}

static void what_fails_is_tried_again(void **state)
{
        (void) state;
        add_devices(2);
        memory_store_refuse(bed.store, "put", -EIO, "no");
        publisher_synced(bed.publisher);
        turn();
        memory_store_refuse(bed.store, NULL, 0, NULL);
        for (unsigned i = 0; i < 300 && generation(0) == 0; i++)
                assert_true(sd_event_run(bed.loop, 10000) >= 0);
        assert_int_equal(generation(0), 1);
}

/* An API server whose gate is off keeps the slice and not its taints. */
static void a_cluster_that_drops_taints_gets_none(void **state)
{
        const json_t *devices, *slice;

        (void) state;
        add_devices(2);
        bed.inventory.devices[1].usable = false;
        bed.inventory.devices[1].health = HEALTH_UNHEALTHY;
        publisher_synced(bed.publisher);
        slice = json_object_get(json_object_get(bed.store->objects, SLICE "0"), "spec");
        (void) json_object_del(json_array_get(json_object_get(slice, "devices"), 1), "taints");
        turn();
        devices = json_object_get(json_object_get(json_object_get(bed.store->objects, SLICE "0"), "spec"),
                                  "devices");
        assert_int_equal(json_array_size(devices), 1);
}

static size_t count_devices(void)
{
        return json_array_size(json_object_get(
                json_object_get(json_object_get(bed.store->objects, SLICE "0"), "spec"), "devices"));
}

static void strip_counters(void)
{
        json_t *spec = json_object_get(json_object_get(bed.store->objects, SLICE "0"), "spec"), *device;
        size_t i;

        json_array_foreach(json_object_get(spec, "devices"), i, device)(void)
                json_object_del(device, "consumesCounters");
        spec = json_object_get(json_object_get(bed.store->objects, SLICE "counters-0"), "spec");
        (void) json_object_del(spec, "sharedCounters");
}

/* A group that a cluster does not keep apart from its chips would be given beside them. */
static void a_group_is_offered_once_counters_are_seen(void **state)
{
        (void) state;
        (void) text_copy(bed.inventory.groups[0].fabric, sizeof(bed.inventory.groups[0].fabric), "nvlink");
        add_devices(4);
        publisher_synced(bed.publisher);
        assert_int_equal(count_devices(), 4); /* as they were written first */
        turn();
        assert_int_equal(count_devices(), 5);
        assert_int_equal(memory_store_count(bed.store, "put " SLICE "counters-0"), 1);
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put " SLICE "0"), 2);
        assert_int_equal(generation(0), 1);
}

static void a_cluster_that_drops_counters_gets_none(void **state)
{
        (void) state;
        (void) text_copy(bed.inventory.groups[0].fabric, sizeof(bed.inventory.groups[0].fabric), "nvlink");
        add_devices(4);
        publisher_synced(bed.publisher);
        strip_counters();
        turn();
        assert_int_equal(count_devices(), 4);
        assert_int_equal(memory_store_count(bed.store, "force " SLICE "counters-0"), 1);
        assert_int_equal(generation(0), 2);
}

/* One of before knows counters in another shape. */
static void one_that_refuses_counters_gets_none(void **state)
{
        (void) state;
        (void) text_copy(bed.inventory.groups[0].fabric, sizeof(bed.inventory.groups[0].fabric), "nvlink");
        add_devices(4);
        memory_store_refuse(bed.store, "put " SLICE "counters-0", -EINVAL, "spec.sharedCounters: no");
        publisher_synced(bed.publisher);
        for (unsigned i = 0; i < 10; i++)
                turn();
        assert_int_equal(count_devices(), 4);
        assert_null(json_object_get(
                json_array_get(json_object_get(json_object_get(json_object_get(bed.store->objects, SLICE "0"),
                                                               "spec"),
                                               "devices"),
                               0),
                "consumesCounters"));
}

/* Several may have a chip, or where that is dropped one. */
static void a_cluster_that_drops_shares_gets_chips(void **state)
{
        json_t *device;

        (void) state;
        bed.inventory.groups[0].shares = 4;
        add_devices(1);
        publisher_synced(bed.publisher);
        device = json_array_get(
                json_object_get(json_object_get(json_object_get(bed.store->objects, SLICE "0"), "spec"),
                                "devices"),
                0);
        assert_int_equal(json_object_del(device, "allowMultipleAllocations"), 0);
        turn();
        device = json_array_get(
                json_object_get(json_object_get(json_object_get(bed.store->objects, SLICE "0"), "spec"),
                                "devices"),
                0);
        assert_null(json_object_get(device, "allowMultipleAllocations"));
        assert_null(json_object_get(json_object_get(json_object_get(device, "capacity"), "memory"),
                                    "requestPolicy"));
}

static void one_that_keeps_them_is_asked_once(void **state)
{
        (void) state;
        add_devices(3);
        bed.inventory.devices[1].usable = false;
        publisher_synced(bed.publisher);
        turn();
        assert_true(memory_store_count(bed.store, "read " SLICE "0") <= 1); /* or it was told */
        bed.inventory.devices[2].usable = false;
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), 2);
        assert_true(memory_store_count(bed.store, "read") <= 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(nothing_is_written_before_what_is_there_is_known, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_generation_grows_where_several_slices_change, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(what_is_withdrawn_goes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(after_the_last_generation_a_pool_is_made_anew, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(what_is_taken_away_comes_again, set_up, tear_down),
                cmocka_unit_test_setup_teardown(none_is_made_while_nobody_could_serve_it, set_up, tear_down),
                cmocka_unit_test_setup_teardown(one_of_two_instances_writes, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_waits_makes_no_generation, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_fails_is_tried_again, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_cluster_that_drops_taints_gets_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(one_that_keeps_them_is_asked_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_group_is_offered_once_counters_are_seen, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_cluster_that_drops_counters_gets_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(one_that_refuses_counters_gets_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_cluster_that_drops_shares_gets_chips, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
