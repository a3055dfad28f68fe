/* Tally: all nodes judged for one request, and counted by their reasons. What explain, whatif, the pod's
 * event and the metrics say of a pod that waits is said from here, so that they say the same. Pure but for
 * the heap. */
#pragma once

#include "scheduler-extender/decide/rules.h"

#define TALLY_EXAMPLES       3
#define TALLY_SENTENCE_BYTES 512

struct tally {
        uint32_t nodes;                /* in all */
        uint32_t counts[REASON_COUNT]; /* [REASON_NONE]: those that take it */
        const struct ledger_node
                *nearest[REASON_COUNT][TALLY_EXAMPLES]; /* with the fewest chips missing, equal ones by
                                                           name; NULL = there are no more */
        enum reason order[REASON_COUNT]; /* those that occur: what fits, what time may mend, the rest; the
                                            most frequent first */
        size_t order_count;
};

/* tally_nodes() - O(nodes x groups). */
void tally_nodes(const struct rules_context *ctx, struct tally *ret);

/* tally_verdict() - "fits", "waits" or "never" of one reason. */
const char *tally_verdict(enum reason reason);

/* tally_top() - the word for the whole: the first of `order`; REASON_NONE if a node takes it or there is
 * none. */
enum reason tally_top(const struct tally *tally);

/* tally_sentence() - "no node of 1000 takes it: 900 ChipsBusy, 80 WrongModel, 20 MultiChipNode", three words
 * at most, "and 7 more" nodes; and for whom chips are held. */
void tally_sentence(const struct rules_context *ctx, const struct tally *tally,
                    char sentence[TALLY_SENTENCE_BYTES]);
