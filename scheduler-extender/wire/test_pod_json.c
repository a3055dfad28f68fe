/* Pods and Nodes of the API server, and every field that can be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/quantity.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/wire/pod_json.h"

/* clang-format off */
static const struct {
        const char *text;
        int result;
        int64_t value;
} quantities[] = {
        { "8", 0, 8 },         { "0", 0, 0 },          { "1k", 0, 1000 },    { "8000m", 0, 8 },
        { "8001m", 0, 9 },     { "2e3", 0, 2000 },     { "1.5", 0, 2 },      { "1Ki", 0, 1024 },
        { "0.5Ki", 0, 512 },   { "-3", 0, -3 },        { "1E", 0, 1000000000000000000 },
        { "", -EINVAL, 0 },    { "x", -EINVAL, 0 },    { "1x", -EINVAL, 0 }, { "1 ", -EINVAL, 0 },
        { "10E", -ERANGE, 0 }, { "1e99", -ERANGE, 0 }, { ".", -EINVAL, 0 },  { "1e", -EINVAL, 0 },
};

#define CHIPS(n) "{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"" #n "\"}}}"
#define SIDECAR(n) "{\"restartPolicy\":\"Always\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":" #n "}}}"

static const struct {
        const char *what, *spec;
        uint32_t chips;
} counts[] = {
        { "two containers add up",           "{\"containers\":[" CHIPS(2) "," CHIPS(1) "]}", 3 },
        { "an init container alone counts",  "{\"containers\":[" CHIPS(2) "],\"initContainers\":[" CHIPS(4) "]}", 4 },
        { "init containers follow another",  "{\"containers\":[" CHIPS(2) "],\"initContainers\":[" CHIPS(1) "," CHIPS(2) "]}", 2 },
        { "a sidecar stays",                 "{\"containers\":[" CHIPS(2) "],\"initContainers\":[" SIDECAR(1) "]}", 3 },
        { "a sidecar before an init",        "{\"containers\":[" CHIPS(1) "],\"initContainers\":[" SIDECAR(2) "," CHIPS(3) "]}", 5 },
        { "an init before a sidecar",        "{\"containers\":[" CHIPS(1) "],\"initContainers\":[" CHIPS(3) "," SIDECAR(1) "]}", 3 },
        { "requests before limits",          "{\"containers\":[{\"resources\":{\"requests\":{\"nvidia.com/gpu\":\"2\"},\"limits\":{\"nvidia.com/gpu\":\"2\",\"cpu\":\"9\"}}}]}", 2 },
        { "zero chips are none",             "{\"containers\":[" CHIPS(0) "]}", 0 },
        { "only CPU",                        "{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"3\",\"hugepages-2Mi\":\"1\"}}}]}", 0 },
        { "no containers",                   "{}", 0 },
};
/* clang-format on */

static int decode(const char *text, struct symbols *symbols, struct ledger_pod_facts *facts, json_t **json,
                  struct err *err)
{
        static const char *const namespaces[] = { "ops" }, *const classes[] = { "critical" };
        struct pod_json_policy policy = { .emergency_namespaces = namespaces,
                                          .emergency_namespace_count = 1,
                                          .emergency_classes = classes,
                                          .emergency_class_count = 1 };

        *json = json_loads(text, 0, NULL);
        assert_non_null(*json);
        return pod_json_decode(*json, &policy, symbols, true, facts, err);
}

static void quantities_are_read_as_kubernetes_does(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(quantities); i++) {
                int64_t value = 0;
                int r = quantity_parse(quantities[i].text, &value);

                if (r != quantities[i].result || (r == 0 && value != quantities[i].value))
                        fail_msg("'%s': want %d, %lld, got %d, %lld", quantities[i].text,
                                 quantities[i].result, (long long) quantities[i].value, r, (long long) value);
        }
}

static void chips_are_counted_as_kubernetes_does(void **state)
{
        struct symbols symbols = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
                char text[1024];
                struct ledger_pod_facts facts;
                struct err err = { 0 };
                json_t *json;

                (void) snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"p\"},\"spec\":%s}",
                                counts[i].spec);
                if (decode(text, &symbols, &facts, &json, &err) < 0)
                        fail_msg("%s: %s", counts[i].what, err.msg);
                if (request_chips(&facts.request) != counts[i].chips)
                        fail_msg("%s: want %u, got %u", counts[i].what, counts[i].chips,
                                 request_chips(&facts.request));
                json_decref(json);
        }
        symbols_free(&symbols);
}

