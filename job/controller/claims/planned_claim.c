/* Planned claims: their objects, and what is next for one. */
#include "job/controller/claims/planned_claim.h"

#include <string.h>

#include "agent/vendor/device_class.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "job/controller/claims/job_claim.h"
#include "scheduler-extender/claims/claims_json.h"

#define REQUEST "chips"

static bool has_finalizer(const struct json_field *metadata)
{
        struct json_field list = json_field_get(metadata, "finalizers");

        for (size_t i = 0; i < json_field_count(&list); i++) {
                struct json_field at = json_field_at(&list, i);
                const char *name = NULL;

                if (json_field_as_string(&at, &name, NULL) == 0 && strcmp(name, PLANNED_CLAIM_FINALIZER) == 0)
                        return true;
        }
        return false;
}

/* The job that the object belongs to, as the API server's garbage collector has it. */
static void read_owner(const struct json_field *metadata, struct planned_claim *ret)
{
        struct json_field list = json_field_get(metadata, "ownerReferences"), at = json_field_at(&list, 0);

        if (json_field_count(&list) != 1 || strcmp(json_field_word(&at, "kind"), "TrainingJob") != 0)
                return;
        if (!text_copy(ret->job, sizeof(ret->job), json_field_word(&at, "name")) ||
            !text_copy(ret->owner, sizeof(ret->owner), json_field_word(&at, "uid")))
                ret->job[0] = ret->owner[0] = '\0';
}

/* What ours ask for, and nothing beside it. */
static uint32_t chips_of(const struct json_field *devices)
{
        struct json_field requests = json_field_get(devices, "requests"), at = json_field_at(&requests, 0),
                          exactly = json_field_get(&at, "exactly"),
                          constraints = json_field_get(devices, "constraints"),
                          config = json_field_get(devices, "config");
        int64_t count = 0;

        if (json_field_count(&requests) != 1 || json_field_count(&constraints) > 0 ||
            json_field_count(&config) > 0 || strcmp(json_field_word(&at, "name"), REQUEST) != 0 ||
            strcmp(json_field_word(&exactly, "deviceClassName"), DEVICE_CLASS_PLANNED) != 0 ||
            strcmp(json_field_word(&exactly, "allocationMode"), "ExactCount") != 0 ||
            json_field_int64(&exactly, "count", 1, JOB_CLAIM_CHIPS_MAX, &count, NULL) < 0)
                return 0;
        return (uint32_t) count;
}

bool planned_claim_decode(const json_t *object, struct planned_claim *ret)
{
        struct json_field root = json_field_root(object), metadata = json_field_get(&root, "metadata"),
                          spec = json_field_get(&root, "spec"), devices = json_field_get(&spec, "devices");
        struct claims_claim_facts facts;

        *ret = (struct planned_claim){ .there = false };
        if (object == NULL || claims_json_claim(object, &facts, NULL) < 0)
                return false;
        read_owner(&metadata, ret);
        if (ret->job[0] == '\0' ||
            !text_copy(ret->uid, sizeof(ret->uid), json_field_word(&metadata, "uid")) ||
            !text_copy(ret->version, sizeof(ret->version), json_field_word(&metadata, "resourceVersion"))) {
                *ret = (struct planned_claim){ .there = false };
                return false;
        }
        ret->there = true;
        ret->deleting = json_field_word(&metadata, "deletionTimestamp")[0] != '\0';
        ret->finalized = has_finalizer(&metadata);
        ret->allocated = facts.allocated;
        ret->chips = chips_of(&devices);
        (void) text_copy(ret->node, sizeof(ret->node), facts.node == NULL ? "" : facts.node);
        return true;
}

enum planned_claim_step planned_claim_step(const struct planned_claim *claim, const struct job_group *group,
                                           const char *uid, bool pod_ended)
{
        if (pod_ended)
                return PLANNED_CLAIM_READY;
        if (!claim->there)
                return PLANNED_CLAIM_CREATE;
        if (claim->deleting)
                return PLANNED_CLAIM_WAIT;
        if (strcmp(claim->owner, uid) != 0)
                return PLANNED_CLAIM_TAKEN;
        if (claim->chips != group->chips)
                return PLANNED_CLAIM_DELETE;
        if (claim->allocated)
                return strcmp(claim->node, group->node) == 0 ? PLANNED_CLAIM_READY : PLANNED_CLAIM_DELETE;
        return claim->finalized ? PLANNED_CLAIM_ALLOCATE : PLANNED_CLAIM_DELETE;
}

json_t *planned_claim_object(const struct job_group *group, const struct job_pods_owner *owner)
{
        char name[JOB_POD_NAME_BYTES];
        json_t *metadata;

        job_group_pod_name(owner->name, group, name);
        metadata = job_pods_metadata(name, owner, "claim");
        (void) json_object_set_new(metadata, "finalizers", json_pack("[s]", PLANNED_CLAIM_FINALIZER));
        return json_pack("{s:s, s:s, s:o, s:{s:{s:[{s:s, s:{s:s, s:s, s:i}}]}}}", "apiVersion",
                         "resource.k8s.io/v1", "kind", "ResourceClaim", "metadata", metadata, "spec",
                         "devices", "requests", "name", REQUEST, "exactly", "deviceClassName",
                         DEVICE_CLASS_PLANNED, "allocationMode", "ExactCount", "count", (int) group->chips);
}

json_t *planned_claim_allocation(const struct planned_claim *claim, const char *node,
                                 const char *const *devices, size_t count, uint64_t now_usec)
{
        json_t *results = json_array();
        char now[TIMESTAMP_BYTES];

        for (size_t i = 0; i < count; i++)
                (void) json_array_append_new(results,
                                             json_pack("{s:s, s:s, s:s, s:s}", "request", REQUEST, "driver",
                                                       DRA_NAME_DRIVER, "pool", node, "device", devices[i]));
        if (json_array_size(results) != count) {
                json_decref(results);
                return NULL;
        }
        (void) timestamp_format(now_usec - now_usec % 1000000, now); /* as the API keeps it */
        return json_pack("{s:{s:s, s:s}, s:{s:{s:{s:o}, s:s, s:{s:[{s:[{s:s, s:s, s:[s]}]}]}}}}", "metadata",
                         "uid", claim->uid, "resourceVersion", claim->version, "status", "allocation",
                         "devices", "results", results, "allocationTimestamp", now, "nodeSelector",
                         "nodeSelectorTerms", "matchFields", "key", "metadata.name", "operator", "In",
                         "values", node);
}

bool planned_claim_yields(const char *key, bool started, const char *rival_key, bool rival_started)
{
        if (started || rival_key == NULL || rival_started)
                return !started;
        return strcmp(key, rival_key) > 0;
}
