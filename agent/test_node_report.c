/* Report: what is published reaches its file, a store that refuses is said, and no event is told twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/inventory/summary.h"
#include "agent/node_report.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "tests/support/dir_store.h"
#include "tests/support/patience.h"
#include "tests/support/refused_timers.h"

#define NODE "node-1"

struct bed {
        struct dir_store *directory; /* also the loop */
        struct inventory published;
        struct log log;
        struct services services;
        struct node_report *report;
};

static int set_up(void **state)
{
        struct bed *bed = calloc(1, sizeof(*bed));

        assert_non_null(bed);
        bed->directory = dir_store_new();
        inventory_init(&bed->published);
        (void) text_copy(bed->published.node, sizeof(bed->published.node), NODE);
        log_init(&bed->log, "test", NULL, NULL);
        bed->services = (struct services){
                .loop = bed->directory->loop, .log = &bed->log, .published = &bed->published, .userdata = bed
        };
        *state = bed;
        return 0;
}

static int tear_down(void **state)
{
        struct bed *bed = *state;

        node_report_free(bed->report);
        inventory_free(&bed->published);
        dir_store_free(bed->directory);
        free(bed);
        return 0;
}

static int begin(struct bed *bed, const char *folder, struct err *err)
{
        static char store[128]; /* is borrowed */

        assert_true(text_format(store, sizeof(store), "%s%s", folder,
                                strcmp(folder, "dir:") == 0 ? bed->directory->path : ""));
        return node_report_new(&bed->services, NODE, store, NULL, &bed->report, err);
}

static struct node_report_status status_of(const struct bed *bed)
{
        struct node_report_status status;

        node_report_status(bed->report, &status);
        return status;
}

static void wait_until_answered(struct bed *bed, uint64_t answers)
{
        uint64_t until = loop_now_usec(bed->services.loop) + patience_usec();

        while (status_of(bed).writes_total + status_of(bed).failures_total < answers &&
               loop_now_usec(bed->services.loop) < until)
                assert_true(sd_event_run(bed->services.loop, 10000) >= 0);
        assert_int_equal(status_of(bed).writes_total + status_of(bed).failures_total, answers);
}

static void what_is_published_comes_into_the_store(void **state)
{
        struct bed *bed = *state;
        CLEANUP(free_p) char *file = NULL;

        assert_int_equal(begin(bed, "dir:", NULL), 0);
        assert_true(status_of(bed).enabled && status_of(bed).in_step);
        bed->published.generation = 7;
        node_report_changed(bed->report);
        assert_false(status_of(bed).in_step);
        node_report_changed(bed->report); /* while it is being written: once more, and not at once */
        wait_until_answered(bed, 1);
        file = dir_store_read(bed->directory, NODE ".nodeaccelerators.json");
        if (strstr(file, "\"generation\": 7") == NULL && strstr(file, "\"generation\":7") == NULL)
                fail_msg("%s", file);
        assert_false(status_of(bed).in_step);
        wait_until_answered(bed, 2);
        assert_true(status_of(bed).in_step);
        node_report_changed(bed->report); /* a moment after the last: it waits its second */
        assert_false(status_of(bed).in_step);
        assert_int_equal(status_of(bed).writes_total, 2);
        assert_int_equal(status_of(bed).failures_total, 0);
}

/* Where the system refuses one later, what waits its second is written all the same. */
static void it_has_its_timer_from_the_start(void **state)
{
        struct bed *bed = *state;
        struct err err = { 0 };

        timers_refused = true;
        assert_true(begin(bed, "dir:", &err) < 0);
        node_report_free(TAKE(bed->report));
        timers_refused = false;
        assert_int_equal(begin(bed, "dir:", NULL), 0);
        timers_refused = true;
        node_report_changed(bed->report);
        node_report_changed(bed->report); /* while it is being written: once more */
        wait_until_answered(bed, 2);
        timers_refused = false;
        assert_true(status_of(bed).in_step);
}

