/* What is next for a planned claim, what is written of it, and that its chips are counted once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "job/controller/claims/job_claim.h"
#include "job/controller/claims/planned_claim.h"
#include "scheduler-extender/claims/claims_json.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "tests/support/controller_bed.h"

static const struct job_pods_owner owner = { .namespace_ = "default", .name = "j", .uid = "u-1" };
static const struct job_group group = {
        .name = "w0-0", .node = "a", .group = "one", .resource = "nvidia.com/gpu", .planned = true, .chips = 2
};

/* clang-format off */
#define OURS .there = true, .owner = "u-1", .chips = 2, .finalized = true
static const struct { const char *what; struct planned_claim claim; bool pod_ended; enum planned_claim_step step; } steps[] = {
        { "none is made",                        { .there = false },                                     false, PLANNED_CLAIM_CREATE },
        { "it has no chips yet",                 { OURS },                                               false, PLANNED_CLAIM_ALLOCATE },
        { "it has its chips",                    { OURS, .allocated = true, .node = "a" },               false, PLANNED_CLAIM_READY },
        { "... on another node",                 { OURS, .allocated = true, .node = "b" },               false, PLANNED_CLAIM_DELETE },
        { "it goes",                             { OURS, .deleting = true, .allocated = true },          false, PLANNED_CLAIM_WAIT },
        { "it asks for another number",          { .there = true, .owner = "u-1", .chips = 1 },          false, PLANNED_CLAIM_DELETE },
        { "it was freed with the pod before",    { .there = true, .owner = "u-1", .chips = 2 },          false, PLANNED_CLAIM_DELETE },
        { "... and there is no pod after it",    { .there = true, .owner = "u-1", .chips = 2 },          true,  PLANNED_CLAIM_READY },
        { "it is of the job that had the name",  { .there = true, .owner = "u-0", .chips = 2 },          false, PLANNED_CLAIM_TAKEN },
};
static const struct { bool started; const char *rival; bool rival_started, yields; } rivals[] = {
        { false, NULL,   false, true },  /* nobody plans that one anew */
        { true,  NULL,   false, false }, /* the driver has given ours the chip */
        { false, "ns/a", false, true },  /* the later name */
        { false, "ns/z", false, false },
        { false, "ns/z", true,  true },
        { true,  "ns/a", false, false },
};
/* clang-format on */

static void each_claim_has_one_next_step(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
                if (planned_claim_step(&steps[i].claim, &group, "u-1", steps[i].pod_ended) != steps[i].step)
                        fail_msg("%s: another step than %d", steps[i].what, steps[i].step);
        for (size_t i = 0; i < ARRAY_SIZE(rivals); i++)
                if (planned_claim_yields("ns/m", rivals[i].started, rivals[i].rival,
                                         rivals[i].rival_started) != rivals[i].yields)
                        fail_msg("rivals[%zu]", i);
        assert_true(planned_claim_yields("ns/m", false, "ns/a", false) !=
                    planned_claim_yields("ns/a", false, "ns/m", false));
}

/* What is made is read back as ours; kube-scheduler and the extender find no class in it that they know. */
static void what_is_made_is_ours(void **state)
{
        json_t *object = planned_claim_object(&group, &owner), *patch;
        struct claims_claim_facts facts;
        struct planned_claim claim;

        (void) state;
        assert_non_null(object);
        assert_true(planned_claim_decode(object, &claim));
        assert_true(claim.finalized && !claim.allocated && !claim.deleting);
        assert_string_equal(claim.job, "j");
        assert_string_equal(claim.owner, "u-1");
        assert_int_equal(claim.chips, 2);
        assert_int_equal(claims_json_claim(object, &facts, NULL), 0);
        assert_true(facts.planned);
        assert_int_equal(facts.ask_count, 0);

        (void) text_copy(claim.uid, sizeof(claim.uid), "c-1");
        (void) text_copy(claim.version, sizeof(claim.version), "7");
        patch = planned_claim_allocation(&claim, "a", (const char *const[]){ "one-1", "one-3" }, 2,
                                         1795953600000001);
        assert_non_null(patch);
        assert_string_equal(json_string_value(json_object_get(
                                    json_object_get(json_object_get(patch, "status"), "allocation"),
                                    "allocationTimestamp")),
                            "2026-11-29T12:00:00Z");
        assert_string_equal(
                json_string_value(json_object_get(json_object_get(patch, "metadata"), "resourceVersion")),
                "7");
        (void) json_object_update(object, patch);
        assert_int_equal(claims_json_claim(object, &facts, NULL), 0);
        assert_string_equal(facts.node, "a");
        assert_int_equal(facts.result_count, 2);
        assert_string_equal(facts.results[1].device, "one-3");
        assert_string_equal(facts.results[1].pool, "a");
        json_decref(patch);
        json_decref(object);
}

static void of_others_nothing_is_ours(void **state)
{
        json_t *object = planned_claim_object(&group, &owner);
        json_t *exactly = json_object_get(
                json_array_get(json_object_get(json_object_get(json_object_get(object, "spec"), "devices"),
                                               "requests"),
                               0),
                "exactly");
        struct planned_claim claim;

        (void) state;
        (void) json_object_set_new(exactly, "deviceClassName", json_string("remuda-cuda"));
        assert_true(planned_claim_decode(object, &claim));
        assert_int_equal(claim.chips, 0); /* it is deleted, not allocated */
        (void) json_object_del(json_object_get(object, "metadata"), "ownerReferences");
        assert_false(planned_claim_decode(object, &claim));
        assert_false(planned_claim_decode(NULL, &claim));
        json_decref(object);
}

