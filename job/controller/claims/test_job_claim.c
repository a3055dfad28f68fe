/* What a pod whose entry names a device class asks for, and that its template is there before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/controller/claims/job_claim.h"
#include "scheduler-extender/claims/claims_json.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/ledger/cluster_internal.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "tests/support/controller_bed.h"

#define CLASS(NAME, CHIPS)                                                                                   \
        "\"workers\":[{\"model\":\"H100\",\"chips\":" CHIPS ",\"deviceClass\":\"" NAME "\"}]"

static const struct controller_options plain;
static const struct job_pods_owner owner = { .namespace_ = "ns", .name = "j", .uid = "u-1" };

/* A job of one entry, and a group as a plan would have it. */
static struct job_role role;
static struct job job_of(const char *class)
{
        role = (struct job_role){ .chips = 2 };
        (void) text_copy(role.device_class, sizeof(role.device_class), class);
        return (struct job){ .workers = &role, .worker_count = 1 };
}

static struct job_group group_of(uint32_t chips)
{
        return (struct job_group){
                .name = "w0-0", .group = "nvidia-0", .resource = "nvidia.com/gpu", .chips = chips
        };
}

static const json_t *devices_of(const json_t *template)
{
        const json_t *spec = json_object_get(json_object_get(template, "spec"), "spec");

        return json_object_get(spec, "devices");
}

static const json_t *exactly_of(const json_t *template)
{
        const json_t *request = json_array_get(json_object_get(devices_of(template), "requests"), 0);

        return json_object_get(request, "exactly");
}

/* What our own extender reads of it is what was meant. */
static void a_template_asks_for_the_planned_group(void **state)
{
        struct job job = job_of("remuda-cuda");
        struct job_group group = group_of(2);
        json_t *template = job_claim_template(&job, &group, &owner);
        struct claims_claim_facts facts;
        const json_t *exactly, *selector;
        struct err err = { 0 };

        (void) state;
        assert_non_null(template);
        assert_int_equal(claims_json_template(template, &facts, &err), 0);
        assert_int_equal(facts.asked, 2);
        assert_int_equal(facts.ask_count, 1);
        assert_true(facts.asks[0].one_group);
        assert_string_equal(facts.asks[0].choices[0].of, "cuda");
        exactly = exactly_of(template);
        selector = json_object_get(json_array_get(json_object_get(exactly, "selectors"), 0), "cel");
        assert_non_null(strstr(json_string_value(json_object_get(selector, "expression")),
                               "device.attributes[\"remuda.dev\"].group == \"nvidia-0\""));
        assert_string_equal(
                json_string_value(json_object_get(
                        json_array_get(
                                json_object_get(json_object_get(template, "metadata"), "ownerReferences"), 0),
                        "uid")),
                "u-1");
        json_decref(template);
}

static void one_chip_needs_no_constraint(void **state)
{
        struct job job = job_of("remuda-cuda");
        struct job_group group = group_of(1);
        json_t *template = job_claim_template(&job, &group, &owner);

        (void) state;
        assert_null(json_object_get(devices_of(template), "constraints"));
        assert_non_null(json_object_get(exactly_of(template), "selectors"));
        json_decref(template);
}

/* Devices of other drivers have no attribute of ours: an expression would fail on them. */
static void of_a_class_of_others_the_count_alone_is_asked(void **state)
{
        struct job job = job_of("gpu.nvidia.com");
        struct job_group group = group_of(2);
        json_t *template = job_claim_template(&job, &group, &owner);

        (void) state;
        assert_null(json_object_get(devices_of(template), "constraints"));
        assert_null(json_object_get(exactly_of(template), "selectors"));
        assert_int_equal(json_integer_value(json_object_get(exactly_of(template), "count")), 2);
        json_decref(template);
}

static void who_asks_alike_shares_a_template(void **state)
{
        struct job job = job_of("remuda-cuda"), other = { 0 };
        struct job_group a = group_of(2), b = group_of(2), c = group_of(1);
        struct job_pods_owner later = owner;
        char names[4][JOB_CLAIM_NAME_BYTES];

        (void) state;
        (void) text_copy(b.name, sizeof(b.name), "w0-1");
        later.uid = "u-2";
        job_claim_name(&job, &a, &owner, names[0]);
        job_claim_name(&job, &b, &owner, names[1]);
        job_claim_name(&job, &c, &owner, names[2]);
        job_claim_name(&job, &a, &later, names[3]);
        assert_string_equal(names[0], names[1]);
        assert_string_not_equal(names[0], names[2]);
        assert_string_not_equal(names[0], names[3]);
        other = job_of("remuda-nvidia");
        job_claim_name(&other, &a, &owner, names[1]);
        assert_string_not_equal(names[0], names[1]);
}