static bool serves;

static bool on_serves(void *userdata)
{
        (void) userdata;
        return serves;
}

static void run_for(struct bed *bed, uint64_t usec)
{
        for (uint64_t until = loop_now_usec(bed->services.loop) + usec;
             loop_now_usec(bed->services.loop) < until;)
                assert_true(sd_event_run(bed->services.loop, 10000) >= 0);
}

/* Pods would be sent to a plugin that the kubelet does not know yet. */
static void the_first_is_told_when_the_kubelet_has_its_lists(void **state)
{
        struct bed *bed = *state;

        serves = false;
        bed->services.serves = on_serves;
        assert_int_equal(begin(bed, "dir:", NULL), 0);
        node_report_changed(bed->report);
        run_for(bed, 300000);
        assert_int_equal(status_of(bed).writes_total, 0);
        assert_false(status_of(bed).in_step);
        serves = true;
        wait_until_answered(bed, 1);
        serves = false; /* a kubelet that is started again keeps nobody from knowing of a fault */
        node_report_changed(bed->report);
        wait_until_answered(bed, 2);
}

/* ... or never comes to it. */
static void a_kubelet_that_takes_no_lists_is_not_waited_for(void **state)
{
        struct bed *bed = *state;
        uint64_t began;

        serves = false;
        bed->services.serves = on_serves;
        assert_int_equal(begin(bed, "dir:", NULL), 0);
        began = loop_now_usec(bed->services.loop);
        node_report_changed(bed->report);
        wait_until_answered(bed, 1);
        assert_true(loop_now_usec(bed->services.loop) - began >= NODE_REPORT_FIRST_USEC - 1000000);
}

/* A machine that is busy may be late for once; a report that waits its second is so each time. */
static void who_leaves_says_so_at_once(void **state)
{
        struct bed *bed = *state;
        CLEANUP(free_p) char *file = NULL;
        uint64_t took_usec = UINT64_MAX, began_usec;

        assert_int_equal(begin(bed, "dir:", NULL), 0);
        node_report_leave(bed->report); /* nothing was told yet: there is nothing to take back */
        assert_true(status_of(bed).in_step);
        for (int i = 0; i < 5 && took_usec >= 900000; i++) {
                node_report_free(TAKE(bed->report));
                assert_int_equal(begin(bed, "dir:", NULL), 0);
                node_report_changed(bed->report);
                node_report_leave(bed->report); /* while the first is under way */
                began_usec = loop_now_usec(bed->services.loop);
                wait_until_answered(bed, 2);
                assert_int_equal(status_of(bed).writes_total, 2);
                took_usec = loop_now_usec(bed->services.loop) - began_usec;
        }
        assert_true(took_usec < 900000); /* it does not wait its second */
        file = dir_store_read(bed->directory, NODE ".nodeaccelerators.json");
        if (strstr(file, SUMMARY_LEAVES) == NULL)
                fail_msg("%s", file);
}

/* Its last word is tried again while there is time for it, not only seconds after its end. */
static void who_leaves_tries_again_soon(void **state)
{
        struct bed *bed = *state;
        char path[160];
        uint64_t until, began_usec;

        assert_int_equal(begin(bed, "dir:", NULL), 0);
        assert_true(
                text_format(path, sizeof(path), "%s/" NODE ".nodeaccelerators.json", bed->directory->path));
        assert_int_equal(mkdir(path, 0755), 0); /* no file can take its place */
        node_report_changed(bed->report);
        node_report_leave(bed->report);
        until = loop_now_usec(bed->services.loop) + patience_usec();
        while (status_of(bed).failures_total == 0 && loop_now_usec(bed->services.loop) < until)
                assert_true(sd_event_run(bed->services.loop, 10000) >= 0);
        assert_true(status_of(bed).failures_total > 0);
        assert_int_equal(rmdir(path), 0);
        began_usec = loop_now_usec(bed->services.loop);
        while (status_of(bed).writes_total == 0 && loop_now_usec(bed->services.loop) < until)
                assert_true(sd_event_run(bed->services.loop, 10000) >= 0);
        assert_int_equal(status_of(bed).writes_total, 1);
        assert_true(loop_now_usec(bed->services.loop) - began_usec < 4000000);
}

