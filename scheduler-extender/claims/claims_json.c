/* Slices, claims and pods of DRA, field by field. */
#include "scheduler-extender/claims/claims_json.h"

#include <errno.h>
#include <string.h>

#include "base/json/json_field.h"

/* A member that is a string, or NULL. */
static const char *string_of(const struct json_field *in, const char *name)
{
        const char *text = NULL;

        return json_field_string(in, name, &text, NULL) == 0 ? text : NULL;
}

static bool is_true(const struct json_field *in, const char *name)
{
        bool value = false;

        return json_field_bool(in, name, &value, NULL) == 0 && value;
}

static int required(const struct json_field *in, const char *name, const char **ret, struct err *err)
{
        if (json_field_require(in, name, err) < 0 || json_field_string(in, name, ret, err) < 0)
                return -EBADMSG;
        return 0;
}

static int decode_device(const struct json_field *at, const char *whole, struct claims_slice_device *ret,
                         struct err *err)
{
        struct json_field attributes = json_field_get(at, "attributes"),
                          type_at = json_field_get(&attributes, "type"),
                          counters = json_field_get(at, "consumesCounters"),
                          first = json_field_at(&counters, 0);
        const char *type = string_of(&type_at, "string");

        *ret = (struct claims_slice_device){ .counters = string_of(&first, "counterSet") };
        ret->part = whole != NULL && type != NULL && strcmp(type, whole) != 0;
        ret->shared = is_true(at, "allowMultipleAllocations");
        return required(at, "name", &ret->name, err);
}

int claims_json_slice(const json_t *object, struct claims_slice_facts *ret, struct err *err)
{
        struct json_field root = json_field_root(object), spec = json_field_get(&root, "spec"),
                          pool = json_field_get(&spec, "pool"), devices;
        const char *whole = NULL;

        *ret = (struct claims_slice_facts){ .slice_count = 1 };
        if (json_field_is_object(&root, err) < 0 || required(&spec, "driver", &ret->driver, err) < 0 ||
            required(&pool, "name", &ret->pool, err) < 0 ||
            json_field_int64(&pool, "generation", INT64_MIN, INT64_MAX, &ret->generation, err) < 0 ||
            json_field_int64(&pool, "resourceSliceCount", 0, INT64_MAX, &ret->slice_count, err) < 0 ||
            json_field_string(&spec, "nodeName", &ret->node, err) < 0 ||
            json_field_array(&spec, "devices", CLAIMS_DEVICES_MAX, &devices, err) < 0)
                return -EBADMSG;
        if (ret->node != NULL && ret->node[0] == '\0')
                ret->node = NULL;
        ret->vendor = vendor_of_claims(ret->driver, &whole);
        for (size_t i = 0; i < json_field_count(&devices); i++) {
                struct json_field at = json_field_at(&devices, i);

                if (decode_device(&at, whole, &ret->devices[ret->device_count++], err) < 0)
                        return -EBADMSG;
        }
        return 0;
}

/* Of one request, or one of its alternatives: "All" may be none. */
static uint64_t asked_exactly(const struct json_field *at)
{
        const char *mode = string_of(at, "allocationMode");
        int64_t count = 1;

        if (!json_is_object(at->value) || is_true(at, "adminAccess") ||
            (mode != NULL && strcmp(mode, "ExactCount") != 0) ||
            json_field_int64(at, "count", 0, INT64_MAX, &count, NULL) < 0)
                return 0;
        return (uint64_t) count < CLAIMS_ASKED_MAX ? (uint64_t) count : CLAIMS_ASKED_MAX;
}

static uint64_t asked_of(const struct json_field *request)
{
        struct json_field exactly = json_field_get(request, "exactly"),
                          alternatives = json_field_get(request, "firstAvailable");
        uint64_t least = CLAIMS_ASKED_MAX;

        if (json_field_count(&alternatives) == 0)
                return asked_exactly(&exactly);
        for (size_t i = 0; i < json_field_count(&alternatives); i++) {
                struct json_field at = json_field_at(&alternatives, i);
                uint64_t asked = asked_exactly(&at);

                least = asked < least ? asked : least;
        }
        return least;
}

