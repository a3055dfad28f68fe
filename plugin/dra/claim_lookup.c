/* Lookup: claims of the account, asked for at the store one after the other. */
#include "plugin/dra/claim_lookup.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "plugin/dra/claim.h"
#include "store/store_read.h"

static void go_on(struct claim_lookup *lookup);

int claim_lookup_add(struct claim_lookup *lookup, const struct dra_state_claim *claim)
{
        struct claim_lookup_claim *added;

        assert(!lookup->busy);
        if (lookup->at > 0)
                lookup->at = lookup->count = 0;
        for (size_t i = 0; i < lookup->count; i++)
                if (strcmp(lookup->claims[i].uid, claim->uid) == 0)
                        return 0;
        added = array_add(&lookup->claims, &lookup->count, &lookup->capacity, sizeof(*added));
        if (added == NULL)
                return -ENOMEM;
        (void) text_copy(added->uid, sizeof(added->uid), claim->uid);
        (void) text_copy(added->namespace_, sizeof(added->namespace_), claim->namespace_);
        (void) text_copy(added->name, sizeof(added->name), claim->name);
        return 0;
}

/* The account may have let it go meanwhile: then there is nothing to be said of it. */
static void on_object(void *userdata, const json_t *object)
{
        struct claim_lookup *lookup = userdata;
        const struct dra_state_claim *claim =
                dra_state_find(lookup->options.state, lookup->claims[lookup->at].uid);

        if (claim == NULL || claim_stands(object, claim, lookup->options.node))
                lookup->answer = CLAIM_LOOKUP_STANDS;
        else
                lookup->answer = CLAIM_LOOKUP_GONE;
}

static void on_answer(void *userdata, int result, const char *sentence)
{
        struct claim_lookup *lookup = userdata;
        enum claim_lookup_answer answer = result == -ENOENT ? CLAIM_LOOKUP_GONE
                                          : result < 0      ? CLAIM_LOOKUP_NOT_KNOWN
                                                            : lookup->answer;

        (void) sentence;
        if (result == -ECANCELED) /* the store is being closed: nothing more is asked of it */
                lookup->at = lookup->count - 1;
        if (!lookup->options.each(lookup->options.userdata, &lookup->claims[lookup->at], answer))
                lookup->at = lookup->count - 1;
        lookup->at++;
        lookup->answered = true;
        if (!lookup->asking)
                go_on(lookup);
}

/* A store in a folder answers from within: no call a claim on the stack. */
static void go_on(struct claim_lookup *lookup)
{
        while (lookup->at < lookup->count) {
                const struct claim_lookup_claim *claim = &lookup->claims[lookup->at];

                lookup->answer = CLAIM_LOOKUP_NOT_KNOWN;
                lookup->answered = false;
                lookup->asking = true;
                store_read(lookup->options.store, STORE_RESOURCE_CLAIM, claim->namespace_, claim->name,
                           on_object, on_answer, lookup);
                lookup->asking = false;
                if (!lookup->answered)
                        return;
        }
        lookup->busy = false;
        lookup->options.end(lookup->options.userdata);
}

bool claim_lookup_begin(struct claim_lookup *lookup, const struct claim_lookup_options *options)
{
        if (lookup->at > 0 || lookup->count == 0)
                return false;
        lookup->options = *options;
        lookup->busy = true;
        go_on(lookup);
        return true;
}

void claim_lookup_free(struct claim_lookup *lookup)
{
        free(lookup->claims);
        *lookup = (struct claim_lookup){ .count = 0 };
}
