/* Secrets: what must not leave a machine, masked in texts and JSON values of any origin.
 *
 * Two passes. All that will be masked is studied first: the values that fields, variables and arguments of
 * JSON have under a secret name (secret_name.h), and what the caller knows, are then masked wherever they
 * stand, as a password of a pod's variable that the pod's log repeats. The rest is known by its form
 * (secret_ranges.h). Serial numbers are replaced by others of the same form (serials.h); they are known by
 * the field that they stand in (`serial`, `bootID`, a device's `id` that is not its PCI address ...), by
 * "GPU-" before a UUID, and, once learned, wherever they stand as a whole word.
 *
 * Pure but for the heap. Zero-initialised, owned by its user; once memory was short it is `failed`, and what
 * it has masked must not be used. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/name_map.h"
#include "base/text.h"

#define SECRETS_MASK        "[masked]"
#define SECRETS_LEAST_BYTES 8    /* shorter ones are not looked for everywhere: they are words, too */
#define SECRETS_MAX         1024 /* that are learned */
#define SECRETS_SERIALS_MAX 65536

struct secrets {
        char **values;
        size_t value_count;
        struct name_map serials;
        size_t masked, serials_masked; /* so far, over all texts and values */
        bool keep_serials;             /* of the text at hand: they are replaced already */
        bool full, serials_full;       /* more were there than are learned: those are masked by form alone */
        bool failed;
};

void secrets_free(struct secrets *secrets);

/* secrets_learn() - mask this wherever it stands; NULL and a short one are let be. */
void secrets_learn(struct secrets *secrets, const char *value);
/* secrets_study() - learn what stands under secret names, and in fields of serials. */
void secrets_study(struct secrets *secrets, const json_t *value);

/* secrets_mask_text() - append it masked. */
void secrets_mask_text(struct secrets *secrets, const char *bytes, size_t size_bytes, struct text *out);
/* secrets_mask_json() - a masked copy, a new reference; NULL: no memory. Under a secret name every string and
 * number goes, at any depth; in `{"name": N, "value": V}` V goes with a secret N; of arguments in an array
 * what follows "--token". Other strings are texts, those of JSON too. */
json_t *secrets_mask_json(struct secrets *secrets, const json_t *value);
/* secrets_mask_lines() - append a text of which some lines may be JSON, each masked as what it is. */
void secrets_mask_lines(struct secrets *secrets, const char *bytes, size_t size_bytes, struct text *out);