/* metadata.name of the one node that the selector names, as allocations of a node's devices have it. */
static const char *node_of(const struct json_field *allocation)
{
        struct json_field selector = json_field_get(allocation, "nodeSelector"),
                          terms = json_field_get(&selector, "nodeSelectorTerms"),
                          term = json_field_at(&terms, 0), fields = json_field_get(&term, "matchFields");

        for (size_t i = 0; i < json_field_count(&fields) && json_field_count(&terms) == 1; i++) {
                struct json_field field = json_field_at(&fields, i),
                                  values = json_field_get(&field, "values"),
                                  value = json_field_at(&values, 0);
                const char *key = string_of(&field, "key"), *operator= string_of(&field, "operator"),
                           *name = NULL;

                if (key != NULL &&
                    strcmp(key, "metadata.name") == 0 && operator!= NULL && strcmp(operator, "In") == 0 &&
                    json_field_count(&values) == 1 && json_field_as_string(&value, &name, NULL) == 0)
                        return name;
        }
        return NULL;
}

static int decode_results(const struct json_field *allocation, struct claims_claim_facts *ret,
                          struct err *err)
{
        struct json_field devices, results;

        if (json_field_object(allocation, "devices", &devices, err) < 0 ||
            json_field_array(&devices, "results", CLAIMS_RESULTS_MAX, &results, err) < 0)
                return -EBADMSG;
        for (size_t i = 0; i < json_field_count(&results); i++) {
                struct json_field at = json_field_at(&results, i);
                struct claims_result *result = &ret->results[ret->result_count];

                if (is_true(&at, "adminAccess"))
                        continue;
                if (required(&at, "driver", &result->driver, err) < 0 ||
                    required(&at, "pool", &result->pool, err) < 0 ||
                    required(&at, "device", &result->device, err) < 0)
                        return -EBADMSG;
                ret->result_count++;
        }
        return 0;
}

int claims_json_claim(const json_t *object, struct claims_claim_facts *ret, struct err *err)
{
        struct json_field root = json_field_root(object), spec = json_field_get(&root, "spec"),
                          devices = json_field_get(&spec, "devices"),
                          requests = json_field_get(&devices, "requests"),
                          status = json_field_get(&root, "status"), allocation;

        *ret = (struct claims_claim_facts){ 0 };
        if (json_field_is_object(&root, err) < 0 ||
            json_field_object(&status, "allocation", &allocation, err) < 0)
                return -EBADMSG;
        for (size_t i = 0; i < json_field_count(&requests); i++) {
                struct json_field request = json_field_at(&requests, i);

                ret->asked += asked_of(&request);
        }
        ret->allocated = allocation.value != NULL;
        ret->node = node_of(&allocation);
        return decode_results(&allocation, ret, err);
}

/* The claim that was made of a template, once it is. */
static const char *made_claim(const struct json_field *statuses, const char *name)
{
        for (size_t i = 0; i < json_field_count(statuses); i++) {
                struct json_field at = json_field_at(statuses, i);
                const char *of = string_of(&at, "name");

                if (name != NULL && of != NULL && strcmp(of, name) == 0)
                        return string_of(&at, "resourceClaimName");
        }
        return NULL;
}

static bool asks_us(const struct json_field *spec)
{
        struct json_field containers = json_field_get(spec, "containers");

        for (size_t i = 0; i < json_field_count(&containers); i++) {
                struct json_field container = json_field_at(&containers, i),
                                  resources = json_field_get(&container, "resources"),
                                  requests = json_field_get(&resources, "requests"),
                                  limits = json_field_get(&resources, "limits");

                if (json_field_get(&requests, POD_RESOURCE_CLAIM).value != NULL ||
                    json_field_get(&limits, POD_RESOURCE_CLAIM).value != NULL)
                        return true;
        }
        return false;
}

void claims_json_pod(const json_t *pod, struct claims_pod_facts *ret)
{
        struct json_field root = json_field_root(pod), spec = json_field_get(&root, "spec"),
                          status = json_field_get(&root, "status"),
                          claims = json_field_get(&spec, "resourceClaims"),
                          statuses = json_field_get(&status, "resourceClaimStatuses"),
                          extended = json_field_get(&status, "extendedResourceClaimStatus");

        *ret = (struct claims_pod_facts){ .has_claims = json_field_count(&claims) > 0,
                                          .extended = string_of(&extended, "resourceClaimName") };
        for (size_t i = 0; i < json_field_count(&claims) && ret->name_count < CLAIMS_PER_POD_MAX; i++) {
                struct json_field at = json_field_at(&claims, i);
                const char *name = string_of(&at, "resourceClaimName");

                if (name == NULL)
                        name = made_claim(&statuses, string_of(&at, "name"));
                if (name != NULL)
                        ret->names[ret->name_count++] = name;
        }
        ret->asks_us = asks_us(&spec);
}