/* Eight chips of node "a", of which no slice tells. */
static void tell_planned(struct bed *b)
{
        struct inventory inventory;
        struct device_group *one;

        inventory_init(&inventory);
        inventory.planned = true;
        one = inventory_add_group(&inventory);
        (void) text_copy(one->name, sizeof(one->name), "g");
        (void) text_copy(one->resource, sizeof(one->resource), "nvidia.com/gpu");
        for (int i = 0; i < 8; i++) {
                struct device *device = inventory_add_device(&inventory);

                device->usable = true;
                (void) text_format(device->id, sizeof(device->id), "gpu-%d", i);
                (void) text_copy(device->group, sizeof(device->group), "g");
                (void) text_copy(device->vendor, sizeof(device->vendor), "nvidia");
        }
        assert_int_equal(cluster_claims_take_inventory(b->cluster, "a", &inventory), 0);
        inventory_free(&inventory);
}

static const struct ledger_group *chips_of(const struct bed *b)
{
        return &ledger_nodes_find(b->cluster->ledger, "a", 1)->groups[0];
}

static void see(struct bed *b, json_t *claim)
{
        assert_int_equal(cluster_claims_take_claim(b->cluster, "default/j-w0-0", claim, NULL), 0);
        controller_observe(b->controller, STORE_RESOURCE_CLAIM, "default/j-w0-0", claim);
}

/* When a line was written to the store. */
static size_t when(const struct bed *b, const char *words)
{
        json_t *line;
        size_t i;

        json_array_foreach(b->store->lines, i, line)
        {
                if (strstr(json_string_value(line), words) != NULL)
                        return i;
        }
        return SIZE_MAX;
}

#define CLAIMS "\"workers\":[{\"model\":\"H100\",\"chips\":8,\"deviceClass\":\"remuda-cuda\"}]"

static void a_claim_has_its_chips_before_its_pod(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .planned_claims = true });
        json_t *claim, *freed;

        (void) state;
        tell_planned(b);
        bed_put_job(b, "j", CLAIMS);
        bed_settle(b);
        bed_look(b, "j");
        assert_true(when(b, "create ResourceClaim default/j-w0-0") <
                    when(b, "patch ResourceClaim default/j-w0-0"));
        assert_true(when(b, "patch ResourceClaim default/j-w0-0") < when(b, "create Pod default/j-w0-0"));
        assert_true(bed_is_there(b, "j-w0-0"));
        assert_int_equal(memory_store_count(b->store, "create ResourceClaimTemplate"), 0);
        claim = json_object_get(b->store->objects, "ResourceClaim default/j-w0-0");
        assert_non_null(claim);
        see(b, claim);
        assert_int_equal(chips_of(b)->leased, 0); /* once: by the claim */
        assert_int_equal(chips_of(b)->held, 8);
        bed_look(b, "j");
        assert_false(bed_said(b, "PlaceLost"));
        freed = json_deep_copy(claim);
        (void) json_object_del(freed, "status");
        see(b, freed); /* somebody has taken it away */
        assert_int_equal(chips_of(b)->leased, 8);
        assert_int_equal(chips_of(b)->held, 0);
        json_decref(freed);
        bed_end(b);
}

static json_t *elsewhere_of(json_t *claim)
{
        json_t *other = json_deep_copy(claim);
        json_t *of = json_object_get(json_object_get(other, "status"), "allocation"),
               *result = json_array_get(json_object_get(json_object_get(of, "devices"), "results"), 0),
               *term = json_array_get(
                       json_object_get(json_object_get(of, "nodeSelector"), "nodeSelectorTerms"), 0),
               *field = json_array_get(json_object_get(term, "matchFields"), 0);

        (void) json_object_set_new(result, "pool", json_string("b"));
        (void) json_object_set_new(field, "values", json_pack("[s]", "b"));
        return other;
}

/* A job was planned there, and is here now: its claim of then goes, and until then has no chip of here. */
static void a_claim_elsewhere_ends_no_lease_here(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .planned_claims = true });
        json_t *other;

        (void) state;
        tell_planned(b);
        bed_put_job(b, "j", CLAIMS);
        bed_settle(b);
        bed_look(b, "j");
        other = elsewhere_of(json_object_get(b->store->objects, "ResourceClaim default/j-w0-0"));
        assert_int_equal(chips_of(b)->leased, 8);
        assert_int_equal(cluster_claims_take_claim(b->cluster, "default/j-w0-0", other, NULL), 0);
        assert_int_equal(chips_of(b)->leased, 8);
        json_decref(other);
        bed_end(b);
}

/* Of chips that no slice has, nobody may plan but who was told to. */
static void without_the_option_they_are_no_jobs(void **state)
{
        struct bed *b = bed_begin((struct controller_options){ .planned_claims = false });

        (void) state;
        tell_planned(b);
        bed_put_job(b, "j", CLAIMS);
        bed_put_job(b, "k", BED_TWO_CHIPS);
        bed_settle(b);
        assert_true(bed_is(b, "j", "Pending", "Unschedulable"));
        assert_true(bed_is(b, "k", "Pending", "Unschedulable"));
        bed_end(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_claim_has_one_next_step),
                cmocka_unit_test(what_is_made_is_ours),
                cmocka_unit_test(of_others_nothing_is_ours),
                cmocka_unit_test(a_claim_has_its_chips_before_its_pod),
                cmocka_unit_test(a_claim_elsewhere_ends_no_lease_here),
                cmocka_unit_test(without_the_option_they_are_no_jobs),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
