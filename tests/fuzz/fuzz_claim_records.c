/* Any bytes as CDI specs of a folder, a line each: whatever they say, no device is held twice, and what was
 * taken is taken again from the spec that would be written of it. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/dra/account/claim_records.h"
#include "plugin/dra/claim_cdi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_again(const struct dra_state_claim *claim)
{
        struct dra_state_change change = { .added = (struct dra_state_claim *) claim, .added_count = 1 };
        struct dra_state again = { .count = 0 };
        char *line = dra_state_encode_change(&change), *second, *text;
        json_t *spec = line == NULL ? NULL : json_pack("{s:{s:s}}", "annotations", CLAIM_CDI_RECORD, line);

        text = spec == NULL ? NULL : json_dumps(spec, 0);
        if (text == NULL || claim_record_take(&again, claim->uid, text, strlen(text), NULL) < 0)
                abort();
        change.added = again.claims;
        second = dra_state_encode_change(&change);
        if (second == NULL || strcmp(line, second) != 0)
                abort();
        free(line);
        free(second);
        free(text);
        json_decref(spec);
        dra_state_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char *const uids[] = { "u0", "u1", "u2", "u3" };
        struct dra_state state = { .count = 0 };
        const char *at = (const char *) data;

        for (size_t i = 0; i < sizeof(uids) / sizeof(uids[0]) && size > 0; i++) {
                const char *end = memchr(at, '\n', size);
                size_t bytes = end == NULL ? size : (size_t) (end - at), before = state.count;
                int r = claim_record_take(&state, uids[i], at, bytes, NULL);

                if (state.count != before + (r == 0) || dra_state_check(&state, NULL) < 0 ||
                    (r == 0 && dra_state_find(&state, uids[i]) == NULL))
                        abort();
                bytes += end != NULL;
                at += bytes;
                size -= bytes;
        }
        for (size_t i = 0; i < state.count; i++)
                take_again(&state.claims[i]);
        dra_state_free(&state);
        return 0;
}
