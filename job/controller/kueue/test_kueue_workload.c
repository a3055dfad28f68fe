/* What a job asks of Kueue, what a Workload says, and what of it is put onto the job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job/controller/kueue/kueue_workload_status.h"
#include "tests/support/job_fixture.h"

#define PARTIAL                                                                                              \
        "  strategy: ps-sync\n"                                                                              \
        "  servers: {runtime: cpu, chips: 1}\n"                                                              \
        "  workers:\n"                                                                                       \
        "  - {vendor: nvidia, chips: 4, minChips: 2, template: {resources: {requests: {memory: 1Gi}}}}\n"    \
        "  - {vendor: amd, chips: 2, minChips: 1}\n"
#define OWNER                                                                                                \
        "\"ownerReferences\":[{\"kind\":\"Other\",\"controller\":false},"                                    \
        "{\"apiVersion\":\"remuda.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"name\":\"j\",\"uid\":\"u\","     \
        "\"controller\":true}]"

static json_t *parse(const char *text)
{
        json_error_t error;
        json_t *value = json_loads(text, 0, &error);

        if (value == NULL)
                fail_msg("%s: %s", error.text, text);
        return value;
}

/* A Workload of job "j" with this status. */
static struct kueue_workload workload_of(const char *status)
{
        struct kueue_workload workload;
        struct text text = { 0 };
        char name[KUEUE_NAME_BYTES];
        json_t *object;

        kueue_workload_name("j", "u", name);
        text_printf(&text,
                    "{\"metadata\":{\"name\":\"%s\",\"uid\":\"w\",\"resourceVersion\":\"7\"," OWNER
                    "},\"spec\":{\"queueName\":\"q\"},\"status\":%s}",
                    name, status);
        object = parse(text.data);
        kueue_workload_decode(object, &workload);
        json_decref(object);
        text_free(&text);
        return workload;
}

#define CONDITION(TYPE, STATUS, REASON, MESSAGE)                                                             \
        "{\"type\":\"" TYPE "\",\"status\":\"" STATUS "\",\"reason\":\"" REASON "\",\"message\":\"" MESSAGE  \
        "\"}"
#define RESERVED       CONDITION("QuotaReserved", "True", "QuotaReserved", "")
#define ADMITTED       CONDITION("Admitted", "True", "Admitted", "")
#define ASSIGNED(SETS) "\"admission\":{\"clusterQueue\":\"cq\",\"podSetAssignments\":[" SETS "]}"
#define CPU(NAME)      "{\"name\":\"" NAME "\",\"flavors\":{\"cpu\":\"default\"}}"

static void a_pod_set_is_a_chip_of_each_entry(void **state)
{
        struct job job = job_fixture_parse(PARTIAL);
        struct ledger *ledger = job_fixture_cluster();
        json_t *sets = kueue_workload_pod_sets(&job, ledger, NULL, NULL), *first = json_array_get(sets, 0);
        struct kueue_workload same = { .pod_sets = sets };
        static const char *const names[] = { "w0", "w1", "s", "manager" };
        static const char *const wrong[] = { "{\"count\":5}", "{\"minCount\":1}", "{\"name\":\"w1\"}" };

        (void) state;
        assert_int_equal(json_array_size(sets), 4);
        for (size_t i = 0; i < 4; i++)
                assert_string_equal(json_string_value(json_object_get(json_array_get(sets, i), "name")),
                                    names[i]);
        assert_int_equal(json_integer_value(json_object_get(first, "count")), 4);
        assert_int_equal(json_integer_value(json_object_get(first, "minCount")), 2);
        assert_null(json_object_get(json_array_get(sets, 1), "minCount")); /* Kueue takes one of them */
        assert_true(kueue_workload_asks(&same, sets));
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                json_t *other = json_deep_copy(sets), *change = parse(wrong[i]);

                (void) json_object_update(json_array_get(other, 0), change);
                assert_false(kueue_workload_asks(&same, other));
                json_decref(other);
                json_decref(change);
        }
        json_decref(sets);
        job_free(&job);
        ledger_life_free(ledger);
}

static json_t *requests_of(const json_t *sets)
{
        const json_t *spec = json_object_get(json_object_get(json_array_get(sets, 0), "template"), "spec");

        return json_object_get(
                json_object_get(json_array_get(json_object_get(spec, "containers"), 0), "resources"),
                "requests");
}

