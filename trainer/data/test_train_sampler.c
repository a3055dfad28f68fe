/* Every sample once an epoch, whatever the shares, the order, the exchange and the growth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/data/sampler.h"

/* clang-format off */
static const struct {
        const char *what;
        size_t samples, batch, workers, shares[4];
        enum sampler_order order;
        double exchange;
        bool owned, as_it_lies;
} rules[] = {
        { "one worker",                  100,  32, 1, { 32 },           SAMPLER_BLOCKS,      0, false, false },
        { "unequal shares",             1003,  50, 3, { 23, 0, 27 },    SAMPLER_BLOCKS,      0, false, false },
        { "dealt out",                  1003,  50, 3, { 23, 0, 27 },    SAMPLER_ROUND_ROBIN, 0, false, false },
        { "dealt out to four",           777,  64, 4, { 1, 2, 30, 31 }, SAMPLER_ROUND_ROBIN, 0, false, false },
        { "a batch larger than the data", 10, 128, 2, { 100, 28 },      SAMPLER_BLOCKS,      0, false, false },
        { "neighbours exchange",         999,  30, 3, { 10, 10, 10 },   SAMPLER_BLOCKS,      0.25, false, false },
        { "neighbours exchange all",     500,  40, 4, { 4, 8, 12, 16 }, SAMPLER_ROUND_ROBIN, 1, false, false },
        { "nobody has anything left",     50,  50, 2, { 50, 0 },        SAMPLER_BLOCKS,      0.5, false, false },
        { "shards that stay",            999,  30, 3, { 10, 0, 20 },    SAMPLER_BLOCKS,      0,    true, false },
        { "as they lie, passed on",      999,  30, 3, { 10, 0, 20 },    SAMPLER_ROUND_ROBIN, 0.1,  true, true },
        { "one owner",                   100,  32, 1, { 32 },           SAMPLER_BLOCKS,      0.5, false, false },
};
/* clang-format on */

static struct sampler *open_rule(size_t i)
{
        struct sampler_rule rule = { .seed = 7,
                                     .samples = rules[i].samples,
                                     .batch = rules[i].batch,
                                     .workers = rules[i].workers,
                                     .shares = rules[i].shares,
                                     .order = rules[i].order,
                                     .exchange = rules[i].exchange,
                                     .owned = rules[i].owned,
                                     .as_it_lies = rules[i].as_it_lies };
        struct err err = { 0 };
        struct sampler *s = NULL;

        if (sampler_new(&rule, &s, &err) < 0)
                fail_msg("%s: %s", rules[i].what, err.msg);
        return s;
}

static void use_epoch(struct sampler *s, size_t i, uint64_t epoch)
{
        CLEANUP(free_p) uint32_t *ids = calloc(rules[i].batch, sizeof(*ids));
        CLEANUP(free_p) unsigned char *seen = calloc(rules[i].samples, 1);
        size_t total = 0;

        for (size_t step = 0; step < sampler_steps(s, epoch); step++) {
                size_t in_step = 0;

                for (size_t w = 0; w < rules[i].workers; w++) {
                        int count = sampler_chunk(s, epoch, step, w, ids);

                        assert_int_equal(count, sampler_count(s, epoch, step, w));
                        for (int k = 0; k < count; k++)
                                if (ids[k] >= rules[i].samples || seen[ids[k]]++ != 0)
                                        fail_msg("%s: sample %u twice in epoch %d", rules[i].what, ids[k],
                                                 (int) epoch);
                        in_step += (size_t) count;
                }
                if (in_step != sampler_batch(s, epoch, step))
                        fail_msg("%s: step %zu uses %zu samples", rules[i].what, step, in_step);
                total += in_step;
        }
        if (total != rules[i].samples)
                fail_msg("%s: %zu samples used of %zu", rules[i].what, total, rules[i].samples);
}

static void uses_every_sample_once_an_epoch(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                CLEANUP(sampler_free_p) struct sampler *s = open_rule(i);

                for (uint64_t epoch = 0; epoch < 3; epoch++)
                        use_epoch(s, i, epoch);
        }
}

/* Asking out of order, as a resumed run does, gives the same answer. */
static void answers_alike_in_any_order(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                CLEANUP(sampler_free_p) struct sampler *forward = open_rule(i), *fresh = open_rule(i);
                uint32_t *a = calloc(rules[i].batch, sizeof(*a)), *b = calloc(rules[i].batch, sizeof(*b));
                size_t steps = sampler_steps(forward, 1);

                for (size_t step = 0; step < steps; step++) {
                        int n = sampler_chunk(forward, 1, step, 0, a);

                        if (step == steps / 2) {
                                assert_int_equal(sampler_chunk(fresh, 1, step, 0, b), n);
                                assert_memory_equal(a, b, (size_t) n * sizeof(*a));
                        }
                }
                free(a);
                free(b);
        }
}

