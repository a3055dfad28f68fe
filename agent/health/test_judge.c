/* Judge: scans one after the other, and what is told of each device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/health/judge.h"
#include "agent/state_file.h"
#include "base/cleanup.h"
#include "base/text.h"

#define SECOND UINT64_C(1000000)

/* A node of the tests: what was told last, and how many changes were. */
struct node {
        struct judge judge;
        struct agent_config config;
        struct inventory told;
        uint64_t now;
        unsigned changes;
};

static void on_changed(void *userdata, const struct judge_record *record, enum device_health before,
                       bool is_new)
{
        struct node *node = userdata;

        (void) record;
        (void) before;
        (void) is_new;
        node->changes++;
}

static void start(struct node *node, const char *config)
{
        struct err err = { 0 };

        *node = (struct node){ .now = 1000 * SECOND };
        inventory_init(&node->told);
        if (agent_config_parse("test", config, strlen(config), &node->config, &err) < 0)
                fail_msg("%s", err.msg);
}

static void end(struct node *node)
{
        judge_free(&node->judge);
        agent_config_free(&node->config);
        inventory_free(&node->told);
}

/* One scan: a letter a device, its position is its id. 'h' healthy, 'u' unhealthy, 'a' assigned to a virtual
 * machine, 'x' kept out by the configuration, '-' not there, 'd' another device with the id of the first. */
static void scan(struct node *node, const char *devices)
{
        const struct judge_callbacks callbacks = { .changed = on_changed, .userdata = node };
        struct inventory found;

        inventory_init(&found);
        (void) text_copy(inventory_add_group(&found)->name, DEVICE_GROUP_BYTES, "test-0");
        for (size_t i = 0; devices[i] != '\0'; i++) {
                struct device *d = devices[i] != '-' ? inventory_add_device(&found) : NULL;

                if (d == NULL)
                        continue;
                (void) text_format(d->id, sizeof(d->id), "dev-%zu", devices[i] == 'd' ? 0 : i);
                (void) text_format(d->pci, sizeof(d->pci), "0000:%02zx:00.0", i);
                d->index = (unsigned) i;
                d->health = devices[i] == 'u' ? HEALTH_UNHEALTHY : HEALTH_HEALTHY;
                if (devices[i] == 'a' || devices[i] == 'x') {
                        d->health = HEALTH_UNKNOWN;
                        (void) text_copy(d->reason, sizeof(d->reason),
                                         devices[i] == 'a' ? "Assigned" : "Excluded");
                } else
                        (void) text_copy(d->group, sizeof(d->group), "test-0");
                if (devices[i] == 'u')
                        (void) text_copy(d->reason, sizeof(d->reason), "DriverUnbound");
        }
        node->now += SECOND;
        assert_int_equal(judge_scan(&node->judge, &node->config, &node->told, &found, node->now, node->now,
                                    &callbacks),
                         0);
        inventory_free(&node->told);
        node->told = found;
}

/* "healthy Reason total/healthy", of one device and its group. */
static void expect(const struct node *node, const char *id, const char *health, const char *reason,
                   unsigned total, unsigned healthy)
{
        const struct device *d = inventory_find_device(&node->told, id);
        const struct device_group *g = inventory_find_group(&node->told, "test-0");

        if (d == NULL)
                fail_msg("%s is not told", id);
        if (strcmp(device_health_name(d->health), health) != 0 || strcmp(d->reason, reason) != 0)
                fail_msg("%s: want %s %s, got %s %s", id, health, reason, device_health_name(d->health),
                         d->reason);
        if ((g != NULL ? g->total : 0) != total || (g != NULL ? g->healthy : 0) != healthy)
                fail_msg("%s: want %u/%u, got %u/%u", id, total, healthy, g != NULL ? g->total : 0,
                         g != NULL ? g->healthy : 0);
}

static void a_healthy_device_is_usable_at_once(void **state)
{
        struct node node;

        (void) state;
        start(&node, "");
        scan(&node, "hh");
        expect(&node, "dev-1", "healthy", "", 2, 2);
        assert_int_equal(node.changes, 2);
        scan(&node, "hh");
        assert_int_equal(node.changes, 2);
        end(&node);
}

static void a_device_that_leaves_is_gone_and_comes_back(void **state)
{
        struct node node;

        (void) state;
        start(&node, "health: {recoverySeconds: 5}");
        scan(&node, "hh");
        scan(&node, "h-");
        expect(&node, "dev-1", "unhealthy", "Gone", 2, 1);
        scan(&node, "hh");
        expect(&node, "dev-1", "unhealthy", "Returned", 2, 1); /* present, and not yet believed */
        assert_true(node.judge.recovering);
        for (int i = 0; i < 5; i++)
                scan(&node, "hh");
        expect(&node, "dev-1", "healthy", "", 2, 2);
        end(&node);
}