static void put_group(struct ledger *ledger, const char *node, const char *resource, const char *model,
                      unsigned healthy)
{
        struct inventory inventory;
        struct device_group *group;

        inventory_init(&inventory);
        (void) text_copy(inventory.node, sizeof(inventory.node), node);
        (void) text_copy(inventory.pool, sizeof(inventory.pool), "regular");
        group = inventory_add_group(&inventory);
        (void) text_copy(group->name, sizeof(group->name), "g");
        (void) text_copy(group->vendor, sizeof(group->vendor), "acme");
        (void) text_copy(group->runtime, sizeof(group->runtime), "cuda");
        (void) text_copy(group->model, sizeof(group->model), model);
        (void) text_copy(group->resource, sizeof(group->resource), resource);
        group->total = 8;
        group->healthy = healthy;
        (void) ledger_nodes_set_inventory(ledger, &inventory);
        inventory_free(&inventory);
}

/* Quota would let the job pass that asks for no chip. */
static void chips_of_no_name_are_not_left_out(void **state)
{
        static const struct {
                const char *spec, *field;
        } rows[] = {
                { "  workers: [{model: Z9, chips: 2}]\n", "spec.workers[0]: no node" },
                { "  workers: [{vendor: nvidia, chips: 1}, {group: g, chips: 2}]\n",
                  "spec.workers[1]: no node" },
                { "  strategy: ps-sync\n  servers: {model: Z9, chips: 1}\n  workers: [{vendor: amd, chips: "
                  "1}]\n",
                  "spec.servers: no node" },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct job job = job_fixture_parse(rows[i].spec);
                struct ledger *ledger = job_fixture_cluster();
                struct err err = { 0 };
                json_t *sets = kueue_workload_pod_sets(&job, ledger, NULL, &err);

                assert_null(sets);
                if (strstr(err.msg, rows[i].field) == NULL)
                        fail_msg("%s: %s", rows[i].field, err.msg);
                put_group(ledger, "z", "acme.example/chip", "Z9", 8); /* now one shows it */
                sets = kueue_workload_pod_sets(&job, ledger, NULL, &err);
                assert_non_null(sets);
                json_decref(sets);
                ledger_life_free(ledger);
                job_free(&job);
        }
}

static const char *chips_asked(const json_t *sets)
{
        return json_object_get(requests_of(sets), GPU) != NULL           ? GPU
               : json_object_get(requests_of(sets), "acme.example/chip") ? "acme.example/chip"
                                                                         : "";
}

/* A fault of a chip is no change of the job. */
static void a_name_stands_while_it_may(void **state)
{
        struct job job = job_fixture_parse("  workers: [{model: H100|Z9, chips: 2}]\n");
        struct ledger *ledger = test_ledger();
        struct kueue_workload workload = { .name = "" };
        json_t *sets;

        (void) state;
        put_group(ledger, "a", GPU, "H100", 8);
        put_group(ledger, "z", "acme.example/chip", "Z9", 7);
        workload.pod_sets = kueue_workload_pod_sets(&job, ledger, NULL, NULL);
        assert_string_equal(chips_asked(workload.pod_sets), GPU);
        put_group(ledger, "a", GPU, "H100", 1);
        sets = kueue_workload_pod_sets(&job, ledger, &workload, NULL);
        assert_true(kueue_workload_asks(&workload, sets));
        json_decref(sets);
        sets = kueue_workload_pod_sets(&job, ledger, NULL, NULL);
        assert_string_equal(chips_asked(sets), "acme.example/chip"); /* as who comes now asks */
        json_decref(sets);
        put_group(ledger, "a", GPU, "A100", 8); /* there are none of that name that it may take */
        sets = kueue_workload_pod_sets(&job, ledger, &workload, NULL);
        assert_string_equal(chips_asked(sets), "acme.example/chip");
        json_decref(sets);
        json_decref(workload.pod_sets);
        ledger_life_free(ledger);
        job_free(&job);
}

static void quantities_may_be_written_otherwise(void **state)
{
        struct job job = job_fixture_parse(PARTIAL);
        struct ledger *ledger = job_fixture_cluster();
        json_t *sets = kueue_workload_pod_sets(&job, ledger, NULL, NULL), *other = json_deep_copy(sets);
        struct kueue_workload workload = { .pod_sets = other };

        (void) state;
        assert_string_equal(json_string_value(json_object_get(requests_of(sets), "memory")), "1Gi");
        assert_string_equal(json_string_value(json_object_get(requests_of(sets), GPU)), "1");
        (void) json_object_set_new(requests_of(other), "memory", json_string("1024Mi"));
        assert_true(kueue_workload_asks(&workload, sets));
        (void) json_object_set_new(requests_of(other), "memory", json_string("1Mi"));
        assert_false(kueue_workload_asks(&workload, sets)); /* somebody asks for less than it uses */
        json_decref(sets);
        json_decref(other);
        job_free(&job);
        ledger_life_free(ledger);
}

