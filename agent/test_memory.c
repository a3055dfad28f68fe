/* Memory: where the state is kept, that a fault outlives a restart, and a place that cannot be written. */
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

#include "agent/memory.h"
#include "base/cleanup.h"
#include "base/text.h"

/* clang-format off */
static const struct {
        const char *state, *directory, *root, *machine;
        bool live;
        const char *path;
} places[] = {
        { NULL,          NULL,           "/",     NULL,     true,  "/var/lib/remuda/agent.json" },
        { NULL,          NULL,           "/host", NULL,     true,  "/var/lib/remuda/agent.json" }, /* of a container */
        { NULL,          NULL,           "/tree", NULL,     false, "/tree/var/lib/remuda/agent.json" },
        { NULL,          NULL,           "/",     "/a.txt", false, "" },
        { NULL,          "/var/lib/x",   "/",     NULL,     true,  "/var/lib/x/agent.json" },
        { NULL,          "/var/lib/x",   "/",     "/a.txt", false, "/var/lib/x/agent.json" },
        { NULL,          "x",            "/",     NULL,     true,  "/var/lib/remuda/agent.json" },
        { "/none/state", "/var/lib/x",   "/",     NULL,     true,  "/none/state" },
        { "none",        "/var/lib/x",   "/",     NULL,     true,  "" },
};
/* clang-format on */

static void a_machine_keeps_its_own_state(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                const struct agent_options options = { .state = places[i].state,
                                                       .root = places[i].root,
                                                       .machine = places[i].machine };
                struct memory memory = { .path = "" };
                struct log log;

                log_init(&log, "test", NULL, NULL);
                assert_int_equal(places[i].directory == NULL
                                         ? unsetenv("STATE_DIRECTORY")
                                         : setenv("STATE_DIRECTORY", places[i].directory, 1),
                                 0);
                memory_open(&memory, &options, places[i].live, &log);
                if (strcmp(memory.path, places[i].path) != 0)
                        fail_msg("row %zu: %s", i, memory.path);
                assert_int_equal(strlen(memory.boot_id), 36);
                memory_close(&memory);
        }
        assert_int_equal(unsetenv("STATE_DIRECTORY"), 0);
}

struct bed {
        char folder[64], path[96];
        struct judge_record record, *list[1];
        struct judge judge;
        struct services services;
        struct log log;
        unsigned events;
};

static void on_event(void *userdata, const char *type, const char *reason, const char *device,
                     const char *sentence)
{
        struct bed *bed = userdata;

        assert_string_equal(type, "Warning");
        assert_string_equal(reason, "StateNotPersisted");
        assert_null(device);
        assert_non_null(strstr(sentence, "faults would not survive a restart: "));
        bed->events++;
}

static int set_up(void **state)
{
        struct bed *bed = calloc(1, sizeof(*bed));

        assert_non_null(bed);
        (void) text_copy(bed->folder, sizeof(bed->folder), "/tmp/test_memory.XXXXXX");
        assert_non_null(mkdtemp(bed->folder));
        assert_true(text_format(bed->path, sizeof(bed->path), "%s/agent.json", bed->folder));
        bed->record = (struct judge_record){ .present = true,
                                             .judged = true,
                                             .health = { .verdict = HEALTH_UNHEALTHY } };
        (void) text_copy(bed->record.device.id, sizeof(bed->record.device.id), "GPU-0");
        bed->record.device.since_usec = 7000000;
        bed->list[0] = &bed->record;
        bed->judge = (struct judge){ .records = bed->list, .record_count = 1 };
        bed->services = (struct services){ .event = on_event, .userdata = bed };
        log_init(&bed->log, "test", NULL, NULL);
        *state = bed;
        return 0;
}

static int tear_down(void **state)
{
        struct bed *bed = *state;

        (void) unlink(bed->path);
        assert_int_equal(rmdir(bed->folder), 0);
        free(bed);
        return 0;
}

static void remember(struct memory *memory, struct bed *bed, const char *path)
{
        const struct agent_options options = { .state = path, .root = "/" };

        *memory = (struct memory){ .path = "" };
        memory_open(memory, &options, true, &bed->log);
}

