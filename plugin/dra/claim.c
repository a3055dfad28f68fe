/* Claim: what of a ResourceClaim's allocation is this node's to prepare, or why it cannot be. */
#include "plugin/dra/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/quantity.h"
#include "base/text.h"
#include "plugin/dra/slices_device.h"

static ssize_t find_device(const struct claim_node *node, const char *name)
{
        for (size_t i = 0; i < node->inventory->device_count; i++)
                if (node->names[i].label[0] != '\0' && strcmp(node->names[i].label, name) == 0)
                        return (ssize_t) i;
        return -1;
}

/* What the allocation says that a share has of a capacity of ours, by its name alone or with our domain
 * before it. Without a word *ret stays. What cannot be read is not counted as nothing: whoever wrote it would
 * have a device beside all others. */
static int read_amount(const struct json_field *result, const char *name, int64_t least, uint64_t *ret,
                       struct err *err)
{
        struct json_field consumed, at;
        CLEANUP(free_p) char *shown = NULL;
        char full[64];
        int64_t amount;

        if (json_field_object(result, "consumedCapacity", &consumed, err) < 0)
                return -EBADMSG;
        (void) text_format(full, sizeof(full), DRA_NAME_DRIVER "/%s", name);
        at = json_field_get(&consumed, name);
        if (at.value == NULL)
                at = json_field_get(&consumed, full);
        if (at.value == NULL)
                return 0;
        if (json_is_string(at.value) && quantity_parse(json_string_value(at.value), &amount) == 0 &&
            amount >= least) {
                *ret = (uint64_t) amount;
                return 0;
        }
        shown = json_dumps(at.value, JSON_ENCODE_ANY);
        return err_set(err, -EBADMSG,
                       "its share of device '%.63s' has %s %.60s: must be a quantity, as text, from %jd to "
                       "2^63 - 1",
                       json_field_word(result, "device"), name, shown != NULL ? shown : "?",
                       (intmax_t) least);
}

/* Only a device of a group that has replicas is shared. An allocation that has a share of another one was not
 * made by a scheduler that read this slice, and may be one of several. */
static int read_share(const struct json_field *result, const struct claim_node *node,
                      const struct device *device, struct dra_state_device *ret, struct err *err)
{
        struct dra_share_room room = bundles_room(node->inventory, device);
        uint64_t shares = 1;
        int r;

        if (ret->share[0] == '\0')
                return 0;
        if (room.shares == 1)
                return err_set(err, -EBADMSG,
                               device == NULL
                                       ? "it has a share of its device '%s', which is several as one: these "
                                         "are not shared"
                                       : "it has a share of its device '%s', which is one claim's alone: its "
                                         "group has no `replicas`",
                               ret->name);
        ret->memory_bytes = dra_share_memory(&room);
        r = read_amount(result, "memory", room.memory_bytes > 0 ? 1 : 0, &ret->memory_bytes, err);
        if (r == 0)
                r = read_amount(result, "shares", 1, &shares, err);
        ret->shares = shares > 1 ? shares : 0;
        return r;
}

/* What all devices of a result have in common. */
static int fill_result(const struct json_field *result, const struct claim_node *node,
                       struct dra_state_device *ret, struct err *err)
{
        const char *name = json_field_word(result, "device"), *request = json_field_word(result, "request"),
                   *pool = json_field_word(result, "pool");

        if (strcmp(pool, node->name) != 0)
                return err_set(err, -EBADMSG,
                               "its device '%.63s' is of pool '%.100s': another node's, this one is %s", name,
                               pool, node->name);
        (void) json_field_bool(result, "adminAccess", &ret->admin, NULL);
        if (!text_format(ret->request, sizeof(ret->request), "%.*s", (int) strcspn(request, "/"), request) ||
            ret->request[0] == '\0')
                return err_set(err, -EBADMSG, "its device '%.63s' is of no request", name);
        (void) text_copy(ret->name, sizeof(ret->name), name);
        (void) text_copy(ret->share, sizeof(ret->share), json_field_word(result, "shareID"));
        return 0;
}

/* Is it of our taint, as kube-scheduler compares them? A device that fell ill after it was allocated is for
 * those alone who said that they take such a one; who tolerates another driver's taint did not. */
static bool tolerates(const struct json_field *toleration, const char *reason)
{
        const char *key = json_field_word(toleration, "key"), *effect = json_field_word(toleration, "effect");
        bool exists = strcmp(json_field_word(toleration, "operator"), "Exists") == 0;

        if (effect[0] != '\0' && strcmp(effect, "NoSchedule") != 0)
                return false;
        if (key[0] == '\0')
                return exists;
        return strcmp(key, SLICES_HEALTH_TAINT) == 0 &&
               (exists || strcmp(json_field_word(toleration, "value"), reason) == 0);
}

static int check_usable(const struct json_field *result, const struct device *device,
                        const struct dra_state_device *as, struct err *err)
{
        struct json_field tolerations = json_field_get(result, "tolerations");

        if (device->usable || as->admin)
                return 0;
        for (size_t i = 0; i < json_field_count(&tolerations); i++) {
                struct json_field toleration = json_field_at(&tolerations, i);

                if (tolerates(&toleration, slices_device_taint(device)))
                        return 0;
        }
        return err_set(err, -EBADMSG, "its device '%s' must not be used: %s: %s", as->name,
                       device->reason[0] != '\0' ? device->reason : device_health_name(device->health),
                       device->message);
}

static int fill_device(const struct json_field *result, const struct claim_node *node,
                       struct dra_state_claim *ret, struct err *err)
{
        const char *name = json_field_word(result, "device");
        const struct bundle *bundle = bundles_named(node->bundles, name);
        ssize_t single = find_device(node, name);
        size_t count = bundle != NULL ? bundle->device_count : 1;
        struct dra_state_device as = { .admin = false };
        int r = fill_result(result, node, &as, err);