static void conditions_say_how_it_is(void **state)
{
        static const struct {
                const char *status;
                bool reserved, admitted, evicted, finished;
                const char *message;
        } rows[] = {
                { "{}", false, false, false, false, "" },
                { "null", false, false, false, false, "" },
                { "{\"conditions\":[" CONDITION("QuotaReserved", "False", "Pending", "no room") "]}", false,
                  false, false, false, "no room" },
                /* Admitted without an admission says nothing of flavors */
                { "{\"conditions\":[" ADMITTED "]}", false, false, false, false, "" },
                { "{\"conditions\":[" RESERVED "," ADMITTED "]," ASSIGNED("") "}", true, true, false, false,
                  "" },
                { "{\"conditions\":[" CONDITION("Evicted", "True", "Preempted",
                                                "go") "," RESERVED "," ADMITTED "]," ASSIGNED("") "}",
                  true, true, true, false, "go" },
                /* it stays True until the next admission: what is given back is no eviction */
                { "{\"conditions\":[" CONDITION("Evicted", "True", "Preempted", "go") "," CONDITION(
                          "QuotaReserved", "False", "Pending", "waits") "]}",
                  false, false, false, false, "waits" },
                { "{\"conditions\":[" CONDITION("Finished", "True", "Failed", "over") "]}", false, false,
                  false, true, "over" },
                { "{\"conditions\":[7,{\"type\":9,\"status\":[]},null]}", false, false, false, false, "" },
                { "{\"conditions\":\"x\",\"admission\":{\"podSetAssignments\":7}}", true, false, false, false,
                  "" },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct kueue_workload w = workload_of(rows[i].status);

                assert_string_equal(w.job, "j");
                assert_string_equal(w.owner, "u");
                assert_int_equal(w.reserved, rows[i].reserved);
                assert_int_equal(w.admitted, rows[i].admitted);
                assert_int_equal(w.evicted, rows[i].evicted);
                assert_int_equal(w.finished, rows[i].finished);
                assert_string_equal(w.message, rows[i].message);
                kueue_workload_free(&w);
        }
}

static void whose_it_is_its_name_says_too(void **state)
{
        static const char *const others[] = {
                "{\"metadata\":{\"name\":\"x\"," OWNER "}}",
                "{\"metadata\":{\"name\":\"x\",\"ownerReferences\":[7,null,{}]}}",
                "{\"metadata\":{\"ownerReferences\":7}}",
                "{}",
                "[]",
        };

        (void) state;
        for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
                json_t *object = parse(others[i]);
                struct kueue_workload w;

                kueue_workload_decode(object, &w);
                assert_string_equal(w.job, "");
                kueue_workload_free(&w);
                json_decref(object);
        }
}

