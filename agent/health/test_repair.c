/* Repair: which devices are repaired, how often, with which words, and what is made of the program's end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/health/repair.h"
#include "base/cleanup.h"
#include "io/loop.h"
#include "tests/support/patience.h"

#define DEVICES_OF_BED 66

static int reallocs_left = -1; /* -1: as many as are wanted */
void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes)
{
        if (reallocs_left == 0)
                return NULL;
        reallocs_left -= reallocs_left > 0;
        return __real_realloc(old, bytes);
}

struct bed {
        struct agent_config config;
        struct agent_config_repair repair; /* of "nvidia" */
        struct judge_record records[DEVICES_OF_BED], *list[DEVICES_OF_BED];
        struct judge judge;
        struct services services;
        struct repair *repairs;
        const char *held;
        size_t scans, started;
        char said[2048]; /* a line an event, but RepairStarted */
};

static void on_scan(void *userdata, const char *why)
{
        struct bed *bed = userdata;

        assert_string_equal(why, "repair");
        bed->scans++;
}

static void on_event(void *userdata, const char *type, const char *reason, const char *device,
                     const char *sentence)
{
        struct bed *bed = userdata;
        size_t n = strlen(bed->said);

        if (strcmp(reason, "RepairStarted") == 0)
                bed->started++;
        else
                (void) snprintf(bed->said + n, sizeof(bed->said) - n, "%s %s %s: %s\n", type, reason, device,
                                sentence);
}

static bool on_is_held(void *userdata, const char *id)
{
        const struct bed *bed = userdata;

        return bed->held != NULL && strcmp(bed->held, id) == 0;
}

/* @count devices of "nvidia", all of them bad, and a program of the shell for them. */
static void bed_make(struct bed *bed, size_t count, const char *script)
{
        *bed = (struct bed){ .judge = { .records = bed->list, .record_count = count } };
        bed->repair = (struct agent_config_repair){
                .vendor = "nvidia", .path = "/bin/sh", .args = { "-c" }, .arg_count = 2, .max_per_day = 100
        };
        assert_true(text_copy(bed->repair.args[1], sizeof(bed->repair.args[1]), script));
        bed->config = (struct agent_config){ .repairs = &bed->repair, .repair_count = 1 };
        for (size_t i = 0; i < count; i++) {
                struct device *d = &bed->records[i].device;

                bed->list[i] = &bed->records[i];
                bed->records[i].judged = bed->records[i].health.bad = true;
                d->health = HEALTH_UNHEALTHY;
                d->ordinal = (unsigned) i;
                assert_true(text_format(d->id, sizeof(d->id), "GPU-%zu", i));
                assert_true(text_copy(d->vendor, sizeof(d->vendor), "nvidia"));
                assert_true(text_copy(d->pci, sizeof(d->pci), "0000:18:00.0"));
                assert_true(text_copy(d->reason, sizeof(d->reason), "Hot"));
        }
        assert_int_equal(loop_new(&bed->services.loop, NULL), 0);
        bed->services.config = &bed->config;
        bed->services.scan = on_scan;
        bed->services.event = on_event;
        bed->services.userdata = bed;
        assert_int_equal(repair_new(&bed->services, on_is_held, &bed->repairs, NULL), 0);
}

static void bed_free(struct bed *bed)
{
        repair_free(bed->repairs);
        assert_null(sd_event_unref(bed->services.loop));
}

static void wait_for_scans(struct bed *bed, size_t count)
{
        uint64_t until = loop_now_usec(bed->services.loop) + patience_usec();

        while (bed->scans < count && loop_now_usec(bed->services.loop) < until)
                assert_true(sd_event_run(bed->services.loop, 1000000) >= 0);
        assert_int_equal(bed->scans, count);
}

/* clang-format off */
static const struct {
        const char *script, *said;
} programs[] = {
        { "test {id},{pci},{index},{vendor},{reason},{x} = GPU-0,0000:18:00.0,0,nvidia,Hot,{x}",
          "Normal RepairSucceeded GPU-0: the repair program ended well; the device must now answer well for a while\n" },
        { "test $REMUDA_DEVICE,$REMUDA_PCI,$REMUDA_REASON = GPU-0,0000:18:00.0,Hot && ! read line",
          "Normal RepairSucceeded GPU-0: the repair program ended well; the device must now answer well for a while\n" },
        { "exit 3",      "Warning RepairFailed GPU-0: the repair program ended with exit status 3\n" },
        { "kill -15 $$", "Warning RepairFailed GPU-0: the repair program ended with signal 15\n" },
};
/* clang-format on */

