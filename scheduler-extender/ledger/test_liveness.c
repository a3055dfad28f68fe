/* Outages and clocks against nodes that renew, in virtual time: silence is believed of one, never of most. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler-extender/ledger/liveness.h"

#define SECOND UINT64_C(1000000)
#define GRACE  (60 * SECOND)
#define NODES  9
#define DAY    (24 * 3600)

/* A cluster of nodes that write a Lease every ten seconds, each at its own second, by its own clock. */
struct world {
        struct roster roster;
        struct liveness liveness;
        struct liveness_signs signs;
        int64_t clock_off_sec[NODES];
        uint64_t now, written[NODES]; /* what stands in the Leases, by each node's clock */
        bool dead[NODES], server_reads, server_writes, stopped;
        uint32_t lost, silent; /* at the last look */
        bool ever_lost[NODES];
};

static void world_new(struct world *w)
{
        *w = (struct world){ .server_reads = true, .server_writes = true, .now = 1000 * SECOND };
        for (unsigned i = 0; i < NODES; i++) {
                char name[8];

                (void) snprintf(name, sizeof(name), "n%u", i);
                assert_int_equal(roster_add(&w->roster, name, strlen(name)), i);
        }
}

static void world_free(struct world *w)
{
        roster_free(&w->roster);
        liveness_free_signs(&w->signs);
}

static void nodes_write(struct world *w)
{
        for (unsigned i = 0; i < NODES; i++)
                if (!w->dead[i] && w->server_writes && (w->now / SECOND + i) % 10 == 0)
                        w->written[i] = (w->now / SECOND) + (uint64_t) w->clock_off_sec[i];
}

static void watcher_looks(struct world *w)
{
        if (w->stopped)
                return;
        for (unsigned i = 0; i < NODES && w->server_reads; i++) {
                char name[8];

                (void) snprintf(name, sizeof(name), "n%u", i);
                if (w->written[i] != 0)
                        w->roster.seats[i].seen_usec =
                                liveness_hear(&w->signs, name, w->written[i], w->now)->changed_usec;
        }
        liveness_look(&w->liveness, &w->roster, w->server_reads, GRACE, w->now);
        w->lost = w->silent = 0;
        for (unsigned i = 0; i < NODES; i++) {
                bool lost = liveness_lost(&w->liveness, w->roster.seats[i].seen_usec);

                w->lost += lost;
                w->ever_lost[i] = w->ever_lost[i] || lost;
                w->silent += liveness_silent(&w->liveness, w->roster.seats[i].seen_usec);
        }
}

static void seconds(struct world *w, unsigned count)
{
        for (unsigned s = 0; s < count; s++) {
                w->now += SECOND;
                nodes_write(w);
                watcher_looks(w);
        }
}

static unsigned ever_lost(const struct world *w)
{
        unsigned count = 0;

        for (unsigned i = 0; i < NODES; i++)
                count += w->ever_lost[i];
        return count;
}

static void an_api_server_that_is_away_takes_no_node(void **state)
{
        static const unsigned away[] = { 30, 59, 61, 75, 90, 119, 121, 600, 3600 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(away); i++)
                for (int kind = 0; kind < 3; kind++) { /* nobody reads; nobody writes; neither */
                        struct world w;

                        world_new(&w);
                        seconds(&w, 200);
                        w.server_reads = kind == 1;
                        w.server_writes = kind == 0;
                        seconds(&w, away[i]);
                        w.server_reads = w.server_writes = true;
                        seconds(&w, 300);
                        assert_int_equal(ever_lost(&w), 0);
                        assert_int_equal(w.silent, 0);
                        w.dead[3] = true; /* and a node that dies then is still found */
                        seconds(&w, 75);
                        assert_int_equal(w.lost, 1);
                        assert_true(w.ever_lost[3]);
                        world_free(&w);
                }
}

static void nodes_come_back_one_after_the_other(void **state)
{
        struct world w;

        (void) state;
        world_new(&w);
        seconds(&w, 200);
        w.server_writes = false;
        seconds(&w, 300);
        assert_true(w.liveness.held);
        memset(w.dead, 1, sizeof(w.dead));
        w.server_writes = true;
        for (unsigned i = 0; i < NODES; i++) { /* the last of them speaks 40 s after the first */
                w.dead[i] = false;
                seconds(&w, 5);
        }
        seconds(&w, 200);
        assert_int_equal(ever_lost(&w), 0);
        assert_false(w.liveness.held);
        world_free(&w);
}