struct passing { /* a worker of a world */
        struct sampler *s;
        uint32_t sent[999];
        size_t count; /* under way */
};

/* What the ring does at the beginning of a step: what was sent comes, and the next is sent. */
static void pass_on(struct passing *world, size_t workers, uint64_t step)
{
        uint64_t epoch;
        size_t epoch_step;

        for (size_t w = 0; w < workers; w++) {
                struct owned *next = sampler_owned(world[owned_next(sampler_owned(world[w].s), w)].s);

                if (world[w].count > 0)
                        owned_get(next, world[w].sent, world[w].count);
                world[w].count = 0;
        }
        if (step == 0)
                return;
        sampler_locate(world[0].s, step - 1, &epoch, &epoch_step);
        for (size_t w = 0; w < workers; w++) {
                const uint32_t *ids;
                size_t count = owned_round(sampler_owned(world[w].s), epoch_step);

                if (count == 0 || owned_shard(sampler_owned(world[w].s), w, &ids) == 0)
                        continue;
                memcpy(world[w].sent, owned_give(sampler_owned(world[w].s), epoch, epoch_step),
                       count * sizeof(*ids));
                world[w].count = count;
        }
}

/* Workers that know their own shard alone and get the rest by messages use what one process does that has
 * all; samples are asked for as early as they may be. */
static void messages_do_what_is_replayed(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
                CLEANUP(sampler_free_p) struct sampler *whole = open_rule(i);
                struct passing *world = calloc(4, sizeof(*world));
                uint32_t *a = calloc(rules[i].batch, sizeof(*a)), *b = calloc(rules[i].batch, sizeof(*b));
                size_t passed = 0, begin = 5; /* as a run that goes on */
                bool owned = rules[i].owned || rules[i].exchange > 0;

                for (size_t w = 0; owned && sampler_steps(whole, 0) > begin && w < rules[i].workers; w++) {
                        world[w].s = open_rule(i);
                        assert_int_equal(sampler_replay(world[w].s, begin), 0);
                        sampler_keep(world[w].s, w);
                }
                for (uint64_t step = begin; world[0].s != NULL && step < 2 * sampler_steps(whole, 0);
                     step++) {
                        uint64_t epoch;
                        size_t epoch_step;

                        if (step > begin)
                                pass_on(world, rules[i].workers, step);
                        sampler_locate(whole, step + OWNED_AHEAD - 1, &epoch, &epoch_step);
                        for (size_t w = 0; w < rules[i].workers; w++) {
                                int n = sampler_chunk(whole, epoch, epoch_step, w, a);

                                passed += world[w].count;
                                assert_int_equal(sampler_chunk(world[w].s, epoch, epoch_step, w, b), n);
                                if (memcmp(a, b, (size_t) n * sizeof(*a)) != 0)
                                        fail_msg("%s: worker %zu has others in step %d", rules[i].what, w,
                                                 (int) step);
                        }
                }
                if (strcmp(rules[i].what, "neighbours exchange all") == 0)
                        assert_true(passed > 500);
                for (size_t w = 0; w < rules[i].workers; w++)
                        sampler_free(world[w].s);
                free(world);
                free(a);
                free(b);
        }
}

/* Shards that are dealt anew, to other workers and with other rules, at these steps; 999 samples are 34 steps
 * an epoch. */
/* clang-format off */
static struct {
        uint64_t from;
        size_t workers, shares[4];
        double exchange;
        bool round_robin, as_it_lies;
} dealt[] = {
        {   0, 3, { 10, 12, 8 },    0.25, false, false },
        {   5, 2, { 18, 12 },       0.25, false, false }, /* within the first epoch */
        {  33, 3, { 0, 1, 29 },     0.5,  true,  false }, /* before its last, shorter step */
        {  68, 4, { 6, 8, 7, 9 },   0,    false, true },  /* between two epochs */
        {  80, 1, { 30 },           0.25, false, false },
        {  81, 3, { 10, 12, 8 },    1,    false, false }, /* after one step */
};
/* clang-format on */
#define DEALT_SAMPLES 999
#define DEALT_BATCH   30

static void note_dealings(size_t count, struct dealings *ret)
{
        struct err err = { 0 };

        *ret = (struct dealings){ 0 };
        for (size_t i = 0; i < count; i++) {
                struct dealing one = { dealt[i].from,       dealt[i].exchange, dealt[i].round_robin,
                                       dealt[i].as_it_lies, dealt[i].workers,  dealt[i].shares };

                assert_int_equal(dealings_add(ret, &one, &err), 0);
        }
}

