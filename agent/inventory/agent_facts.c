/* Agent facts: compared, tidied, and paced by a bucket that is kept as a time. */
#include "agent/inventory/agent_facts.h"

#include <string.h>

const char *const agent_facts_states[AGENT_FACTS_STATES + 1] = { "unknown", "absent", "starting",
                                                                 "answers", "silent", NULL };

static bool library_same(const struct agent_facts_library *a, const struct agent_facts_library *b)
{
        return strcmp(a->vendor, b->vendor) == 0 && a->state == b->state &&
               strcmp(a->message, b->message) == 0;
}

static bool offer_same(const struct agent_facts_offer *a, const struct agent_facts_offer *b)
{
        return strcmp(a->name, b->name) == 0 && a->registered == b->registered;
}

bool agent_facts_same(const struct agent_facts *a, const struct agent_facts *b)
{
        if (strcmp(a->version, b->version) != 0 || a->library_count != b->library_count ||
            a->offer_count != b->offer_count)
                return false;
        for (size_t i = 0; i < a->library_count; i++)
                if (!library_same(&a->libraries[i], &b->libraries[i]))
                        return false;
        for (size_t i = 0; i < a->offer_count; i++)
                if (!offer_same(&a->offers[i], &b->offers[i]))
                        return false;
        return true;
}

void agent_facts_tidy(struct agent_facts *facts)
{
        size_t libraries = facts->library_count, offers = facts->offer_count;

        facts->library_count = facts->offer_count = 0;
        for (size_t i = 0; i < libraries; i++)
                if (facts->libraries[i].vendor[0] != '\0')
                        facts->libraries[facts->library_count++] = facts->libraries[i];
        for (size_t i = 0; i < offers; i++)
                if (facts->offers[i].name[0] != '\0')
                        facts->offers[facts->offer_count++] = facts->offers[i];
}

/* Each change costs a minute, and AGENT_FACTS_BURST minutes may be owed: from 0:00 to 0:07 eight are told,
 * one a second, which are paid for at 8:00; the ninth is told at 1:00, when seven minutes are owed, the tenth
 * at 2:00. After a rest of eight minutes nothing is owed, and there are eight again. */
bool agent_facts_are_news(struct agent_facts_pace *pace, const struct agent_facts *told,
                          const struct agent_facts *now, uint64_t now_usec)
{
        uint64_t from = pace->paid_usec > now_usec ? pace->paid_usec : now_usec;

        if (agent_facts_same(told, now) || from - now_usec > (AGENT_FACTS_BURST - 1) * AGENT_FACTS_PAUSE_USEC)
                return false;
        pace->paid_usec = from + AGENT_FACTS_PAUSE_USEC;
        return true;
}