static void no_store_is_in_step_with_everything(void **state)
{
        struct bed *bed = *state;

        assert_int_equal(begin(bed, "none", NULL), 0);
        node_report_changed(bed->report);
        assert_true(status_of(bed).in_step);
        assert_false(status_of(bed).enabled);
        node_report_free(NULL);
}

static void a_store_that_cannot_be_is_refused(void **state)
{
        struct bed *bed = *state;
        struct err err = { 0 };

        assert_int_equal(begin(bed, "etcd", &err), -EINVAL);
        assert_int_equal(strncmp(err.msg, "--store etcd: ", 14), 0);
        node_report_free(TAKE(bed->report));
}

static void an_event_is_told_once_in_a_while(void **state)
{
        static const struct {
                const char *device, *reason;
                bool told;
        } events[] = {
                { "a", "DeviceUnhealthy", true },  { "a", "DeviceUnhealthy", false },
                { "b", "DeviceUnhealthy", true },  { "a", "DeviceHealthy", true },
                { NULL, "ScanFailed", true },      { NULL, "ScanFailed", false },
                { "a", "DeviceUnhealthy", false },
        };
        struct bed *bed = *state;
        uint64_t told = 0;

        assert_int_equal(begin(bed, "none", NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
                node_report_event(bed->report, "Warning", events[i].reason, events[i].device, "it says so");
                told += events[i].told;
                if (status_of(bed).events_total != told)
                        fail_msg("event %zu", i);
        }
        for (unsigned i = 0; i < 256; i++) { /* so many are remembered */
                char device[16];

                assert_true(text_format(device, sizeof(device), "%u", i));
                node_report_event(bed->report, "Normal", "DeviceHealthy", device, "healthy again");
        }
        node_report_event(bed->report, "Warning", "DeviceUnhealthy", "a", "it says so");
        assert_int_equal(status_of(bed).events_total, told + 256 + 1);
}

static void events_go_to_the_store(void **state)
{
        struct bed *bed = *state;
        CLEANUP(free_p) char *events = NULL;

        assert_int_equal(begin(bed, "dir:", NULL), 0);
        node_report_event(bed->report, "Warning", "DeviceUnhealthy", "GPU-0", "Hot: 120 degrees");
        node_report_event(bed->report, "Normal", "ScanDone", NULL, "all well");
        for (uint64_t until = loop_now_usec(bed->services.loop) + patience_usec();
             loop_now_usec(bed->services.loop) < until;) {
                free(events);
                events = dir_store_read(bed->directory, "events.jsonl");
                if (strstr(events, "all well") != NULL)
                        break;
                assert_true(sd_event_run(bed->services.loop, 10000) >= 0);
        }
        assert_non_null(strstr(events, "device GPU-0: Hot: 120 degrees"));
        assert_non_null(strstr(events, "all well"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_is_published_comes_into_the_store, set_up, tear_down),
                cmocka_unit_test_setup_teardown(it_has_its_timer_from_the_start, set_up, tear_down),
                cmocka_unit_test_setup_teardown(the_first_is_told_when_the_kubelet_has_its_lists, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_kubelet_that_takes_no_lists_is_not_waited_for, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(who_leaves_says_so_at_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(who_leaves_tries_again_soon, set_up, tear_down),
                cmocka_unit_test_setup_teardown(no_store_is_in_step_with_everything, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_store_that_cannot_be_is_refused, set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_event_is_told_once_in_a_while, set_up, tear_down),
                cmocka_unit_test_setup_teardown(events_go_to_the_store, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