static void an_emergency_needs_a_class_or_a_namespace_that_may(void **state)
{
        struct symbols symbols = { 0 };
        struct ledger_pod_facts facts;
        json_t *json;

        (void) state;
        assert_int_equal(decode("{\"metadata\":{\"name\":\"p\",\"namespace\":\"ops\",\"labels\":{"
                                "\"remuda.dev/urgency\":\"emergency\"}}}",
                                &symbols, &facts, &json, NULL),
                         0);
        assert_true(facts.request.emergency);
        json_decref(json);
        assert_int_equal(decode("{\"metadata\":{\"name\":\"p\",\"namespace\":\"other\",\"labels\":{"
                                "\"remuda.dev/urgency\":\"emergency\"}}}",
                                &symbols, &facts, &json, NULL),
                         0);
        assert_false(facts.request.emergency);
        assert_true(facts.request.urgency_ignored);
        json_decref(json);
        assert_int_equal(
                decode("{\"metadata\":{\"name\":\"p\"},\"spec\":{\"priorityClassName\":\"critical\"}}",
                       &symbols, &facts, &json, NULL),
                0);
        assert_true(facts.request.emergency);
        json_decref(json);
        symbols_free(&symbols);
}

static void labels_that_lie_are_refused_by_name(void **state)
{
        static const char *const pods[] = {
                "{\"metadata\":{\"name\":\"p\",\"labels\":{\"remuda.dev/gang-size\":\"-1\"}}}",
                "{\"metadata\":{\"name\":\"p\",\"labels\":{\"remuda.dev/gang-size\":\"99999999999\"}}}",
                "{\"metadata\":{\"name\":\"p\",\"labels\":{\"remuda.dev/preemptible\":\"maybe\"}}}",
                "{\"metadata\":{\"name\":\"p\",\"labels\":{\"remuda.dev/urgency\":\"very\"}}}",
                "{\"metadata\":{\"name\":\"p\",\"annotations\":{\"remuda.dev/placement\":\"best\"}}}",
                "{\"metadata\":{\"name\":\"p\",\"annotations\":{\"remuda.dev/gang\":\"nvidia.com/gpu=4\"}}}",
                "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[" CHIPS(-1) "]}}",
                "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[" CHIPS(99999999999) "]}}",
                "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":{}}}",
                "{\"metadata\":{\"name\":7}}",
                "{\"metadata\":[]}",
                "{}",
        };
        struct symbols symbols = { 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
                struct ledger_pod_facts facts;
                struct err err = { 0 };
                json_t *json;
                int r = decode(pods[i], &symbols, &facts, &json, &err);

                json_decref(json);
                if (r != -EBADMSG || err.msg[0] == '\0')
                        fail_msg("%s: got %d '%s'", pods[i], r, err.msg);
        }
        symbols_free(&symbols);
}

static void a_gang_may_list_its_members(void **state)
{
        struct symbols symbols = { 0 };
        struct ledger_pod_facts facts;
        json_t *json;

        (void) state;
        assert_int_equal(
                decode("{\"metadata\":{\"name\":\"p\",\"annotations\":{\"remuda.dev/gang\":"
                       "\"nvidia.com/gpu=4x2,huawei.com/Ascend910=8x1\",\"remuda.dev/models\":\"A|B\"}}}",
                       &symbols, &facts, &json, NULL),
                0);
        assert_int_equal(facts.kind_count, 2);
        assert_int_equal(facts.kinds[1].chips, 8);
        assert_int_equal(facts.request.gang_size, 3);
        assert_int_equal(facts.request.class_chips, 16);
        assert_int_equal(facts.request.model_count, 2);
        json_decref(json);
        symbols_free(&symbols);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(quantities_are_read_as_kubernetes_does),
                cmocka_unit_test(chips_are_counted_as_kubernetes_does),
                cmocka_unit_test(an_emergency_needs_a_class_or_a_namespace_that_may),
                cmocka_unit_test(labels_that_lie_are_refused_by_name),
                cmocka_unit_test(a_gang_may_list_its_members),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