static void an_admission_is_put_onto_the_job(void **state)
{
        static const char flavors[] =
                "{\"default\":{},\"fast\":{\"nodeLabels\":{\"pool\":\"fast\"},\"tolerations\":[{\"key\":"
                "\"t\","
                "\"operator\":\"Exists\"}]},\"slow\":{\"nodeLabels\":{\"pool\":\"slow\"}}}";
        static const struct {
                const char *first, *words; /* the assignment of w0; of the sentence, "" = it is taken */
                uint64_t chips;
        } rows[] = {
                { "{\"name\":\"w0\",\"count\":3,\"flavors\":{\"" GPU "\":\"fast\"}}", "", 3 },
                { "{\"name\":\"w0\",\"count\":2,\"flavors\":{\"" GPU "\":\"fast\"}}", "", 2 },
                { "{\"name\":\"w0\",\"flavors\":{\"" GPU "\":\"fast\"}}", "", 4 },
                { "{\"name\":\"w0\",\"count\":900,\"flavors\":{\"" GPU "\":\"fast\"}}", "", 4 },
                { "{\"name\":\"w0\",\"count\":1,\"flavors\":{}}", "gives w0 1 of 4 chips, and it needs 2",
                  4 },
                { "{\"name\":\"w0\",\"count\":-7}", "gives w0 -7 of 4", 4 },
                { "{\"name\":\"w0\",\"flavors\":{\"" GPU "\":\"gone\"}}", "no ResourceFlavor 'gone'", 4 },
                { "{\"name\":\"w0\",\"flavors\":{\"a\":\"fast\",\"b\":\"slow\"}}", "two things of 'pool'",
                  4 },
                { "{\"name\":\"w7\"}", "no podSetAssignment 'w0'", 4 },
        };
        json_t *known = parse(flavors);

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct job job = job_fixture_parse(PARTIAL);
                struct text text = { 0 };
                struct err err = { 0 };
                struct kueue_workload w;
                int r;

                text_printf(&text,
                            "{\"conditions\":[" RESERVED "," ADMITTED
                            "]," ASSIGNED("%s," CPU("w1") "," CPU("s") "," CPU("manager")) "}",
                            rows[i].first);
                w = workload_of(text.data);
                r = kueue_workload_admit(&w, known, &job, &err);
                if ((r == 0) != (rows[i].words[0] == '\0') || strstr(err.msg, rows[i].words) == NULL)
                        fail_msg("%s: %s", rows[i].first, err.msg);
                assert_int_equal(job.workers[0].chips, rows[i].chips);
                assert_int_equal(job.workers[1].chips, 2);
                assert_int_equal(job.workers[0].place.match != NULL, r == 0);
                if (r == 0) {
                        assert_string_equal(job.workers[0].place.match, "=\tpool\tfast\nt\tt\te\t\t\n");
                        assert_string_equal(job.manager_place.match, "");
                        assert_int_equal(kueue_workload_admit(&w, known, &job, &err), 0); /* no other */
                        assert_int_equal(job.workers[0].chips, rows[i].chips);
                        assert_int_equal(job.workers[0].spec_chips, 4);
                }
                kueue_workload_free(&w);
                text_free(&text);
                job_free(&job);
        }
        json_decref(known);
}

static const char *status_of(const json_t *patch, const char *type)
{
        const json_t *list = json_object_get(json_object_get(patch, "status"), "conditions");
        json_t *condition;
        size_t i;

        json_array_foreach((json_t *) list, i, condition)
        {
                if (strcmp(json_string_value(json_object_get(condition, "type")), type) == 0)
                        return json_string_value(json_object_get(condition, "status"));
        }
        return "";
}

static void quota_is_given_back_as_kueue_does(void **state)
{
        static const char *const again[] = { "Preempted",        "True", "Deactivated", "False",
                                             "PodsReadyTimeout", "False" };

        (void) state;
        for (size_t i = 0; i < 6; i += 2) {
                struct text text = { 0 };
                struct kueue_workload w;
                json_t *patch;

                text_printf(&text,
                            "{\"conditions\":[{\"type\":\"Evicted\",\"status\":\"True\",\"reason\":\"%s\"}"
                            "," RESERVED "," ADMITTED "," CONDITION("Other", "True", "X", "") "," CONDITION(
                                    "PodsReady", "True", "X", "") "]," ASSIGNED("") "}",
                            again[i]);
                w = workload_of(text.data);
                patch = kueue_workload_status_release(&w, "m", 1000000);
                assert_true(json_is_null(json_object_get(json_object_get(patch, "status"), "admission")));
                assert_string_equal(status_of(patch, "QuotaReserved"), "False");
                assert_string_equal(status_of(patch, "Admitted"), "False");
                assert_string_equal(status_of(patch, "PodsReady"), "False");
                assert_string_equal(status_of(patch, "Evicted"), "True"); /* Kueue's to say */
                assert_string_equal(status_of(patch, "Other"), "True");   /* what is another's stays */
                assert_string_equal(status_of(patch, "Requeued"), again[i + 1]);
                assert_string_equal(json_string_value(json_object_get(json_object_get(patch, "metadata"),
                                                                      "resourceVersion")),
                                    "7");
                json_decref(patch);
                kueue_workload_free(&w);
                text_free(&text);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_pod_set_is_a_chip_of_each_entry),
                cmocka_unit_test(chips_of_no_name_are_not_left_out),
                cmocka_unit_test(a_name_stands_while_it_may),
                cmocka_unit_test(quantities_may_be_written_otherwise),
                cmocka_unit_test(conditions_say_how_it_is),
                cmocka_unit_test(whose_it_is_its_name_says_too),
                cmocka_unit_test(an_admission_is_put_onto_the_job),
                cmocka_unit_test(quota_is_given_back_as_kueue_does),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
