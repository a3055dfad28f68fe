/* Agent facts: every one of them is compared, one without a name is none, and a change that comes and goes is
 * told no more often than so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "agent/inventory/agent_facts.h"
#include "base/cleanup.h"

static struct agent_facts some(void)
{
        return (struct agent_facts){ .version = "1",
                                     .libraries = { { "nvidia", AGENT_FACTS_ANSWERS, "" } },
                                     .library_count = 1,
                                     .offers = { { "nvidia.com/gpu", true } },
                                     .offer_count = 1 };
}

static void every_fact_is_compared(void **state)
{
        static const size_t at[] = {
                offsetof(struct agent_facts, version),
                offsetof(struct agent_facts, library_count),
                offsetof(struct agent_facts, libraries[0].vendor),
                offsetof(struct agent_facts, libraries[0].state),
                offsetof(struct agent_facts, libraries[0].message),
                offsetof(struct agent_facts, offer_count),
                offsetof(struct agent_facts, offers[0].name),
                offsetof(struct agent_facts, offers[0].registered),
        };
        struct agent_facts a = some(), b = some();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
                ((char *) &b)[at[i]] ^= 1;
                if (agent_facts_same(&a, &b))
                        fail_msg("the fact at %zu may change unseen", at[i]);
                ((char *) &b)[at[i]] ^= 1;
                assert_true(agent_facts_same(&a, &b));
        }
}

static void what_has_no_name_is_taken_out(void **state)
{
        struct agent_facts facts = { .libraries = { { .vendor = "" }, { .vendor = "amd" }, { .vendor = "" } },
                                     .library_count = 3,
                                     .offers = { { .name = "a/b" }, { .name = "" }, { .name = "c/d" } },
                                     .offer_count = 3 };

        (void) state;
        agent_facts_tidy(&facts);
        assert_int_equal(facts.library_count, 1);
        assert_string_equal(facts.libraries[0].vendor, "amd");
        assert_int_equal(facts.offer_count, 2);
        assert_string_equal(facts.offers[1].name, "c/d");
}

static void every_state_has_its_word(void **state)
{
        (void) state;
        for (size_t i = 0; i < AGENT_FACTS_STATES; i++)
                assert_true(agent_facts_states[i] != NULL && agent_facts_states[i][0] != '\0');
        assert_null(agent_facts_states[AGENT_FACTS_STATES]);
}

/* A library that answers and is silent in turn, a look a second: how often is it told? */
static unsigned told_in(struct agent_facts_pace *pace, uint64_t from_sec, uint64_t seconds)
{
        struct agent_facts told = some(), now = some();
        unsigned count = 0;

        for (uint64_t i = 0; i < seconds; i++) {
                now.libraries[0].state = i % 2 == 0 ? AGENT_FACTS_SILENT : AGENT_FACTS_ANSWERS;
                if (!agent_facts_are_news(pace, &told, &now, (from_sec + i) * 1000000))
                        continue;
                told = now;
                count++;
        }
        return count;
}

static void what_comes_and_goes_is_told_once_a_minute(void **state)
{
        struct agent_facts_pace pace = { .paid_usec = 0 };
        struct agent_facts a = some(), b = some();

        (void) state;
        assert_false(agent_facts_are_news(&pace, &a, &b, 1000000)); /* equal facts cost nothing */
        assert_int_equal(told_in(&pace, 1000, 10), AGENT_FACTS_BURST);
        assert_in_range(told_in(&pace, 1010, 3600), 59, 60);
        assert_int_equal(told_in(&pace, 1010 + 3600 + 480, 10), AGENT_FACTS_BURST); /* after a rest */
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_fact_is_compared),
                cmocka_unit_test(what_has_no_name_is_taken_out),
                cmocka_unit_test(every_state_has_its_word),
                cmocka_unit_test(what_comes_and_goes_is_told_once_a_minute),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