static void a_whole_group_that_leaves_is_still_told(void **state)
{
        struct node node;

        (void) state;
        start(&node, "");
        scan(&node, "hh");
        scan(&node, "");
        expect(&node, "dev-0", "unhealthy", "Gone", 2, 0);
        scan(&node, "");
        expect(&node, "dev-0", "unhealthy", "Gone", 2, 0);
        end(&node);
}

/* A group is told on with its last device, which needs no address for that; one that nobody knows is not. */
static void a_group_goes_on_with_a_device_that_left(void **state)
{
        struct judge judge = { 0 };
        struct agent_config config;
        struct inventory told[4];

        (void) state;
        assert_int_equal(agent_config_parse("none", NULL, 0, &config, NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(told); i++)
                inventory_init(&told[i]);
        (void) text_copy(inventory_add_group(&told[1])->name, DEVICE_GROUP_BYTES, "test-0");
        told[1].groups[0].shares = 4;
        (void) text_copy(inventory_add_device(&told[1])->id, DEVICE_ID_BYTES, "a");
        (void) text_copy(told[1].devices[0].group, DEVICE_GROUP_BYTES, "test-0");
        told[1].devices[0].health = HEALTH_HEALTHY;
        for (size_t i = 1; i < ARRAY_SIZE(told); i++) {
                const struct judge_callbacks nobody = { .userdata = NULL };

                assert_int_equal(judge_scan(&judge, &config, &told[i == 3 ? 0 : i - 1], &told[i], i * SECOND,
                                            i * SECOND, &nobody),
                                 0);
                assert_int_equal(told[i].device_count, 1);
        }
        assert_string_equal(told[2].devices[0].reason, "Gone");
        assert_int_equal(told[2].groups[0].shares, 4);
        assert_int_equal(told[2].groups[0].total, 1);
        assert_int_equal(told[3].group_count, 0); /* what was told before has no such group */
        for (size_t i = 0; i < ARRAY_SIZE(told); i++)
                inventory_free(&told[i]);
        agent_config_free(&config);
        judge_free(&judge);
        judge_free(NULL);
}

static void a_gone_device_is_forgotten_by_an_operators_word(void **state)
{
        struct node node;

        (void) state;
        start(&node, "");
        scan(&node, "hh");
        scan(&node, "h-");
        assert_int_equal(judge_clear(&node.judge, "dev-7"), -ENOENT);
        assert_int_equal(judge_clear(&node.judge, "dev-1"), 0);
        scan(&node, "h-");
        assert_null(inventory_find_device(&node.told, "dev-1"));
        expect(&node, "dev-0", "healthy", "", 1, 1);
        end(&node);
}

static void a_flapping_device_is_quarantined_until_cleared(void **state)
{
        struct node node;

        (void) state;
        start(&node, "health: {recoveryProbes: 1, recoverySeconds: 0}");
        scan(&node, "h");
        scan(&node, "u");
        scan(&node, "h");
        scan(&node, "u");
        expect(&node, "dev-0", "unhealthy", "DriverUnbound", 1, 0);
        scan(&node, "h");
        expect(&node, "dev-0", "quarantined", "Flapping", 1, 0);
        scan(&node, "h");
        expect(&node, "dev-0", "quarantined", "Flapping", 1, 0);
        scan(&node, "-");
        expect(&node, "dev-0", "unhealthy", "Gone", 1, 0);
        scan(&node, "h");
        assert_int_equal(judge_clear(&node.judge, "dev-0"), 0);
        scan(&node, "h");
        expect(&node, "dev-0", "healthy", "", 1, 1);
        end(&node);
}

static void assigned_and_excluded_devices_are_in_no_group(void **state)
{
        struct node node;

        (void) state;
        start(&node, "");
        scan(&node, "hxa");
        expect(&node, "dev-1", "unknown", "Excluded", 1, 1);
        expect(&node, "dev-2", "unknown", "Assigned", 1, 1);
        scan(&node, "h--"); /* one that is kept out and leaves was nobody's */
        assert_null(inventory_find_device(&node.told, "dev-1"));
        assert_null(inventory_find_device(&node.told, "dev-2"));
        scan(&node, "ax");
        expect(&node, "dev-0", "unknown", "Assigned", 0, 0);
        assert_null(inventory_find_group(&node.told, "test-0"));
        scan(&node, "h");
        expect(&node, "dev-0", "healthy", "", 1, 1);
        end(&node);
}

static void of_two_devices_with_one_id_neither_is_believed(void **state)
{
        struct node node;

        (void) state;
        start(&node, "");
        scan(&node, "hhd");
        expect(&node, "dev-0", "unknown", "DuplicateId", 1, 1);
        expect(&node, "dev-1", "healthy", "", 1, 1);
        end(&node);
}

static void rules_of_the_configuration_decide(void **state)
{
        struct node node;

        (void) state;
        start(&node, "health: {rules: {sysfs: ignore}}");
        scan(&node, "u");
        expect(&node, "dev-0", "healthy", "", 1, 1);
        end(&node);
        start(&node, "health: {rules: {sysfs: degraded}}");
        scan(&node, "u");
        expect(&node, "dev-0", "degraded", "DriverUnbound", 1, 1);
        end(&node);
}

static void faults_are_written_and_read_back(void **state)
{
        char folder[] = "/tmp/remuda-state-XXXXXX", path[64];
        const struct numbers none = { 0 };
        struct state_file_rest rest = { .boot_id = "boot", .generation = 3, .numbers = &none };
        struct state_file loaded;
        struct node node;

        (void) state;
        assert_non_null(mkdtemp(folder));
        (void) text_format(path, sizeof(path), "%s/below/agent.json", folder);
        start(&node, "");
        scan(&node, "hhh");
        assert_int_equal(state_file_save(path, &node.judge, &rest, NULL), 0);
        assert_int_equal(access(path, F_OK), -1); /* nothing to remember */
        scan(&node, "hu-");
        rest.generation = 4;
        rest.kernel_sequence = 9;
        assert_int_equal(state_file_save(path, &node.judge, &rest, NULL), 0);
        assert_int_equal(state_file_load(path, &loaded, NULL), 0);
        assert_string_equal(loaded.boot_id, "boot");
        assert_int_equal(loaded.generation, 4);
        assert_int_equal(loaded.kernel_sequence, 9);
        assert_int_equal(loaded.device_count, 1); /* not the one that left: a restart forgets it */
        assert_string_equal(loaded.devices[0].id, "dev-1");
        assert_int_equal(loaded.devices[0].health.verdict, HEALTH_UNHEALTHY);
        assert_int_equal(loaded.devices[0].health.turn_count, 1);
        assert_true(loaded.devices[0].health.turns[0] == node.now);
        state_file_free(&loaded);
        end(&node);
        (void) unlink(path);
        *strrchr(path, '/') = '\0';
        (void) rmdir(path);
        (void) rmdir(folder);
}

static void a_file_that_is_not_whole_is_discarded(void **state)
{
        static const char *const texts[] = {
                "",
                "{",
                "[]",
                "null",
                "{\"version\":2}",
                "{\"version\":1,\"devices\":[{\"id\":\"x\"}]}",
                "{\"version\":1,\"devices\":[{\"id\":\"x\",\"verdict\":\"quarantined\",\"turns\":[]}]}",
                "{\"version\":1,\"devices\":[{\"id\":\"x\",\"verdict\":\"unhealthy\",\"turns\":[1,2]}]}",
                "{\"version\":1,\"devices\":[{\"id\":\"x\",\"verdict\":\"unhealthy\",\"turns\":[-1]}]}",
                ("{\"version\":1,\"devices\":[{\"id\":\"x\",\"verdict\":\"unhealthy\",\"turns\":"
                 "[9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9,9]}]}"),
        };
        char path[] = "/tmp/remuda-state-XXXXXX";
        int fd = mkstemp(path);

        (void) state;
        assert_true(fd >= 0);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct err err = { 0 };
                struct state_file loaded;

                assert_int_equal(ftruncate(fd, 0), 0);
                assert_int_equal(pwrite(fd, texts[i], strlen(texts[i]), 0), strlen(texts[i]));
                if (state_file_load(path, &loaded, &err) != -EBADMSG || loaded.device_count != 0 ||
                    err.msg[0] == '\0')
                        fail_msg("believed: %s", texts[i]);
        }
        (void) close(fd);
        (void) unlink(path);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_healthy_device_is_usable_at_once),
                cmocka_unit_test(a_device_that_leaves_is_gone_and_comes_back),
                cmocka_unit_test(a_whole_group_that_leaves_is_still_told),
                cmocka_unit_test(a_group_goes_on_with_a_device_that_left),
                cmocka_unit_test(a_gone_device_is_forgotten_by_an_operators_word),
                cmocka_unit_test(a_flapping_device_is_quarantined_until_cleared),
                cmocka_unit_test(assigned_and_excluded_devices_are_in_no_group),
                cmocka_unit_test(of_two_devices_with_one_id_neither_is_believed),
                cmocka_unit_test(rules_of_the_configuration_decide),
                cmocka_unit_test(faults_are_written_and_read_back),
                cmocka_unit_test(a_file_that_is_not_whole_is_discarded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