static void no_clock_makes_a_node_old(void **state)
{
        static const int64_t off[] = { -10LL * 365 * DAY, -DAY, -3600, -90, -70, 70, 90, 3600,
                                       10LL * 365 * DAY };
        struct world w;

        (void) state;
        world_new(&w);
        for (unsigned i = 0; i < NODES; i++)
                w.clock_off_sec[i] = off[i] + 20LL * 365 * DAY; /* the year 1990 is 20 of them */
        seconds(&w, 600);
        for (unsigned i = 0; i < NODES; i++) /* and they are set, forwards and back, while it runs */
                w.clock_off_sec[i] = off[NODES - 1 - i] + 20LL * 365 * DAY;
        seconds(&w, 600);
        assert_int_equal(ever_lost(&w), 0);
        w.dead[0] = w.dead[8] = true;
        seconds(&w, 75);
        assert_true(w.ever_lost[0] && w.ever_lost[8]);
        assert_int_equal(ever_lost(&w), 2);
        world_free(&w);
}

static void nothing_is_old_before_it_was_listened_to(void **state)
{
        struct world w;

        (void) state;
        world_new(&w);
        for (unsigned i = 0; i < NODES; i++)
                w.written[i] = 1; /* a Lease of 1970: an extender that just began has seen it now */
        w.dead[0] = true;
        seconds(&w, 59);
        assert_int_equal(w.silent, 0);
        seconds(&w, 5);
        assert_int_equal(w.lost, 1);
        w.server_reads = false; /* a break begins the grace anew: it is not known what happened meanwhile */
        seconds(&w, 2);
        w.server_reads = true;
        seconds(&w, 59);
        assert_int_equal(w.silent, 0);
        seconds(&w, 5);
        assert_int_equal(w.lost, 1);
        world_free(&w);
}

static void who_stood_still_has_not_listened(void **state)
{
        struct world w;

        (void) state;
        world_new(&w);
        seconds(&w, 200);
        w.stopped = true; /* SIGSTOP: what came meanwhile is read after the first look */
        seconds(&w, 3600);
        w.stopped = false;
        liveness_look(&w.liveness, &w.roster, true, GRACE, w.now);
        assert_int_equal(w.liveness.silent_before_usec, 0);
        seconds(&w, 300);
        assert_int_equal(ever_lost(&w), 0);
        world_free(&w);
}

static void most_silent_nodes_are_held(void **state)
{
        struct world w;

        (void) state;
        for (unsigned dead = 0; dead <= NODES; dead++) {
                world_new(&w);
                seconds(&w, 200);
                memset(w.dead, 1, dead);
                seconds(&w, 3600);
                assert_int_equal(w.silent, dead); /* no new pod goes there */
                assert_int_equal(w.liveness.held, dead * 2 > NODES);
                assert_int_equal(ever_lost(&w), dead * 2 > NODES ? 0 : dead);
                world_free(&w);
        }
}

static void without_a_limit_nobody_is_silent(void **state)
{
        struct world w;

        (void) state;
        world_new(&w);
        seconds(&w, 20);
        liveness_look(&w.liveness, &w.roster, true, 0, w.now + DAY * SECOND);
        assert_int_equal(w.liveness.silent_before_usec, 0);
        assert_int_equal(w.liveness.lost_before_usec, 0);
        assert_false(w.liveness.held);
        assert_false(liveness_silent(&w.liveness, 1));
        assert_true(liveness_silent(&w.liveness, LIVENESS_REMOVED) &&
                    liveness_lost(&w.liveness, LIVENESS_REMOVED));
        world_free(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_api_server_that_is_away_takes_no_node),
                cmocka_unit_test(nodes_come_back_one_after_the_other),
                cmocka_unit_test(no_clock_makes_a_node_old),
                cmocka_unit_test(nothing_is_old_before_it_was_listened_to),
                cmocka_unit_test(who_stood_still_has_not_listened),
                cmocka_unit_test(most_silent_nodes_are_held),
                cmocka_unit_test(without_a_limit_nobody_is_silent),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