static void a_claim_holds_so_many_devices(void **state)
{
        struct job job = job_of("remuda-cuda");
        struct job_group group = group_of(JOB_CLAIM_CHIPS_MAX);
        struct err err = { 0 };

        (void) state;
        assert_int_equal(job_claim_check(&job, &group, &err), 0);
        group.chips++;
        assert_int_equal(job_claim_check(&job, &group, &err), -EINVAL);
        assert_non_null(strstr(err.msg, "deviceClass of subtask w0-0: a claim has at most 32 devices"));
        job = job_of("");
        assert_int_equal(job_claim_check(&job, &group, &err), 0);
}

static void tell_slice(struct bed *b, const char *group)
{
        json_t *devices = json_array(), *slice;

        for (int i = 0; i < 8; i++)
                (void) json_array_append_new(devices,
                                             json_pack("{s:o, s:{s:{s:s}, s:{s:s}}}", "name",
                                                       json_sprintf("gpu-%d", i), "attributes", "vendor",
                                                       "string", "nvidia", "group", "string", group));
        slice = json_pack("{s:{s:s}, s:{s:s, s:s, s:{s:s, s:i, s:i}, s:o}}", "metadata", "name", "a", "spec",
                          "driver", DRA_NAME_DRIVER, "nodeName", "a", "pool", "name", "a", "generation", 1,
                          "resourceSliceCount", 1, "devices", devices);
        assert_int_equal(cluster_claims_take_slice(b->cluster, "a", slice, NULL), 0);
        json_decref(slice);
}

/* A value of an object in the store, through lists by their index. */
static const char *stored(struct bed *b, const char *name, const char *path)
{
        json_t *value = json_object_get(b->store->objects, name);
        char word[64];

        while (*path != '\0' && value != NULL) {
                size_t length = strcspn(path, "|");

                (void) snprintf(word, sizeof(word), "%.*s", (int) length, path);
                value = json_is_array(value) ? json_array_get(value, strtoul(word, NULL, 10))
                                             : json_object_get(value, word);
                path += length + (path[length] == '|');
        }
        return json_is_string(value) ? json_string_value(value) : "";
}

/* The claim of the pod, with all eight devices, as kube-scheduler writes it: allocated and reserved at once.
 */
static void tell_claim(struct bed *b)
{
        json_t *results = json_array(), *claim;

        for (int i = 0; i < 8; i++)
                (void) json_array_append_new(results,
                                             json_pack("{s:s, s:s, s:o}", "driver", DRA_NAME_DRIVER, "pool",
                                                       "a", "device", json_sprintf("gpu-%d", i)));
        claim = json_pack(
                "{s:{s:s, s:s}, s:{s:[{s:s, s:s, s:s}], s:{s:{s:o}, s:{s:[{s:[{s:s, s:s, s:[s]}]}]}}}}",
                "metadata", "name", "c", "namespace", "default", "status", "reservedFor", "resource", "pods",
                "name", "j-w0-0", "uid", stored(b, "Pod default/j-w0-0", "metadata|uid"), "allocation",
                "devices", "results", results, "nodeSelector", "nodeSelectorTerms", "matchFields", "key",
                "metadata.name", "operator", "In", "values", "a");
        assert_non_null(claim);
        assert_int_equal(cluster_claims_take_claim(b->cluster, "default/c", claim, NULL), 0);
        json_decref(claim);
}

static const struct ledger_group *chips_of(const struct bed *b)
{
        return &ledger_nodes_find(b->cluster->ledger, "a", 1)->groups[0];
}