/* As a run finds them that goes on with the last of them. */
static struct sampler *open_dealt(size_t last, const struct dealings *d)
{
        struct sampler_rule rule = { .seed = 3,
                                     .samples = DEALT_SAMPLES,
                                     .batch = DEALT_BATCH,
                                     .workers = dealt[last].workers,
                                     .shares = dealt[last].shares,
                                     .order = dealt[last].round_robin ? SAMPLER_ROUND_ROBIN : SAMPLER_BLOCKS,
                                     .exchange = dealt[last].exchange,
                                     .owned = true,
                                     .as_it_lies = dealt[last].as_it_lies };
        struct err err = { 0 };
        struct sampler *s = NULL;

        assert_int_equal(sampler_new(&rule, &s, &err), 0);
        sampler_dealt(s, d);
        return s;
}

static void uses_every_sample_once_whoever_keeps_them(void **state)
{
        unsigned char seen[DEALT_SAMPLES] = { 0 };
        size_t used = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(dealt); i++) {
                uint64_t end = i + 1 < ARRAY_SIZE(dealt) ? dealt[i + 1].from : 4 * 34;
                struct dealings d;
                struct sampler *s;

                note_dealings(i + 1, &d);
                s = open_dealt(i, &d);
                for (uint64_t step = dealt[i].from; step < end; step++) {
                        uint32_t ids[DEALT_BATCH];
                        uint64_t epoch;
                        size_t epoch_step;

                        sampler_locate(s, step, &epoch, &epoch_step);
                        for (size_t w = 0; w < dealt[i].workers; w++) {
                                int n = sampler_chunk(s, epoch, epoch_step, w, ids);

                                assert_int_equal(n, sampler_count(s, epoch, epoch_step, w));
                                for (int k = 0; k < n; k++)
                                        if (ids[k] >= DEALT_SAMPLES || seen[ids[k]]++ != epoch)
                                                fail_msg("sample %u twice in epoch %d, at step %d", ids[k],
                                                         (int) epoch, (int) step);
                                used += (size_t) n;
                        }
                }
                sampler_free(s);
                dealings_free(&d);
        }
        assert_int_equal(used, 4 * DEALT_SAMPLES);
}

/* A world that goes on with others' shards does by messages what one process replays. */
static void messages_do_what_is_replayed_after_a_dealing(void **state)
{
        struct passing *world = calloc(4, sizeof(*world));

        (void) state;
        for (size_t i = 1; i < ARRAY_SIZE(dealt); i++) {
                uint32_t a[DEALT_BATCH], b[DEALT_BATCH];
                struct dealings d;
                struct sampler *whole;

                note_dealings(i + 1, &d);
                whole = open_dealt(i, &d);
                for (size_t w = 0; w < dealt[i].workers; w++) {
                        world[w] = (struct passing){ .s = open_dealt(i, &d) };
                        assert_int_equal(sampler_replay(world[w].s, dealt[i].from), 0);
                        sampler_keep(world[w].s, w);
                }
                for (uint64_t step = dealt[i].from; step < dealt[i].from + 40; step++) {
                        uint64_t epoch;
                        size_t epoch_step;

                        if (step > dealt[i].from)
                                pass_on(world, dealt[i].workers, step);
                        sampler_locate(whole, step, &epoch, &epoch_step);
                        for (size_t w = 0; w < dealt[i].workers; w++) {
                                int n = sampler_chunk(whole, epoch, epoch_step, w, a);

                                assert_int_equal(sampler_chunk(world[w].s, epoch, epoch_step, w, b), n);
                                assert_memory_equal(a, b, (size_t) n * sizeof(*a));
                        }
                }
                for (size_t w = 0; w < dealt[i].workers; w++)
                        sampler_free(world[w].s);
                sampler_free(whole);
                dealings_free(&d);
        }
        free(world);
}

static void grows_at_an_epoch(void **state)
{
        const size_t shares[] = { 10 };
        struct sampler_rule rule = { .seed = 1, .samples = 95, .batch = 10, .workers = 1, .shares = shares };
        CLEANUP(sampler_free_p) struct sampler *s = NULL;
        struct err err = { 0 };
        uint64_t epoch;
        size_t step;

        (void) state;
        assert_int_equal(sampler_new(&rule, &s, &err), 0);
        assert_int_equal(sampler_grow(s, 2, 120, &err), 0);
        assert_int_equal(sampler_steps(s, 1), 10);
        assert_int_equal(sampler_steps(s, 2), 12);
        sampler_locate(s, 19, &epoch, &step);
        assert_true(epoch == 1 && step == 9);
        sampler_locate(s, 20 + 12 + 3, &epoch, &step);
        assert_true(epoch == 3 && step == 3);
}

