/* Health: findings over time, and the verdicts that follow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/health/health.h"
#include "base/cleanup.h"

#define SECOND UINT64_C(1000000)

static const struct health_rules rules = HEALTH_RULES_DEFAULT;

static struct finding found(enum finding_level level)
{
        struct finding f = { 0 };

        if (level != FINDING_GOOD)
                finding_add(&f, level, "test", "Test", "a test found level %d", (int) level);
        return f;
}

static void feed(struct health *h, enum finding_level level, uint64_t second)
{
        struct finding f = found(level);

        (void) health_feed(h, &rules, &f, second * SECOND);
}

/* A story is one letter a probe: g(ood) d(egraded) s(ilent) b(ad), '.' lets a second pass, 'm' a minute. */
static void play(struct health *h, const char *story, uint64_t *second)
{
        for (; *story != '\0'; story++) {
                if (*story == '.')
                        *second += 1;
                else if (*story == 'm')
                        *second += 60;
                else
                        feed(h,
                             *story == 'g'   ? FINDING_GOOD
                             : *story == 'd' ? FINDING_DEGRADED
                             : *story == 's' ? FINDING_SILENT
                                             : FINDING_BAD,
                             *second);
        }
}

/* clang-format off */
static const struct {
        const char *what, *story;
        enum device_health verdict;
        bool usable;
} stories[] = {
        { "nothing was asked yet",                        "",             HEALTH_UNKNOWN,     false },
        { "the first answer is the verdict: good",        "g",            HEALTH_HEALTHY,     true  },
        { "the first answer is the verdict: bad",         "b",            HEALTH_UNHEALTHY,   false },
        { "the first answer is the verdict: degraded",    "d",            HEALTH_DEGRADED,    true  },
        { "silence from the start is no verdict",         "s.s.s",        HEALTH_UNKNOWN,     false },
        { "silence, then good",                           "s.g",          HEALTH_HEALTHY,     true  },
        { "silence keeps a good one usable",              "g.s",          HEALTH_UNKNOWN,     true  },
        { "silence keeps a degraded one usable",          "d.s.s",        HEALTH_UNKNOWN,     true  },
        { "silence keeps a bad one bad",                  "b.s",          HEALTH_UNHEALTHY,   false },
        { "silence is over with the next answer",         "g.s.g",        HEALTH_HEALTHY,     true  },
        { "one bad answer is enough",                     "g.b",          HEALTH_UNHEALTHY,   false },
        { "two good answers are not enough",              "g.b.gmg",      HEALTH_UNHEALTHY,   false },
        { "three good answers too soon",                  "g.b.g.g.g",    HEALTH_UNHEALTHY,   false },
        { "three good answers over a minute",             "g.b.g.gmg",    HEALTH_HEALTHY,     true  },
        { "a bad answer in between begins anew",          "b.g.gmb.g.g",  HEALTH_UNHEALTHY,   false },
        { "silence in between begins anew",               "g.b.g.gs.mg",  HEALTH_UNHEALTHY,   false },
        { "it may recover to degraded",                   "g.b.d.gmd",    HEALTH_DEGRADED,    true  },
        { "degraded at once",                             "g.d",          HEALTH_DEGRADED,    true  },
        { "degraded is left as slowly",                   "g.d.g.g",      HEALTH_DEGRADED,    true  },
        { "degraded is left after a minute",              "g.d.g.gmg",    HEALTH_HEALTHY,     true  },
        { "three turns are not yet flapping",             "gbgb",         HEALTH_UNHEALTHY,   false },
        { "four turns are flapping",                      "gbgbg",        HEALTH_QUARANTINED, false },
        { "degraded and good do not flap",                "gdgdgdgdg",    HEALTH_DEGRADED,    true  },
        { "nine good minutes do not end a quarantine",    "gbgbgmmmmmmmmmg",    HEALTH_QUARANTINED, false },
        { "ten good minutes end it",                      "gbgbgmmmmmmmmmmg",   HEALTH_HEALTHY,     true  },
        { "ten steadily bad minutes end it as bad",       "gbgbgbmmmmmmmmmmb",  HEALTH_UNHEALTHY,   false },
        { "a turn in it begins the ten minutes anew",     "gbgbgmmmmmbmmmmmmg", HEALTH_QUARANTINED, false },
        { "four turns over more than ten minutes",        "gbmmmgmmmgbmmmmmg",  HEALTH_UNHEALTHY,   false },
};
/* clang-format on */

