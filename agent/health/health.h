/* Health: turns what the probes of a device find into one steady verdict, with a way back from every fault.
 *
 * Pure: no I/O, no clock, no allocation. Time is an argument, in microseconds of a clock that never goes back
 * and goes on over a restart of the program (CLOCK_BOOTTIME). One owner per state. O(1) in time and space.
 *
 * The rules, in order:
 *  - A device is unknown, and not usable, until its first answer; that answer is the verdict at once.
 *  - A bad finding makes it unhealthy at once.
 *  - It recovers after `recovery_probes` answers in a row that are not bad, over `recovery_usec` or longer.
 *    A degraded device becomes healthy by the same rule, counted in good answers.
 *  - More than `flap_changes` turns between bad and not bad within `flap_window_usec`: quarantined, until
 *    `quarantine_usec` without a turn, or an operator's word. What it answers then is the verdict.
 *  - "Could not be asked" is no answer: a healthy or degraded device becomes unknown and stays usable; a bad
 *    one stays bad; a recovery begins anew. The next answer decides.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/health/finding.h"
#include "agent/inventory/device.h"

struct health_rules {
        unsigned recovery_probes; /* >= 1 */
        uint64_t recovery_usec;   /* from the first of them to the last */
        unsigned flap_changes;    /* 1..HEALTH_FLAP_CHANGES_MAX; more than these in the window: quarantined */
        uint64_t flap_window_usec;
        uint64_t quarantine_usec; /* this long without a turn ends a quarantine */
};

#define HEALTH_FLAP_CHANGES_MAX 15
#define HEALTH_RULES_DEFAULT                                                                                 \
        {                                                                                                    \
                .recovery_probes = 3, .recovery_usec = 60000000, .flap_changes = 3,                          \
                .flap_window_usec = 600000000, .quarantine_usec = 600000000,                                 \
        }

/* The state of one device; zero before its first finding. */
struct health {
        enum device_health verdict;
        bool usable;
        bool judged;                                 /* has answered since the state was new or cleared */
        bool bad;                                    /* the last answer was bad */
        bool waiting;                                /* restored, and no answer since */
        enum device_health saved;                    /* then: the verdict it goes on from */
        char rule[48], reason[32], message[160];     /* of the verdict; "" when healthy */
        unsigned working, good;                      /* answers in a row that were not bad; that were good */
        uint64_t working_usec, good_usec;            /* when those rows began */
        uint64_t turns[HEALTH_FLAP_CHANGES_MAX + 1]; /* when it turned, the latest first */
        size_t turn_count;
};

/* health_feed() - one finding at `now_usec`.
 * Return: true when anything that is shown changed: verdict, usable, reason, message or rule. */
bool health_feed(struct health *health, const struct health_rules *rules, const struct finding *finding,
                 uint64_t now_usec);

/* health_clear() - an operator's word: faults and turns are forgotten, the next answer decides at once. */
void health_clear(struct health *health);

/* health_restore() - make of a state that was saved before a restart one that waits for its first answer:
 * it is unknown and not usable until then, and goes on from the saved verdict afterwards.
 * @same_boot: the saved times are of this clock; otherwise the turns are forgotten and a quarantine begins
 *             anew at `now_usec`. */
void health_restore(struct health *health, const struct health *saved, bool same_boot, uint64_t now_usec);