static void a_fault_outlives_a_restart(void **state)
{
        struct bed *bed = *state;
        struct judge_record again = { .present = true }, other = { .present = true };
        struct memory memory;

        remember(&memory, bed, bed->path);
        assert_false(memory_is_of_this_boot(&memory));
        memory_keep(&memory, &bed->services, &bed->judge, 5, 6);
        assert_int_equal(unlink(bed->path), 0);
        memory_keep(&memory, &bed->services, &bed->judge, 5, 6); /* the same is not written again */
        assert_int_equal(access(bed->path, F_OK), -1);
        bed->record.health.turn_count = 1;
        bed->record.health.turns[0] = 3;
        memory_keep(&memory, &bed->services, &bed->judge, 5, 6);
        memory_close(&memory);

        remember(&memory, bed, bed->path);
        assert_true(memory_is_of_this_boot(&memory));
        assert_int_equal(memory.state.generation, 5);
        (void) text_copy(again.device.id, sizeof(again.device.id), "GPU-0");
        (void) text_copy(other.device.id, sizeof(other.device.id), "GPU-1");
        memory_recall(&memory, &again);
        memory_recall(&memory, &other);
        assert_true(again.health.waiting && again.health.saved == HEALTH_UNHEALTHY);
        assert_int_equal(again.device.since_usec, 7000000);
        assert_int_equal(again.device.health, HEALTH_UNHEALTHY);
        assert_false(other.health.waiting);
        memory_close(&memory);
        assert_int_equal(bed->events, 0);
}

static void numbers_are_of_one_boot(void **state)
{
        struct bed *bed = *state;
        struct numbers_entry *entry = calloc(1, sizeof(*entry));
        struct memory memory;

        assert_non_null(entry);
        *entry = (struct numbers_entry){ "nvidia", "GPU-7", "0000:18:00.0", 7 };
        remember(&memory, bed, bed->path);
        memory.state.numbers = (struct numbers){ .entries = entry, .count = 1 };
        memory_keep(&memory, &bed->services, &bed->judge, 1, 1);
        memory_close(&memory);
        remember(&memory, bed, bed->path);
        assert_int_equal(memory.state.numbers.count, 1);
        assert_int_equal(memory.state.numbers.entries[0].index, 7);
        memory.boot_id[0] ^= 1; /* and written by another boot */
        bed->record.health.turns[0]++;
        memory_keep(&memory, &bed->services, &bed->judge, 1, 1);
        memory_close(&memory);
        remember(&memory, bed, bed->path);
        assert_int_equal(memory.state.device_count, 1);
        assert_int_equal(memory.state.numbers.count, 0);
        memory_close(&memory);
}

static void a_state_of_no_use_is_discarded(void **state)
{
        struct bed *bed = *state;
        FILE *file = fopen(bed->path, "we");
        struct memory memory;

        assert_non_null(file);
        assert_true(fputs("{\"version\":9}", file) >= 0);
        assert_int_equal(fclose(file), 0);
        remember(&memory, bed, bed->path);
        assert_int_equal(memory.state.device_count, 0);
        memory_keep(&memory, &bed->services, &bed->judge, 1, 1); /* and replaced */
        memory_close(&memory);
        remember(&memory, bed, bed->path);
        assert_int_equal(memory.state.device_count, 1);
        memory_close(&memory);
}

static void what_cannot_be_kept_is_said_and_not_tried_at_once(void **state)
{
        struct bed *bed = *state;
        struct memory memory;

        remember(&memory, bed, "/proc/none/agent.json");
        memory_keep(&memory, &bed->services, &bed->judge, 1, 1);
        assert_int_equal(bed->events, 1);
        memory_keep(&memory, &bed->services, &bed->judge, 1, 1);
        assert_int_equal(bed->events, 1);
        memory_close(&memory);
        remember(&memory, bed, "none");
        memory_keep(&memory, &bed->services, &bed->judge, 1, 1);
        assert_int_equal(bed->events, 1);
        memory_close(&memory);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_machine_keeps_its_own_state),
                cmocka_unit_test_setup_teardown(a_fault_outlives_a_restart, set_up, tear_down),
                cmocka_unit_test_setup_teardown(numbers_are_of_one_boot, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_state_of_no_use_is_discarded, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_cannot_be_kept_is_said_and_not_tried_at_once, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
