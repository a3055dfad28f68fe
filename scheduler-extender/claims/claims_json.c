/* Slices, claims and pods of DRA, field by field. */
#include "scheduler-extender/claims/claims_json.h"

#include <errno.h>
#include <string.h>

#include "agent/vendor/device_class.h"
#include "base/json/json_field.h"
#include "base/quantity.h"
#include "base/text.h"

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

/* An attribute of ours that is a string, by its name alone or with our domain before it. */
static const char *attribute_of(const struct json_field *attributes, const char *name)
{
        char full[64];
        struct json_field at = json_field_get(attributes, name);

        (void) text_format(full, sizeof(full), DRA_NAME_DRIVER "/%s", name);
        if (at.value == NULL)
                at = json_field_get(attributes, full);
        return string_of(&at, "string");
}

/* A quantity of ours, by its name alone or with our domain before it; 0 = there is none. */
static uint64_t amount_of(const struct json_field *in, const char *name, bool capacity)
{
        char full[64];
        struct json_field at = json_field_get(in, name);
        const char *text;
        int64_t amount = 0;

        (void) text_format(full, sizeof(full), DRA_NAME_DRIVER "/%s", name);
        if (at.value == NULL)
                at = json_field_get(in, full);
        text = capacity ? string_of(&at, "value") : json_string_value(at.value);
        return text != NULL && quantity_parse(text, &amount) == 0 && amount > 0 ? (uint64_t) amount : 0;
}

static uint32_t count_of(uint64_t amount)
{
        return amount < UINT32_MAX ? (uint32_t) amount : UINT32_MAX;
}

/* Counters are called as the devices are that draw on one alone; who draws on several stands for these. */
static void decode_members(const struct json_field *consumes, struct claims_slice_facts *facts,
                           struct claims_slice_device *ret)
{
        struct json_field counters = json_field_get(consumes, "counters");
        const char *name;
        json_t *value;

        ret->first_member = facts->member_count;
        if (json_object_size(counters.value) < 2 ||
            facts->member_count + json_object_size(counters.value) > CLAIMS_MEMBERS_MAX)
                return;
        json_object_foreach((json_t *) counters.value, name, value)
        {
                facts->members[facts->member_count++] = name;
                ret->member_count++;
        }
}

/* Our driver has devices of every vendor, and a counter for each. */
static void decode_ours(const struct json_field *at, struct claims_slice_facts *facts,
                        struct claims_slice_device *ret)
{
        struct json_field attributes = json_field_get(at, "attributes"),
                          capacity = json_field_get(at, "capacity"),
                          consumes = json_field_get(at, "consumesCounters"),
                          first = json_field_at(&consumes, 0);
        const char *vendor = attribute_of(&attributes, "vendor"), *group = attribute_of(&attributes, "group");

        ret->vendor = vendor == NULL ? NULL : vendor_find(vendor, NULL);
        ret->group = group == NULL || group[0] == '\0' ? NULL : group;
        ret->counters = NULL;
        decode_members(&first, facts, ret);
        if (!ret->shared)
                return;
        ret->shares = count_of(amount_of(&capacity, "shares", true));
        ret->memory_bytes = amount_of(&capacity, "memory", true);
}

static int decode_device(const struct json_field *at, const char *whole, bool ours,
                         struct claims_slice_facts *facts, struct err *err)
{
        struct claims_slice_device *ret = &facts->devices[facts->device_count++];
        struct json_field attributes = json_field_get(at, "attributes"),
                          type_at = json_field_get(&attributes, "type"),
                          counters = json_field_get(at, "consumesCounters"),
                          first = json_field_at(&counters, 0);
        const char *type = string_of(&type_at, "string");

        *ret = (struct claims_slice_device){ .counters = string_of(&first, "counterSet") };
        ret->part = whole != NULL && type != NULL && strcmp(type, whole) != 0;
        ret->shared = is_true(at, "allowMultipleAllocations");
        if (ours)
                decode_ours(at, facts, ret);
        return required(at, "name", &ret->name, err);
}

