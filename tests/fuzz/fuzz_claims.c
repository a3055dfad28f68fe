/* Any JSON as slices, claims and pods of DRA: no account says more than it was offered, and none is left when
 * all of them are gone. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "scheduler-extender/claims/claims_account.h"
#include "scheduler-extender/claims/claims_asked.h"
#include "scheduler-extender/claims/claims_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEYS 16 /* of each kind: the same ones come again */

static void check_node(struct claims *claims, const char *node)
{
        struct claims_account account;

        claims_account(claims, node, &account);
        if (account.free > account.offered || account.chip_count > CLAIMS_ACCOUNT_VENDORS_MAX)
                __builtin_trap();
        for (size_t i = 0; i < account.chip_count; i++)
                if (account.chips[i].offered > account.offered ||
                    (account.chips[i].offered > 0 && !account.chips[i].offers))
                        __builtin_trap();
}

static void tell_changes(struct claims *claims)
{
        const char *node;

        while ((node = claims_next_changed(claims)) != NULL)
                check_node(claims, node);
}

/* By classes of ours no more is asked for than at all. */
static void check_asks(const struct claims *claims, const char *pod)
{
        struct claims_ask asks[CLAIMS_ASKS_MAX];
        size_t count = claims_asked_classes_by(claims, pod, asks);
        uint64_t least = 0;

        for (size_t i = 0; i < count; i++) {
                uint64_t smallest = UINT32_MAX;

                for (size_t k = 0; k < asks[i].choice_count; k++)
                        if (asks[i].choices[k].devices < smallest)
                                smallest = asks[i].choices[k].devices;
                least += smallest;
        }
        if (least < UINT32_MAX && least > claims_asked_by(claims, pod))
                __builtin_trap();
}

static void take(struct claims *claims, const json_t *object, size_t index)
{
        struct claims_slice_facts slice;
        struct claims_claim_facts claim;
        struct claims_pod_facts pod;
        char key[32];

        (void) snprintf(key, sizeof(key), "ns/%zu", index % KEYS);
        if (claims_json_slice(object, &slice, NULL) == 0)
                (void) claims_set_slice(claims, key + 3, &slice);
        if (claims_json_claim(object, &claim, NULL) == 0)
                (void) claims_set_claim(claims, key, &claim);
        if (claims_json_template(object, &claim, NULL) == 0)
                (void) claims_set_template(claims, key, &claim);
        claims_json_pod(object, &pod);
        (void) claims_set_pod(claims, key, &pod);
        if (claims_asked(claims, "ns", &pod) < claims_asked_by(claims, key))
                __builtin_trap();
        check_asks(claims, key);
        tell_changes(claims);
}

static void drop(struct claims *claims, size_t index)
{
        char key[32];

        (void) snprintf(key, sizeof(key), "ns/%zu", index);
        (void) claims_set_pod(claims, key, NULL);
        (void) claims_set_claim(claims, key, NULL);
        (void) claims_set_template(claims, key, NULL);
        (void) claims_set_slice(claims, key + 3, NULL);
        tell_changes(claims);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *list = json_read((const char *) data, size, 0, NULL), *item;
        struct claims *claims = claims_new();
        size_t i;

        if (claims == NULL)
                abort();
        json_array_foreach(list, i, item) take(claims, item, i);
        for (i = 0; i < KEYS; i++)
                drop(claims, i);
        if (claims_has_slices(claims) || claims_held(claims) != 0 || claims_loose(claims) != 0)
                __builtin_trap();
        claims_free(claims);
        json_decref(list);
        return 0;
}