static void a_template_is_there_before_its_pods(void **state)
{
        struct bed *b = bed_begin(plain);
        json_t *line;
        size_t i, template = SIZE_MAX, pod = SIZE_MAX;

        (void) state;
        bed_put_job(b, "j", CLASS("remuda-cuda", "8"));
        bed_settle(b);
        assert_true(bed_is(b, "j", "Pending", "Unschedulable"));
        assert_true(bed_said(b, "no DRA driver offers devices in this cluster"));
        assert_false(bed_is_there(b, "j-w0-0"));

        tell_slice(b, "g");
        bed_look(b, "j");
        assert_true(bed_is_there(b, "j-w0-0"));
        json_array_foreach(b->store->lines, i, line)
        {
                if (strstr(json_string_value(line), "create ResourceClaimTemplate") != NULL)
                        template = i;
                if (strstr(json_string_value(line), "create Pod default/j-w0-0") != NULL)
                        pod = i;
        }
        assert_true(template <pod &&pod != SIZE_MAX);
        assert_string_equal(stored(b, "Pod default/j-w0-0", "spec|resourceClaims|0|name"), "chips");
        assert_string_equal(stored(b, "Pod default/j-w0-0", "spec|containers|0|resources|claims|0|name"),
                            "chips");
        assert_string_equal(
                stored(b, "Pod default/j-w0-0", "spec|containers|0|resources|limits|remuda.dev/claim"), "1");
        assert_string_equal(
                stored(b, "Pod default/j-w0-0", "spec|containers|0|resources|limits|nvidia.com/gpu"), "");
        assert_int_equal(memory_store_count(b->store, "create ResourceClaimTemplate"), 1);

        /* Allocated, and not bound yet: the chips that are held are its own, and counted once. */
        assert_int_equal(chips_of(b)->leased, 8);
        tell_claim(b);
        assert_int_equal(chips_of(b)->leased, 0);
        assert_int_equal(chips_of(b)->held, 8);
        bed_look(b, "j");
        assert_false(bed_said(b, "PlaceLost"));
        assert_int_equal(cluster_claims_take_claim(b->cluster, "default/c", NULL, NULL), 0);
        assert_int_equal(chips_of(b)->leased, 8); /* it was freed again: the plan's place is open */
        tell_claim(b);
        bed_merge(b, "Pod", "j-w0-0",
                  "{\"status\":{\"resourceClaimStatuses\":[{\"name\":\"chips\",\"resourceClaimName\":\"c\"}]}"
                  "}");
        bed_merge(b, "Pod", "j-w0-0", BED_RUNS);
        bed_merge(b, "Pod", "j-m0", BED_RUNS);
        bed_look(b, "j");
        assert_int_equal(chips_of(b)->leased, 0);
        assert_int_equal(chips_of(b)->held, 8);
        assert_string_equal(stored(b, "TrainingJob default/j", "status|subtasks|0|devices"),
                            "gpu-0,gpu-1,gpu-2,gpu-3,gpu-4,gpu-5,gpu-6,gpu-7");
        bed_end(b);
}

static void a_template_that_is_refused_is_said(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        tell_slice(b, "g");
        memory_store_refuse(b->store, "create ResourceClaimTemplate", -EPERM,
                            "cannot create resource \"resourceclaimtemplates\"");
        bed_put_job(b, "j", CLASS("remuda-cuda", "2"));
        bed_settle(b);
        assert_true(bed_said(b, "PodNotCreated"));
        assert_true(bed_said(b, "kubectl create rolebinding remuda-controller"));
        assert_false(bed_is_there(b, "j-w0-0"));
        memory_store_refuse(b->store, "create ResourceClaimTemplate", -EEXIST, "there is one of that name");
        bed_look(b, "j"); /* a reply was lost: it is the same */
        assert_true(bed_is_there(b, "j-w0-0"));
        bed_end(b);
}

/* Chips that no driver offers are none for a class; nor are those of another vendor's class. */
static void only_what_is_offered_is_planned(void **state)
{
        struct bed *b = bed_begin(plain);

        (void) state;
        tell_slice(b, "g");
        bed_put_node(b, "b", "H100", 16);
        bed_put_job(b, "j", CLASS("remuda-cuda", "9"));
        bed_settle(b);
        assert_true(bed_is(b, "j", "Pending", "Unschedulable"));
        assert_true(bed_said(b, "9 chips of H100 by claims of class remuda-cuda, and only 8 are free"));
        bed_put_job(b, "k", CLASS("remuda-cann", "1"));
        bed_settle(b);
        assert_true(bed_is(b, "k", "Pending", "Unschedulable"));
        assert_false(bed_is_there(b, "k-w0-0"));
        bed_end(b);
}

static void an_api_server_of_before_is_named(void **state)
{
        struct job_role entry = { .device_class = "remuda-cuda", .chips = 1 };
        struct job job = { .worker_count = 1, .workers = &entry };
        struct ledger *ledger = calloc(1, sizeof(*ledger));
        struct err err = { 0 };

        (void) state;
        assert_non_null(ledger);
        assert_int_equal(job_claim_offered(&job, ledger, false, &err), -EAGAIN);
        assert_non_null(strstr(err.msg, "no ResourceSlice of resource.k8s.io/v1 to read (Kubernetes 1.34"));
        assert_non_null(strstr(err.msg, "leave deviceClass out")); /* whole */
        assert_int_equal(job_claim_offered(&job, ledger, true, &err), -EAGAIN);
        assert_non_null(strstr(err.msg, "no DRA driver offers devices"));
        job.workers[0].device_class[0] = '\0';
        assert_int_equal(job_claim_offered(&job, ledger, false, &err), 0);
        free(ledger);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_template_asks_for_the_planned_group),
                cmocka_unit_test(one_chip_needs_no_constraint),
                cmocka_unit_test(of_a_class_of_others_the_count_alone_is_asked),
                cmocka_unit_test(who_asks_alike_shares_a_template),
                cmocka_unit_test(a_claim_holds_so_many_devices),
                cmocka_unit_test(a_template_is_there_before_its_pods),
                cmocka_unit_test(a_template_that_is_refused_is_said),
                cmocka_unit_test(only_what_is_offered_is_planned),
                cmocka_unit_test(an_api_server_of_before_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