int claims_json_slice(const json_t *object, struct claims_slice_facts *ret, struct err *err)
{
        struct json_field root = json_field_root(object), spec = json_field_get(&root, "spec"),
                          pool = json_field_get(&spec, "pool"), devices;
        const char *whole = NULL;
        bool ours;

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
        ours = strcmp(ret->driver, DRA_NAME_DRIVER) == 0;
        for (size_t i = 0; i < json_field_count(&devices); i++) {
                struct json_field at = json_field_at(&devices, i);

                if (decode_device(&at, whole, ours, ret, err) < 0)
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

/* Return: is it of a class of ours, and for so many? */
static bool decode_choice(const struct json_field *at, struct claims_choice *ret)
{
        const char *class_ = string_of(at, "deviceClassName");
        uint64_t asked = asked_exactly(at);

        if (class_ == NULL || !device_class_is_ours(class_) || asked == 0)
                return false;
        *ret = (struct claims_choice){ .of = class_ + strlen(DEVICE_CLASS_PREFIX),
                                       .devices = (uint32_t) asked };
        return true;
}

/* Return: is each of its choices by a class of ours? Where one is not, nobody here knows what it would take.
 */
static bool decode_ask(const struct json_field *request, struct claims_ask *ret)
{
        struct json_field exactly = json_field_get(request, "exactly"),
                          choices = json_field_get(request, "firstAvailable");
        size_t count = json_field_count(&choices);

        *ret = (struct claims_ask){ 0 };
        if (count == 0 && decode_choice(&exactly, &ret->choices[0]))
                ret->choice_count = 1;
        for (size_t i = 0; i < count; i++) {
                struct json_field at = json_field_at(&choices, i);

                if (count > CLAIMS_CHOICES_MAX || !decode_choice(&at, &ret->choices[i]))
                        return false;
                ret->choice_count = count;
        }
        return ret->choice_count > 0;
}

/* Does a constraint that devices have one group speak of the request of that name? */
static bool is_in_one_group(const struct json_field *devices, const char *name)
{
        struct json_field constraints = json_field_get(devices, "constraints");

        for (size_t i = 0; i < json_field_count(&constraints); i++) {
                struct json_field at = json_field_at(&constraints, i), of = json_field_get(&at, "requests");
                const char *attribute = string_of(&at, "matchAttribute"), *one = NULL;

                if (attribute == NULL || strcmp(attribute, DRA_NAME_DRIVER "/group") != 0)
                        continue;
                for (size_t k = 0; k < json_field_count(&of); k++) {
                        struct json_field item = json_field_at(&of, k);

                        if (name != NULL && json_field_as_string(&item, &one, NULL) == 0 &&
                            strcmp(one, name) == 0)
                                return true;
                }
                if (json_field_count(&of) == 0)
                        return true;
        }
        return false;
}

static void decode_asks(const struct json_field *devices, struct claims_claim_facts *ret)
{
        struct json_field requests = json_field_get(devices, "requests");

        for (size_t i = 0; i < json_field_count(&requests) && ret->ask_count < CLAIMS_ASKS_MAX; i++) {
                struct json_field request = json_field_at(&requests, i);
                struct claims_ask *ask = &ret->asks[ret->ask_count];

                if (!decode_ask(&request, ask))
                        continue;
                ask->one_group = is_in_one_group(devices, string_of(&request, "name"));
                ret->ask_count++;
        }
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
                struct json_field at = json_field_at(&results, i),
                                  consumed = json_field_get(&at, "consumedCapacity");
                struct claims_result *result = &ret->results[ret->result_count];

                if (is_true(&at, "adminAccess"))
                        continue;
                *result = (struct claims_result){ .memory_bytes = amount_of(&consumed, "memory", false),
                                                  .shares = count_of(amount_of(&consumed, "shares", false)) };
                if (required(&at, "driver", &result->driver, err) < 0 ||
                    required(&at, "pool", &result->pool, err) < 0 ||
                    required(&at, "device", &result->device, err) < 0)
                        return -EBADMSG;
                ret->result_count++;
        }
        return 0;
}

/* The first pod that may use it. */
static void decode_reserved(const struct json_field *status, struct claims_claim_facts *ret)
{
        struct json_field list = json_field_get(status, "reservedFor");

        for (size_t i = 0; i < json_field_count(&list) && ret->pod == NULL; i++) {
                struct json_field at = json_field_at(&list, i);
                const char *resource = string_of(&at, "resource"), *name = string_of(&at, "name"),
                           *uid = string_of(&at, "uid");

                if (resource == NULL || strcmp(resource, "pods") != 0 || name == NULL || uid == NULL)
                        continue;
                ret->pod = name;
                ret->pod_uid = uid;
        }
}

static bool is_planned(const struct json_field *requests)
{
        struct json_field request = json_field_at(requests, 0), exactly = json_field_get(&request, "exactly");
        const char *class_ = string_of(&exactly, "deviceClassName");

        return json_field_count(requests) == 1 && class_ != NULL && strcmp(class_, DEVICE_CLASS_PLANNED) == 0;
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
        decode_asks(&devices, ret);
        decode_reserved(&status, ret);
        ret->planned = is_planned(&requests);
        ret->allocated = allocation.value != NULL;
        ret->node = node_of(&allocation);
        return decode_results(&allocation, ret, err);
}

int claims_json_template(const json_t *object, struct claims_claim_facts *ret, struct err *err)
{
        struct json_field root = json_field_root(object), spec = json_field_get(&root, "spec");

        *ret = (struct claims_claim_facts){ 0 };
        if (json_field_is_object(&root, err) < 0 || json_field_is_object(&spec, err) < 0)
                return -EBADMSG;
        return claims_json_claim(spec.value, ret, err); /* its own spec is in there */
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

/* Has a container of that list run? */
static bool has_run(const struct json_field *status, const char *list)
{
        struct json_field containers = json_field_get(status, list);

        for (size_t i = 0; i < json_field_count(&containers); i++) {
                struct json_field container = json_field_at(&containers, i),
                                  state = json_field_get(&container, "state"),
                                  last = json_field_get(&container, "lastState");

                if (json_field_get(&state, "running").value != NULL ||
                    json_field_get(&state, "terminated").value != NULL ||
                    json_field_get(&last, "terminated").value != NULL)
                        return true;
        }
        return false;
}

/* A kubelet prepares a pod's claims before its sandbox is made. */
static bool has_begun(const struct json_field *status)
{
        struct json_field conditions = json_field_get(status, "conditions");

        for (size_t i = 0; i < json_field_count(&conditions); i++) {
                struct json_field at = json_field_at(&conditions, i);
                const char *type = string_of(&at, "type"), *says = string_of(&at, "status");

                if (type != NULL && says != NULL && strcmp(type, "PodReadyToStartContainers") == 0 &&
                    strcmp(says, "False") != 0)
                        return true;
        }
        return has_run(status, "containerStatuses") || has_run(status, "initContainerStatuses");
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

                ret->templates[ret->name_count] = NULL;
                ret->made[ret->name_count] = name == NULL;
                if (name == NULL)
                        name = made_claim(&statuses, string_of(&at, "name"));
                ret->of_template[ret->name_count] = name == NULL;
                if (name == NULL)
                        name = string_of(&at, "resourceClaimTemplateName");
                else if (ret->made[ret->name_count])
                        ret->templates[ret->name_count] = string_of(&at, "resourceClaimTemplateName");
                if (name != NULL)
                        ret->names[ret->name_count++] = name;
        }
        ret->asks_us = asks_us(&spec);
        ret->begun = has_begun(&status);
}
