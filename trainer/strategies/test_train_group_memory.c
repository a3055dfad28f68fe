/* Group memory: members that are threads add up pieces, some of them late, and nobody waits for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "io/clock.h"
#include "trainer/strategies/group_memory.h"

#define MEMBERS_MAX 5
#define PIECE       1031
#define PIECES      (9 * GROUP_MEMORY_DEPTH + 3)
#define OTHERS      1e6F /* what another group's leader would add */
#define A_LONG_TIME 60000000

/* Some are short, one is empty. */
static size_t size_of(uint64_t piece)
{
        return piece % 7 == 3 ? piece % 5 : PIECE;
}

/* Numbers whose sum depends on the order of adding. */
static float value_of(uint64_t piece, size_t member, size_t i)
{
        return (float) (1 + (piece * 31 + i) % 977) / (float) (3 + member * 1000);
}

static float sum_of(uint64_t piece, size_t members, size_t i)
{
        float sum = value_of(piece, 0, i);

        for (size_t m = 1; m < members; m++)
                sum += value_of(piece, m, i);
        return sum + OTHERS;
}

struct member {
        struct group_memory memory;
        float *values; /* PIECES of PIECE */
        size_t finished, started, at[PIECES];
        bool late;
        size_t wrong;
};

/* One piece as far as it goes. Return: has it gone on? */
static bool advance(struct member *m, uint64_t piece)
{
        const struct backend b = { 0 };
        size_t before = m->at[piece], size = size_of(piece);
        float *sum;

        if (m->at[piece] == 0 && group_memory_add(&m->memory, &b, piece, size)) {
                sum = group_memory_sum(&m->memory, piece);
                for (size_t i = 0; m->memory.member == 0 && i < size; i++)
                        sum[i] += OTHERS;
                if (m->memory.member == 0)
                        group_memory_whole(&m->memory, piece);
                m->at[piece] = 1;
        }
        if (m->at[piece] == 1 && group_memory_take(&m->memory, piece, m->values + piece * PIECE, size))
                m->at[piece] = 2;
        return m->at[piece] != before;
}

static bool progress(struct member *m)
{
        size_t before = m->started + m->finished;
        bool gone_on = false;

        for (size_t i = m->finished; i < m->started; i++)
                gone_on = advance(m, i) || gone_on;
        while (m->finished < m->started && m->at[m->finished] == 2)
                m->finished++;
        while (m->started < PIECES && m->started < m->finished + GROUP_MEMORY_DEPTH &&
               group_memory_offer(&m->memory, m->started, m->values + m->started * PIECE,
                                  size_of(m->started)))
                m->started++;
        return gone_on || m->started + m->finished != before;
}

static void *member_main(void *context)
{
        const struct timespec pause = { .tv_nsec = 300000 };
        struct member *m = context;

        while (m->finished < PIECES) {
                group_memory_look(&m->memory);
                if (!progress(m))
                        group_memory_sleep(&m->memory, A_LONG_TIME);
                else if (m->late && m->started % 11 == 0)
                        (void) nanosleep(&pause, NULL);
        }
        for (uint64_t piece = 0; piece < PIECES; piece++)
                for (size_t i = 0; i < size_of(piece); i++)
                        m->wrong += m->values[piece * PIECE + i] != sum_of(piece, m->memory.members, i);
        return NULL;
}

static void *shared_of(size_t members)
{
        size_t size = (group_memory_size_bytes(members, PIECE) + 63) / 64 * 64;
        char *shared = aligned_alloc(64, size);

        for (size_t i = 0; shared != NULL && i < size; i++)
                shared[i] = 0;
        return shared;
}

/* @late: which of them, MEMBERS_MAX = nobody */
static void members_add_up(size_t members, size_t late)
{
        struct member all[MEMBERS_MAX] = { 0 };
        pthread_t threads[MEMBERS_MAX];
        uint64_t begin_usec;
        void *shared = shared_of(members);

        assert_non_null(shared);
        for (size_t m = 0; m < members; m++) {
                group_memory_use(&all[m].memory, shared, members, m, PIECE);
                all[m].late = m == late;
                all[m].values = malloc((size_t) PIECES * PIECE * sizeof(float));
                assert_non_null(all[m].values);
                for (size_t i = 0; i < (size_t) PIECES * PIECE; i++)
                        all[m].values[i] = value_of(i / PIECE, m, i % PIECE);
        }
        begin_usec = clock_monotonic_usec();
        for (size_t m = 0; m < members; m++)
                assert_int_equal(pthread_create(&threads[m], NULL, member_main, &all[m]), 0);
        for (size_t m = 0; m < members; m++)
                assert_int_equal(pthread_join(threads[m], NULL), 0);
        /* who is never woken sleeps for a long time, once or more */
        assert_true(clock_monotonic_usec() - begin_usec < A_LONG_TIME);
        for (size_t m = 0; m < members; m++) {
                assert_int_equal(all[m].wrong, 0);
                group_memory_close(&all[m].memory);
                free(all[m].values);
        }
        free(shared);
}

static void sums_are_those_of_the_order_of_members(void **state)
{
        (void) state;
        for (size_t members = 1; members <= MEMBERS_MAX; members++)
                members_add_up(members, MEMBERS_MAX);
}

static void who_is_late_is_waited_for(void **state)
{
        (void) state;
        members_add_up(3, 0);
        members_add_up(3, 2);
}

/* Without another member nothing is done that needs it. */
static void nothing_is_done_too_early(void **state)
{
        struct group_memory leader, member;
        const struct backend b = { 0 };
        void *shared = shared_of(2);
        float values[PIECE] = { 1 }, taken[PIECE] = { 0 };

        (void) state;
        assert_non_null(shared);
        group_memory_use(&leader, shared, 2, 0, PIECE);
        group_memory_use(&member, shared, 2, 1, PIECE);
        assert_true(group_memory_offer(&leader, 0, values, PIECE));
        assert_false(group_memory_add(&leader, &b, 0, PIECE));
        assert_true(group_memory_offer(&member, 0, values, PIECE));
        assert_false(group_memory_add(&leader, &b, 0, PIECE)); /* its own part, but not the other one's */
        assert_true(group_memory_add(&member, &b, 0, PIECE));
        assert_true(group_memory_add(&leader, &b, 0, PIECE));
        assert_false(group_memory_take(&member, 0, taken, PIECE));
        group_memory_whole(&leader, 0);
        assert_true(group_memory_take(&leader, 0, taken, PIECE));
        assert_true(taken[0] == 2);
        for (uint64_t piece = 1; piece < GROUP_MEMORY_DEPTH; piece++)
                assert_true(group_memory_offer(&leader, piece, values, PIECE));
        assert_false(
                group_memory_offer(&leader, GROUP_MEMORY_DEPTH, values, PIECE)); /* not taken by the other */
        assert_true(group_memory_take(&member, 0, taken, PIECE));
        assert_true(group_memory_offer(&leader, GROUP_MEMORY_DEPTH, values, PIECE));
        free(shared);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(sums_are_those_of_the_order_of_members),
                cmocka_unit_test(who_is_late_is_waited_for),
                cmocka_unit_test(nothing_is_done_too_early),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