static void stories_end_as_told(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
                struct health h = { 0 };
                uint64_t second = 1000;

                play(&h, stories[i].story, &second);
                if (h.verdict != stories[i].verdict || h.usable != stories[i].usable)
                        fail_msg("%s (%s): want %s %d, got %s %d", stories[i].what, stories[i].story,
                                 device_health_name(stories[i].verdict), stories[i].usable,
                                 device_health_name(h.verdict), h.usable);
        }
}

static void a_change_is_told_once(void **state)
{
        struct finding good = { 0 }, bad = found(FINDING_BAD), worse = { 0 };
        struct health h = { 0 };

        (void) state;
        assert_true(health_feed(&h, &rules, &good, 1));
        assert_false(health_feed(&h, &rules, &good, 2));
        assert_true(health_feed(&h, &rules, &bad, 3));
        assert_string_equal(h.reason, "Test");
        assert_string_equal(h.rule, "test");
        assert_false(health_feed(&h, &rules, &bad, 4));
        finding_add(&worse, FINDING_BAD, "other", "Other", "another fault");
        assert_true(health_feed(&h, &rules, &worse, 5));
        assert_string_equal(h.message, "another fault");
}

static void the_worst_finding_stays_and_the_first_of_equals(void **state)
{
        struct finding f = { 0 };

        (void) state;
        finding_add(&f, FINDING_DEGRADED, "a", "A", "a");
        finding_add(&f, FINDING_DEGRADED, "b", "B", "b");
        assert_string_equal(f.reason, "A");
        finding_add(&f, FINDING_BAD, "c", "C", "c");
        finding_add(&f, FINDING_SILENT, "d", "D", "d");
        assert_string_equal(f.reason, "C");
        assert_int_equal(f.level, FINDING_BAD);
}

static void an_operators_word_ends_everything(void **state)
{
        struct health h = { 0 };
        uint64_t second = 1;

        (void) state;
        play(&h, "gbgbg", &second);
        assert_int_equal(h.verdict, HEALTH_QUARANTINED);
        health_clear(&h);
        assert_int_equal(h.verdict, HEALTH_UNKNOWN);
        assert_false(h.usable);
        play(&h, "g", &second);
        assert_int_equal(h.verdict, HEALTH_HEALTHY);
        play(&h, "bgb", &second);
        assert_int_equal(h.verdict, HEALTH_UNHEALTHY);
}

/* clang-format off */
static const struct {
        const char *what, *before, *after;
        bool same_boot;
        enum device_health verdict;
} restarts[] = {
        { "unknown until the first answer",            "g",     "",        true,  HEALTH_UNKNOWN     },
        { "silence after a restart is no answer",      "b",     "s",       true,  HEALTH_UNKNOWN     },
        { "good before and after",                     "g",     "g",       true,  HEALTH_HEALTHY     },
        { "a fault is not forgotten",                  "g.b",   "g",       true,  HEALTH_UNHEALTHY   },
        { "a fault recovers as always",                "g.b",   "g.gmg",   true,  HEALTH_HEALTHY     },
        { "nor is it by a reboot",                     "g.b",   "g",       false, HEALTH_UNHEALTHY   },
        { "a quarantine is not forgotten",             "gbgbg", "g",       true,  HEALTH_QUARANTINED },
        { "it begins anew after a reboot",             "gbgbg", "g",       false, HEALTH_QUARANTINED },
        { "and ends as always",                        "gbgbg", "gmmmmmmmmmmmg", false, HEALTH_HEALTHY },
        { "turns go on counting",                      "gbgb",  "g",       true,  HEALTH_QUARANTINED },
        { "but not over a reboot",                     "gbgb",  "b",       false, HEALTH_UNHEALTHY   },
};
/* clang-format on */

static void faults_survive_a_restart(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(restarts); i++) {
                struct health before = { 0 }, after;
                uint64_t second = 5000;

                play(&before, restarts[i].before, &second);
                if (!restarts[i].same_boot)
                        second = 3; /* the clock begins anew */
                health_restore(&after, &before, restarts[i].same_boot, second * SECOND);
                assert_false(after.usable);
                play(&after, restarts[i].after, &second);
                if (after.verdict != restarts[i].verdict)
                        fail_msg("%s: want %s, got %s", restarts[i].what,
                                 device_health_name(restarts[i].verdict), device_health_name(after.verdict));
        }
}

static uint32_t random_next(uint32_t *seed) /* xorshift32 */
{
        *seed ^= *seed << 13;
        *seed ^= *seed >> 17;
        *seed ^= *seed << 5;
        return *seed;
}

#define HISTORY 300