/* Whatever the cuts and whenever they come, and a step before a cut keeps the one it had. */
static void uses_every_sample_once_through_cuts(void **state)
{
        static const size_t cuts[][4] = { { 50, 0, 0 }, { 1, 48, 1 }, { 0, 0, 50 }, { 16, 17, 17 } };
        const size_t rule = 1,
                     steps = 21; /* "unequal shares": 3 workers, 21 steps an epoch, the last one shorter */
        CLEANUP(sampler_free_p) struct sampler *s = open_rule(rule), *uncut = open_rule(rule);
        uint32_t before[50], now[50];
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cuts); i++)
                assert_int_equal(sampler_recut(s, 7 + 9 * i, cuts[i], &err), 0);
        for (uint64_t epoch = 0; epoch < 3; epoch++)
                use_epoch(s, rule, epoch);
        assert_int_equal(sampler_count(s, 0, 7, 0), 50);
        assert_int_equal(sampler_count(s, 1, 7 + 9 * 2 - steps, 2), 50);
        assert_int_equal(sampler_chunk(s, 0, 6, 2, now), 27);
        assert_int_equal(sampler_chunk(uncut, 0, 6, 2, before), 27);
        assert_memory_equal(now, before, 27 * sizeof(*now));
}

/* What was said of later steps before is forgotten, what is in force by then stays. */
static void the_latest_cut_counts_whatever_its_step(void **state)
{
        static const size_t first[] = { 50, 0, 0 }, later[] = { 0, 50, 0 }, sooner[] = { 0, 0, 50 };
        static const struct {
                uint64_t step, since;
                size_t worker; /* who has all of it; 3 = each has some */
        } rows[] = {
                { 0, 0, 3 },   { 6, 0, 3 },   { 7, 7, 0 },   { 29, 7, 0 },
                { 30, 30, 2 }, { 39, 30, 2 }, { 40, 30, 2 }, { 60, 30, 2 },
        };
        CLEANUP(sampler_free_p) struct sampler *s = open_rule(1);
        struct err err = { 0 };

        (void) state;
        assert_int_equal(sampler_recut(s, 7, first, &err), 0);
        assert_int_equal(sampler_recut(s, 40, later, &err), 0);
        assert_int_equal(sampler_since(s, 40), 40);
        assert_int_equal(sampler_recut(s, 30, sooner, &err), 0);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                uint64_t epoch;
                size_t step;

                sampler_locate(s, rows[i].step, &epoch, &step);
                assert_int_equal(sampler_since(s, rows[i].step), rows[i].since);
                for (size_t worker = 0; worker < 3; worker++)
                        assert_int_equal(sampler_count(s, epoch, step, worker) ==
                                                 sampler_batch(s, epoch, step),
                                         worker == rows[i].worker);
        }
}

static void refuses_cuts_that_cannot_be(void **state)
{
        CLEANUP(sampler_free_p) struct sampler *s = open_rule(1), *exchanged = open_rule(5);
        const size_t good[] = { 20, 20, 10 }, bad[] = { 20, 20, 20 }, thirds[] = { 10, 10, 10 };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(sampler_recut(s, 5, bad, &err), -EINVAL);
        assert_int_equal(sampler_recut(s, 5, good, &err), 0);
        assert_int_equal(sampler_recut(exchanged, 4, thirds, &err), -EINVAL);
}

static void refuses_shares_that_do_not_add_up(void **state)
{
        const size_t shares[] = { 10, 5 };
        struct sampler_rule rule = { .samples = 95, .batch = 16, .workers = 2, .shares = shares };
        struct sampler *s = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(sampler_new(&rule, &s, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "15"));
        assert_null(s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(uses_every_sample_once_an_epoch),
                cmocka_unit_test(answers_alike_in_any_order),
                cmocka_unit_test(messages_do_what_is_replayed),
                cmocka_unit_test(uses_every_sample_once_whoever_keeps_them),
                cmocka_unit_test(messages_do_what_is_replayed_after_a_dealing),
                cmocka_unit_test(grows_at_an_epoch),
                cmocka_unit_test(uses_every_sample_once_through_cuts),
                cmocka_unit_test(the_latest_cut_counts_whatever_its_step),
                cmocka_unit_test(refuses_cuts_that_cannot_be),
                cmocka_unit_test(refuses_shares_that_do_not_add_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
