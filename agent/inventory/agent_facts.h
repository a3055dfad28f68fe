/* Agent facts: what an agent says of itself, beside the devices of its node: its version, how each vendor's
 * library is, what the kubelet has taken of what it offers. And when a change of that alone is worth telling.
 * Pure data; time is an argument. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/inventory/device.h"

enum agent_facts_state {
        AGENT_FACTS_UNKNOWN,  /* never written: a word that is not known here, of an agent that is newer */
        AGENT_FACTS_ABSENT,   /* there is no such library: no error */
        AGENT_FACTS_STARTING, /* it was asked, and has not answered yet */
        AGENT_FACTS_ANSWERS,
        AGENT_FACTS_SILENT, /* it hangs, crashes or refuses: `message` says which */
        AGENT_FACTS_STATES
};

extern const char *const agent_facts_states[AGENT_FACTS_STATES + 1]; /* their words; ends with NULL */

#define AGENT_FACTS_LIBRARIES_MAX 16
#define AGENT_FACTS_OFFERS_MAX    64

struct agent_facts_library {
        char vendor[24];
        enum agent_facts_state state;
        char message[64]; /* why it is silent */
};

/* What the agent offers the kubelet: a resource of the device plugin; without a '/' in its name the driver of
 * claims. */
struct agent_facts_offer {
        char name[DEVICE_RESOURCE_BYTES];
        bool registered; /* the kubelet has taken it, and reads its list */
};

/* All zero = nothing is said, as by agents that did not say it yet, and without an agent. */
struct agent_facts {
        char version[64];
        struct agent_facts_library
                libraries[AGENT_FACTS_LIBRARIES_MAX]; /* of the vendors here that are asked */
        size_t library_count;
        struct agent_facts_offer offers[AGENT_FACTS_OFFERS_MAX]; /* none where no kubelet is */
        size_t offer_count;
};

bool agent_facts_same(const struct agent_facts *a, const struct agent_facts *b);

/* agent_facts_tidy() - entries without a name are taken out. */
void agent_facts_tidy(struct agent_facts *facts);

/* How often facts are told that change while nothing else does: AGENT_FACTS_BURST changes at once, then one a
 * minute, so that a library that comes and goes costs the store no more than that. Zero at first. */
#define AGENT_FACTS_BURST      8
#define AGENT_FACTS_PAUSE_USEC UINT64_C(60000000)

struct agent_facts_pace {
        uint64_t paid_usec; /* until when the changes that were told are paid for */
};

/* agent_facts_are_news() - do they differ from what was told, and is it time? Then they count as told. */
bool agent_facts_are_news(struct agent_facts_pace *pace, const struct agent_facts *told,
                          const struct agent_facts *now, uint64_t now_usec);
