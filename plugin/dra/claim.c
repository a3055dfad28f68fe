/* Claim: what of a ResourceClaim's allocation is this node's to prepare, or why it cannot be. */
#include "plugin/dra/claim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_field.h"
#include "base/text.h"

static ssize_t find_device(const struct claim_node *node, const char *name)
{
        for (size_t i = 0; i < node->inventory->device_count; i++)
                if (node->names[i].label[0] != '\0' && strcmp(node->names[i].label, name) == 0)
                        return (ssize_t) i;
        return -1;
}

/* A member that is a string; "" = there is none. */
static const char *word(const struct json_field *in, const char *name)
{
        const char *text = NULL;

        return json_field_string(in, name, &text, NULL) == 0 ? text : "";
}

static int fill_device(const struct json_field *result, const struct claim_node *node,
                       struct dra_state_device *ret, struct err *err)
{
        const char *name = word(result, "device"), *request = word(result, "request"),
                   *pool = word(result, "pool");
        ssize_t index = find_device(node, name);
        struct json_field tolerations = json_field_get(result, "tolerations");
        const struct device *device;

        if (strcmp(pool, node->name) != 0)
                return err_set(err, -EBADMSG,
                               "its device '%.63s' is of pool '%.100s': another node's, this one is %s", name,
                               pool, node->name);
        if (index < 0)
                return err_set(err, -EBADMSG,
                               "its device '%.63s' is not one of node %s (`remuda plan slices` lists them)",
                               name, node->name);
        device = &node->inventory->devices[index];
        (void) json_field_bool(result, "adminAccess", &ret->admin, NULL);
        if (!device->usable && !ret->admin && json_field_count(&tolerations) == 0)
                return err_set(err, -EBADMSG, "its device '%s' must not be used: %s: %s", name,
                               device->reason[0] != '\0' ? device->reason
                                                         : device_health_name(device->health),
                               device->message);
        if (!text_format(ret->request, sizeof(ret->request), "%.*s", (int) strcspn(request, "/"), request) ||
            ret->request[0] == '\0')
                return err_set(err, -EBADMSG, "its device '%s' is of no request", name);
        (void) text_copy(ret->name, sizeof(ret->name), name);
        (void) text_copy(ret->id, sizeof(ret->id), device->id);
        return 0;
}

/* What says how a device is to be set up, and says it to this driver: there is nothing of the kind. */
static int check_config(const struct json_field *devices, struct err *err)
{
        struct json_field config = json_field_get(devices, "config");

        for (size_t i = 0; i < json_field_count(&config); i++) {
                struct json_field at = json_field_at(&config, i), opaque = json_field_get(&at, "opaque");

                if (strcmp(word(&opaque, "driver"), DRA_NAME_DRIVER) == 0)
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
        ret->devices = calloc(json_field_count(&results) + 1, sizeof(*ret->devices));
        if (ret->devices == NULL)
                return err_set(err, -ENOMEM, "no memory for a claim");
        for (size_t i = 0; i < json_field_count(&results); i++) {
                struct json_field result = json_field_at(&results, i);

                if (strcmp(word(&result, "driver"), DRA_NAME_DRIVER) != 0)
                        continue;
                r = fill_device(&result, node, &ret->devices[ret->device_count++], err);
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
        if (strcmp(word(&metadata, "uid"), uid) != 0)
                return err_set(err, -EBADMSG,
                               "the claim of this name has uid %.63s now, it was deleted and made anew",
                               word(&metadata, "uid"));
        if (!json_is_object(allocation.value))
                return err_set(err, -EBADMSG, "it is not allocated");
        (void) text_copy(ret->uid, sizeof(ret->uid), uid);
        (void) text_copy(ret->namespace_, sizeof(ret->namespace_), word(&metadata, "namespace"));
        (void) text_copy(ret->name, sizeof(ret->name), word(&metadata, "name"));
        if (strcmp(word(&first, "resource"), "pods") == 0)
                (void) text_copy(ret->pod, sizeof(ret->pod), word(&first, "name"));
        r = fill(&devices, node, ret, err);
        if (r < 0)
                dra_state_claim_free(ret);
        return r;
}
