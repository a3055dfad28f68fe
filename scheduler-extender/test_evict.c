/* Who is asked to go for an emergency, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/reserve.h"
#include "tests/support/extender_bed.h"

#define POD_ON(NAME, LABELS, NODE, CHIPS)                                                                    \
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" NAME                             \
        "\",\"namespace\":\"default\",\"uid\":\"u-" NAME "\",\"labels\":{" LABELS                            \
        "}},\"spec\":{\"nodeName\":\"" NODE                                                                  \
        "\",\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"" CHIPS          \
        "\"}}}]}}"
#define EMERGENCY POD_ON("q", "\"remuda.dev/urgency\":\"emergency\"", "", "1")

#define HAS_LOOKED(b)                                                                                        \
        ((b)->extender->thought_generation == cluster_ledger((b)->extender->cluster)->generation)

static bool said(const struct extender_bed *b, const char *words)
{
        return b->said.data != NULL && strstr(b->said.data, words) != NULL;
}

static const struct ledger_pod *pod_of(const struct extender_bed *b, const char *name)
{
        return ledger_pods_find(cluster_ledger(b->extender->cluster), "default", name);
}

/* Two full nodes of others, and a reserved one that a borrower has. */
static struct extender_bed *begin_lent(void)
{
        struct extender_bed *b = extender_bed_new();

        b->options.server.emergency_namespaces = "*";
        dir_store_remove(b->folder, "p.json");
        dir_store_remove(b->folder, "q.json");
        dir_store_write(b->folder, "r.json", EXTENDER_BED_INVENTORY_OF("r", "reserved", "H100"));
        dir_store_write(b->folder, "on-a.json", POD_ON("on-a", "", "a", "8"));
        dir_store_write(b->folder, "on-b.json", POD_ON("on-b", "", "b", "8"));
        dir_store_write(b->folder, "one.json", POD_ON("one", "", "r", "8"));
        extender_bed_open(b);
        extender_bed_ready(b);
        EXTENDER_BED_WAIT(b, b->extender->was_ready);
        return b;
}

/* Another replica's, from now on. */
static int take_the_lead(struct extender_bed *b)
{
        char path[120];
        int fd;

        (void) text_format(path, sizeof(path), "%s/.remuda-extender.lock", b->folder->path);
        assert_int_equal(unlink(path), 0);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
        assert_int_equal(flock(fd, LOCK_EX), 0);
        EXTENDER_BED_WAIT(b, !leader_leads(b->extender->leader));
        return fd;
}

static void who_takes_the_lead_looks_at_those_who_wait(void **state)
{
        struct extender_bed *b = begin_lent();
        int lead = take_the_lead(b);

        (void) state;
        extender_bed_to_memory(b);
        memory_store_merge(b->memory, "Pod default/q", EMERGENCY);
        EXTENDER_BED_WAIT(b, pod_of(b, "q") != NULL && HAS_LOOKED(b));
        assert_false(said(b, "take-back"));
        assert_int_equal(close(lead), 0);
        EXTENDER_BED_WAIT(b, memory_store_count(b->memory, "refresh") == 1 && HAS_LOOKED(b));
        memory_store_read(b->memory); /* nothing has changed */
        EXTENDER_BED_WAIT(b, said(b, "take-back pod=default/q victims=1"));
        extender_bed_free(b);
}

/* The answers to all tries wait when the store is closed. */
static void nobody_goes_at_the_end(void **state)
{
        static const int results[] = { 0, -EBUSY };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
                struct extender_bed *b = begin_lent();

                extender_bed_to_memory(b);
                memory_store_merge(b->memory, "Pod default/q", EMERGENCY);
                memory_store_tell(b->memory);
                if (results[i] != 0)
                        memory_store_refuse(b->memory, "try Pod", results[i], "a budget");
                (void) reserve_update(b->extender, extender_now(b->extender));
                assert_int_equal(memory_store_count(b->memory, "try Pod default/one"), 1);
                extender_free(b->extender);
                b->extender = NULL;
                assert_false(said(b, "\nevict pod="));
                assert_false(said(b, "\nspare pod="));
                extender_bed_free(b);
        }
}

/* clang-format off */
static const struct { const char *what, *change; unsigned evicted; } changes[] = {
        { "it still waits",              "{\"metadata\":{\"labels\":{\"own\":\"x\"}}}",                            1 },
        { "it is gone",                  NULL,                                                                   0 },
        { "it is bound to another node", "{\"spec\":{\"nodeName\":\"elsewhere\"}}",                                0 },
        { "it goes",                     "{\"metadata\":{\"deletionTimestamp\":\"2026-11-21T10:00:00Z\"}}",        0 },
        { "it has ended",                "{\"status\":{\"phase\":\"Failed\"}}",                                    0 },
        { "another one has its name",    "{\"metadata\":{\"uid\":\"u-other\",\"labels\":{\"remuda.dev/urgency\":\"\"}}}", 0 },
};
/* clang-format on */

static void nobody_goes_for_one_that_waits_no_longer(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
                struct extender_bed *b = begin_lent();

                extender_bed_to_memory(b);
                memory_store_merge(b->memory, "Pod default/q", EMERGENCY);
                memory_store_merge(b->memory, "Pod default/one", POD_ON("one", "", "r", "8"));
                memory_store_tell(b->memory);
                (void) reserve_update(b->extender, extender_now(b->extender));
                assert_int_equal(memory_store_count(b->memory, "try Pod default/one"), 1);
                if (changes[i].change == NULL)
                        memory_store_drop(b->memory, "Pod default/q");
                else
                        memory_store_merge(b->memory, "Pod default/q", changes[i].change);
                memory_store_tell(b->memory);
                if (changes[i].evicted == 0)
                        EXTENDER_BED_WAIT(b, pod_of(b, "one")->evicted_usec == 0);
                else
                        EXTENDER_BED_WAIT(b, b->extender->metrics.evictions == changes[i].evicted);
                if (memory_store_count(b->memory, "evict") != changes[i].evicted)
                        fail_msg("%s: %s", changes[i].what, b->said.data);
                extender_bed_free(b);
        }
}

/* Nothing else changes that would have it looked at again. */
static void who_is_refused_is_followed_by_another(void **state)
{
        static const int refusals[] = { -EBUSY, -EAGAIN, -EPERM }; /* of budgets, and of admission */

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                struct extender_bed *b = begin_lent();

                extender_bed_to_memory(b);
                memory_store_refuse(b->memory, "try Pod default/one", refusals[i], "the budget keep");
                memory_store_merge(b->memory, "NodeAccelerators s",
                                   EXTENDER_BED_INVENTORY_OF("s", "reserved", "H100"));
                memory_store_merge(b->memory, "Pod default/two", POD_ON("two", "", "s", "8"));
                memory_store_merge(b->memory, "Pod default/q", EMERGENCY);
                EXTENDER_BED_WAIT(b, said(b, "spare pod=default/one the budget keep"));
                for (uint64_t until = clock_monotonic_usec() + patience_usec();
                     b->extender->metrics.evictions == 0;) {
                        assert_true(clock_monotonic_usec() < until);
                        (void) sd_event_run(b->folder->loop, 10000);
                }
                assert_int_equal(memory_store_count(b->memory, "evict Pod default/two"), 1);
                assert_int_equal(b->extender->metrics.evictions_refused, 1);
                extender_bed_free(b);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(who_takes_the_lead_looks_at_those_who_wait),
                cmocka_unit_test(nobody_goes_at_the_end),
                cmocka_unit_test(nobody_goes_for_one_that_waits_no_longer),
                cmocka_unit_test(who_is_refused_is_followed_by_another),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