        if (r == 0 && bundle == NULL && single < 0)
                r = err_set(err, -EBADMSG,
                            "its device '%.63s' is not one of node %s (`remuda plan slices` lists them)",
                            name, node->name);
        if (r == 0)
                r = read_share(result, node, bundle != NULL ? NULL : &node->inventory->devices[single], &as,
                               err);
        if (r == 0 && ret->device_count + count > DRA_STATE_DEVICES_MAX)
                r = err_set(err, -EBADMSG, "it has more than %d devices", DRA_STATE_DEVICES_MAX);
        for (size_t i = 0; r == 0 && i < count; i++) {
                size_t index = bundle != NULL ? bundle->devices[i] : (size_t) single;
                const struct device *device = &node->inventory->devices[index];

                r = check_usable(result, device, &as, err);
                (void) text_copy(as.id, sizeof(as.id), device->id);
                ret->devices[ret->device_count++] = as;
        }
        return r;
}

/* What says how a device is to be set up, and says it to this driver: there is nothing of the kind. */
static int check_config(const struct json_field *devices, struct err *err)
{
        struct json_field config = json_field_get(devices, "config");

        for (size_t i = 0; i < json_field_count(&config); i++) {
                struct json_field at = json_field_at(&config, i), opaque = json_field_get(&at, "opaque");

                if (strcmp(json_field_word(&opaque, "driver"), DRA_NAME_DRIVER) == 0)
                        return err_set(err, -EBADMSG,
                                       "it has parameters for driver " DRA_NAME_DRIVER
                                       ", which knows none; take them out of its config");
        }
        return 0;
}

static int fill(const struct json_field *devices, const struct claim_node *node, struct dra_state_claim *ret,
                struct err *err)
{
        struct json_field results;
        int r = json_field_array(devices, "results", DRA_STATE_RESULTS_MAX, &results, err);

        if (r < 0)
                return r;
        ret->devices = calloc(json_field_count(&results) * BUNDLES_COUNTERS_MAX + 1, sizeof(*ret->devices));
        if (ret->devices == NULL)
                return err_set(err, -ENOMEM, "no memory for a claim");
        for (size_t i = 0; i < json_field_count(&results); i++) {
                struct json_field result = json_field_at(&results, i);

                if (strcmp(json_field_word(&result, "driver"), DRA_NAME_DRIVER) != 0)
                        continue;
                r = fill_device(&result, node, ret, err);
                if (r < 0)
                        return r;
        }
        if (ret->device_count == 0)
                return err_set(err, -EBADMSG, "no device of driver " DRA_NAME_DRIVER " is allocated to it");
        return check_config(devices, err);
}

int claim_read(const json_t *object, const char *uid, const struct claim_node *node,
               struct dra_state_claim *ret, struct err *err)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata"),
                          status = json_field_get(&root, "status"),
                          allocation = json_field_get(&status, "allocation"),
                          devices = json_field_get(&allocation, "devices"),
                          reserved = json_field_get(&status, "reservedFor"),
                          first = json_field_at(&reserved, 0);
        int r;

        *ret = (struct dra_state_claim){ .device_count = 0 };
        if (strcmp(json_field_word(&metadata, "uid"), uid) != 0)
                return err_set(err, -EBADMSG,
                               "the claim of this name has uid %.63s now, it was deleted and made anew",
                               json_field_word(&metadata, "uid"));
        if (!json_is_object(allocation.value))
                return err_set(err, -EBADMSG, "it is not allocated");
        (void) text_copy(ret->uid, sizeof(ret->uid), uid);
        (void) text_copy(ret->namespace_, sizeof(ret->namespace_), json_field_word(&metadata, "namespace"));
        (void) text_copy(ret->name, sizeof(ret->name), json_field_word(&metadata, "name"));
        if (strcmp(json_field_word(&first, "resource"), "pods") == 0)
                (void) text_copy(ret->pod, sizeof(ret->pod), json_field_word(&first, "name"));
        r = fill(&devices, node, ret, err);
        if (r < 0)
                dra_state_claim_free(ret);
        return r;
}

/* Is a result of ours what the account says of a device? */
static bool is_result(const struct json_field *result, const struct dra_state_device *device,
                      const char *node)
{
        return strcmp(json_field_word(result, "driver"), DRA_NAME_DRIVER) == 0 &&
               strcmp(json_field_word(result, "pool"), node) == 0 &&
               strcmp(json_field_word(result, "device"), device->name) == 0 &&
               strcmp(json_field_word(result, "shareID"), device->share) == 0;
}

static bool is_given(const struct json_field *results, const struct dra_state_device *device,
                     const char *node)
{
        for (size_t i = 0; i < json_field_count(results); i++) {
                struct json_field result = json_field_at(results, i);

                if (is_result(&result, device, node))
                        return true;
        }
        return false;
}

bool claim_stands(const json_t *object, const struct dra_state_claim *claim, const char *node)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata"),
                          status = json_field_get(&root, "status"),
                          reserved = json_field_get(&status, "reservedFor"),
                          allocation = json_field_get(&status, "allocation"),
                          devices = json_field_get(&allocation, "devices"),
                          results = json_field_get(&devices, "results");

        if (strcmp(json_field_word(&metadata, "uid"), claim->uid) != 0 || json_field_count(&reserved) == 0)
                return false;
        for (size_t i = 0; i < claim->device_count; i++)
                if (!is_given(&results, &claim->devices[i], node))
                        return false;
        return true;
}