struct past {
        enum finding_level level;
        uint64_t usec;
};

/* Was there, at the end of the history, a row of not-bad answers long enough to recover by? Written anew,
 * from the whole history, as an independent judge of the machine's counters. */
static bool judge_recovered(const struct past *past, size_t n, const struct health_rules *r)
{
        size_t row = 0;

        while (row < n &&
               (past[n - 1 - row].level == FINDING_GOOD || past[n - 1 - row].level == FINDING_DEGRADED))
                row++;
        return row >= r->recovery_probes && past[n - 1].usec - past[n - row].usec >= r->recovery_usec;
}

static size_t judge_turns(const struct past *past, size_t n, uint64_t window_usec)
{
        size_t turns = 0, last = n;

        for (size_t i = 0; i < n; i++) {
                if (past[i].level == FINDING_SILENT)
                        continue;
                if (last < n && (past[i].level == FINDING_BAD) != (past[last].level == FINDING_BAD) &&
                    past[n - 1].usec - past[i].usec <= window_usec)
                        turns++;
                last = i;
        }
        return turns;
}

static void check_step(const struct health *before, const struct health *h, const struct past *past, size_t n,
                       const struct health_rules *r)
{
        enum finding_level level = past[n - 1].level;
        bool was_bad = before->verdict == HEALTH_UNHEALTHY;

        if (h->usable)
                assert_true(h->verdict != HEALTH_UNHEALTHY && h->verdict != HEALTH_QUARANTINED);
        if (h->verdict == HEALTH_HEALTHY || h->verdict == HEALTH_DEGRADED)
                assert_true(h->usable);
        if (level == FINDING_BAD)
                assert_true(!h->usable && h->verdict != HEALTH_UNKNOWN);
        if (level == FINDING_SILENT)
                assert_int_equal(h->usable, before->usable);
        if (was_bad && h->usable)
                assert_true(judge_recovered(past, n, r));
        if (was_bad && !h->usable && h->verdict == HEALTH_UNHEALTHY && level != FINDING_BAD)
                assert_false(judge_recovered(past, n, r));
        if (level != FINDING_SILENT && before->verdict != HEALTH_QUARANTINED)
                assert_int_equal(h->verdict == HEALTH_QUARANTINED,
                                 judge_turns(past, n, r->flap_window_usec) > r->flap_changes);
        if (before->verdict == HEALTH_QUARANTINED && h->verdict != HEALTH_QUARANTINED)
                assert_int_equal(judge_turns(past, n, r->quarantine_usec - 1), 0);
        assert_int_equal(h->verdict == HEALTH_HEALTHY, h->reason[0] == '\0' && h->judged);
}

static void random_histories_keep_the_rules(void **state)
{
        static struct past past[HISTORY];

        (void) state;
        for (uint32_t run = 1; run <= 2000; run++) {
                uint32_t seed = run * 2654435761u, sticky = 0;
                struct health_rules r = { .recovery_probes = 1 + random_next(&seed) % 5,
                                          .recovery_usec = (random_next(&seed) % 90) * SECOND,
                                          .flap_changes = 1 + random_next(&seed) % 15,
                                          .flap_window_usec = (1 + random_next(&seed) % 900) * SECOND,
                                          .quarantine_usec = (1 + random_next(&seed) % 900) * SECOND };
                struct health h = { 0 };
                uint64_t now = random_next(&seed);

                for (size_t n = 0; n < HISTORY; n++) {
                        struct health before = h;
                        struct finding f;

                        if (random_next(&seed) % 8 < run % 8)
                                sticky = random_next(&seed) % FINDING_COUNT;
                        now += (random_next(&seed) % 40) * SECOND;
                        past[n] = (struct past){ (enum finding_level) sticky, now };
                        f = found(past[n].level);
                        (void) health_feed(&h, &r, &f, now);
                        check_step(&before, &h, past, n + 1, &r);
                }
                for (size_t n = 0; n < 2000; n++) { /* whatever happened: good answers heal it */
                        struct finding good = { 0 };

                        now += SECOND;
                        (void) health_feed(&h, &r, &good, now);
                }
                assert_int_equal(h.verdict, HEALTH_HEALTHY);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(stories_end_as_told),
                cmocka_unit_test(a_change_is_told_once),
                cmocka_unit_test(the_worst_finding_stays_and_the_first_of_equals),
                cmocka_unit_test(an_operators_word_ends_everything),
                cmocka_unit_test(faults_survive_a_restart),
                cmocka_unit_test(random_histories_keep_the_rules),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
