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
} bed;

static json_t *on_build(void *userdata, uint64_t generation, bool taints)
{
        const struct slices_options options = {
                .node = "n1", .generation = generation, .taints = taints, .facts = bed.facts
        };
        json_t *slices = NULL;

        (void) userdata;
        assert_int_equal(slices_build(&bed.inventory, &options, &slices, NULL), 0);
        return slices;
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
        const struct publisher_options options = { .node = "n1", .build = on_build, .log = on_log };
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

static void one_that_keeps_them_is_asked_once(void **state)
{
        (void) state;
        add_devices(3);
        bed.inventory.devices[1].usable = false;
        publisher_synced(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "read " SLICE "0"), 1);
        bed.inventory.devices[2].usable = false;
        publisher_update(bed.publisher);
        turn();
        assert_int_equal(memory_store_count(bed.store, "put"), 2);
        assert_int_equal(memory_store_count(bed.store, "read"), 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(nothing_is_written_before_what_is_there_is_known, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_generation_grows_where_several_slices_change, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(what_is_taken_away_comes_again, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_fails_is_tried_again, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_cluster_that_drops_taints_gets_none, set_up, tear_down),
                cmocka_unit_test_setup_teardown(one_that_keeps_them_is_asked_once, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