static void a_program_is_told_the_device_and_its_end_is_told(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                struct text page = { 0 };
                struct bed bed;

                bed_make(&bed, 1, programs[i].script);
                repair_consider(bed.repairs, &bed.judge);
                assert_int_equal(bed.started, 1);
                wait_for_scans(&bed, 1);
                assert_string_equal(bed.said, programs[i].said);
                repair_metrics(bed.repairs, &page);
                assert_non_null(strstr(page.data, bed.said[0] == 'N' ? "{result=\"succeeded\"} 1\n"
                                                                     : "{result=\"failed\"} 1\n"));
                text_free(&page);
                bed_free(&bed);
        }
}

static void only_a_bad_device_that_nobody_holds_is_repaired(void **state)
{
        struct bed bed;

        (void) state;
        bed_make(&bed, 6, "exit 0");
        bed.records[0].judged = false;
        bed.records[1].health.bad = false;
        bed.records[2].device.health = HEALTH_DEGRADED;
        bed.held = "GPU-3";
        (void) text_copy(bed.records[4].device.vendor, sizeof(bed.records[4].device.vendor), "amd");
        repair_consider(bed.repairs, &bed.judge);
        assert_int_equal(bed.started, 1);
        wait_for_scans(&bed, 1);
        assert_non_null(strstr(bed.said, " GPU-5: "));
        bed_free(&bed);
}

static void one_is_repaired_at_a_time_and_not_too_often(void **state)
{
        struct bed bed;

        (void) state;
        bed_make(&bed, 2, "exit 0");
        bed.repair.max_per_day = 1;
        for (size_t i = 1; i <= 2; i++) {
                repair_consider(bed.repairs, &bed.judge);
                repair_consider(bed.repairs, &bed.judge); /* it runs */
                assert_int_equal(bed.started, i);
                wait_for_scans(&bed, i);
        }
        repair_consider(bed.repairs, &bed.judge); /* each had its one */
        assert_int_equal(bed.started, 2);
        bed_free(&bed);
}

static void a_program_that_does_not_start_is_said(void **state)
{
        struct bed bed;

        (void) state;
        bed_make(&bed, DEVICES_OF_BED, "");
        assert_true(text_copy(bed.repair.path, sizeof(bed.repair.path), "/none/such"));
        repair_consider(bed.repairs, &bed.judge);
        assert_int_equal(bed.started, 64); /* so many tries a day are remembered */
        assert_int_equal(
                strncmp(bed.said, "Warning RepairFailed GPU-0: /none/such: No such file or directory\n", 66),
                0);
        assert_int_equal(bed.scans, 0);
        bed_free(&bed);
}

static void a_program_that_cannot_be_watched_is_no_last_one(void **state)
{
        struct bed bed;
        sigset_t child;

        (void) state;
        bed_make(&bed, 1, "sleep 60");
        (void) sigemptyset(&child);
        (void) sigaddset(&child, SIGCHLD);
        assert_int_equal(sigprocmask(SIG_UNBLOCK, &child, NULL), 0); /* the loop refuses to watch, then */
        repair_consider(bed.repairs, &bed.judge);
        assert_int_equal(sigprocmask(SIG_BLOCK, &child, NULL), 0);
        assert_string_equal(bed.said, "Warning RepairFailed GPU-0: /bin/sh: Device or resource busy\n");
        assert_true(text_copy(bed.repair.args[1], sizeof(bed.repair.args[1]), "exit 0"));
        repair_consider(bed.repairs, &bed.judge);
        assert_int_equal(bed.started, 2);
        wait_for_scans(&bed, 1);
        bed_free(&bed);
}

/* Without its second word the shell of this test would wait for orders. */
static void a_program_that_lacks_a_word_is_not_run(void **state)
{
        struct bed bed;

        (void) state;
        bed_make(&bed, 1, "exit 0");
        for (int words = 0; words < 8; words++) { /* two, and six variables */
                bed.said[0] = '\0';
                reallocs_left = words;
                repair_consider(bed.repairs, &bed.judge);
                reallocs_left = -1;
                assert_string_equal(bed.said,
                                    "Warning RepairFailed GPU-0: /bin/sh: Cannot allocate memory\n");
        }
        repair_consider(bed.repairs, &bed.judge);
        wait_for_scans(&bed, 1);
        bed_free(&bed);
}

static void a_repair_ends_with_the_agent(void **state)
{
        struct bed bed;

        (void) state;
        bed_make(&bed, 1, "sleep 60");
        repair_consider(bed.repairs, &bed.judge);
        assert_int_equal(bed.started, 1);
        bed_free(&bed);
        repair_free(NULL);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_program_is_told_the_device_and_its_end_is_told),
                cmocka_unit_test(only_a_bad_device_that_nobody_holds_is_repaired),
                cmocka_unit_test(one_is_repaired_at_a_time_and_not_too_often),
                cmocka_unit_test(a_program_that_does_not_start_is_said),
                cmocka_unit_test(a_program_that_cannot_be_watched_is_no_last_one),
                cmocka_unit_test(a_program_that_lacks_a_word_is_not_run),
                cmocka_unit_test(a_repair_ends_with_the_agent),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
