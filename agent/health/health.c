/* Health: one finding at a time moves the state; the rules say how far. */
#include "agent/health/health.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

/* Takes over the verdict and its words. Return: was any of it new? */
static bool decide(struct health *h, enum device_health verdict, bool usable, const char *rule,
                   const char *reason, const char *message)
{
        bool changed = h->verdict != verdict || h->usable != usable || strcmp(h->rule, rule) != 0 ||
                       strcmp(h->reason, reason) != 0 || strcmp(h->message, message) != 0;

        h->verdict = verdict;
        h->usable = usable;
        if (changed) {
                (void) text_copy(h->rule, sizeof(h->rule), rule);
                (void) text_copy(h->reason, sizeof(h->reason), reason);
                (void) text_copy(h->message, sizeof(h->message), message);
        }
        return changed;
}

static bool decide_finding(struct health *h, enum device_health verdict, bool usable, const struct finding *f)
{
        return decide(h, verdict, usable, f->rule, f->reason, f->message);
}

/* The verdict that an answer stands for when no history holds it back. */
static bool decide_answer(struct health *h, const struct finding *f)
{
        if (f->level == FINDING_BAD)
                return decide_finding(h, HEALTH_UNHEALTHY, false, f);
        if (f->level == FINDING_DEGRADED)
                return decide_finding(h, HEALTH_DEGRADED, true, f);
        return decide(h, HEALTH_HEALTHY, true, "", "", "");
}

static void count_turn(struct health *h, uint64_t now)
{
        memmove(h->turns + 1, h->turns, sizeof(h->turns) - sizeof(h->turns[0]));
        h->turns[0] = now;
        if (h->turn_count < HEALTH_FLAP_CHANGES_MAX + 1)
                h->turn_count++;
}

static bool is_flapping(const struct health *h, const struct health_rules *rules, uint64_t now)
{
        assert(rules->flap_changes >= 1 && rules->flap_changes <= HEALTH_FLAP_CHANGES_MAX);
        return h->turn_count > rules->flap_changes &&
               now - h->turns[rules->flap_changes] <= rules->flap_window_usec;
}

static void count_answer(struct health *h, const struct finding *f, uint64_t now)
{
        bool bad = f->level == FINDING_BAD;

        if (h->judged && bad != h->bad)
                count_turn(h, now);
        h->bad = bad;
        if (bad)
                h->working = 0;
        else if (h->working++ == 0)
                h->working_usec = now;
        if (f->level != FINDING_GOOD)
                h->good = 0;
        else if (h->good++ == 0)
                h->good_usec = now;
}

static bool is_over(const struct health_rules *rules, unsigned row, uint64_t began, uint64_t now)
{
        return row >= rules->recovery_probes && now - began >= rules->recovery_usec;
}

static bool could_not_ask(struct health *h, const struct finding *f)
{
        h->working = h->good = 0;
        if (h->waiting || h->verdict == HEALTH_UNHEALTHY || h->verdict == HEALTH_QUARANTINED)
                return false;
        return decide_finding(h, HEALTH_UNKNOWN, h->usable, f);
}

static bool quarantine(struct health *h, const struct health_rules *rules)
{
        char message[sizeof(h->message)];

        (void) text_format(message, sizeof(message),
                           "it turned bad and good more than %u times in %llu seconds%s%s",
                           rules->flap_changes, (unsigned long long) (rules->flap_window_usec / 1000000),
                           h->reason[0] != '\0' && strcmp(h->reason, "Flapping") != 0 ? "; last fault: " : "",
                           strcmp(h->reason, "Flapping") != 0 ? h->reason : "");
        return decide(h, HEALTH_QUARANTINED, false, "flapping", "Flapping", message);
}

bool health_feed(struct health *h, const struct health_rules *rules, const struct finding *f, uint64_t now)
{
        if (f->level == FINDING_SILENT)
                return could_not_ask(h, f);
        if (h->waiting) {
                h->waiting = false;
                h->verdict = h->saved;
        }
        count_answer(h, f, now);
        h->judged = true;

        if (h->verdict == HEALTH_QUARANTINED)
                return now - h->turns[0] >= rules->quarantine_usec && decide_answer(h, f);
        if (is_flapping(h, rules, now))
                return quarantine(h, rules);
        if (f->level == FINDING_BAD)
                return decide_answer(h, f);
        if (h->verdict == HEALTH_UNHEALTHY)
                return is_over(rules, h->working, h->working_usec, now) && decide_answer(h, f);
        if (h->verdict == HEALTH_DEGRADED && f->level == FINDING_GOOD)
                return is_over(rules, h->good, h->good_usec, now) && decide_answer(h, f);
        return decide_answer(h, f);
}

void health_clear(struct health *h)
{
        *h = (struct health){ .verdict = HEALTH_UNKNOWN, .usable = h->usable };
}

void health_restore(struct health *h, const struct health *saved, bool same_boot, uint64_t now)
{
        *h = *saved;
        h->saved = saved->waiting ? saved->saved : saved->verdict;
        h->waiting = true;
        h->verdict = HEALTH_UNKNOWN;
        h->usable = false;
        h->working = h->good = 0;
        if (!same_boot || (h->turn_count > 0 && h->turns[0] > now)) {
                memset(h->turns, 0, sizeof(h->turns));
                h->turn_count = 0;
                if (h->saved == HEALTH_QUARANTINED)
                        count_turn(h, now);
        }
}
