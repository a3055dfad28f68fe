/* Pods and Nodes of the API server, and every field that can be wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/quantity.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/wire/pod_json.h"
#include "tests/support/test_ledger.h"

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
        { "overhead of a RuntimeClass",      "{\"containers\":[" CHIPS(2) "],\"initContainers\":[" CHIPS(4) "],\"overhead\":{\"nvidia.com/gpu\":\"1\",\"cpu\":\"1\"}}", 5 },
        { "only CPU",                        "{\"containers\":[{\"resources\":{\"requests\":{\"cpu\":\"3\",\"hugepages-2Mi\":\"1\"}}}]}", 0 },
        { "no containers",                   "{}", 0 },
};
/* clang-format on */

static struct ledger *new_ledger(void)
{
        struct ledger *ledger = test_ledger();

        assert_non_null(ledger);
        ledger_chips_mark(ledger, "nvidia.com/gpu");
        return ledger;
}

static int decode(const char *text, struct ledger *ledger, struct ledger_pod_facts *facts, json_t **json,
                  struct err *err)
{
        static const char *const namespaces[] = { "ops" }, *const classes[] = { "critical" };
        struct pod_json_policy policy = { .emergency_namespaces = namespaces,
                                          .emergency_namespace_count = 1,
                                          .emergency_classes = classes,
                                          .emergency_class_count = 1 };

        *json = json_loads(text, 0, NULL);
        assert_non_null(*json);
        return pod_json_decode(*json, &policy, ledger, true, facts, err);
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
        struct ledger *ledger = new_ledger();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
                char text[1024];
                struct ledger_pod_facts facts;
                struct err err = { 0 };
                json_t *json;

                (void) snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"p\"},\"spec\":%s}",
                                counts[i].spec);
                if (decode(text, ledger, &facts, &json, &err) < 0)
                        fail_msg("%s: %s", counts[i].what, err.msg);
                if (request_chips(&facts.request) != counts[i].chips)
                        fail_msg("%s: want %u, got %u", counts[i].what, counts[i].chips,
                                 request_chips(&facts.request));
                json_decref(json);
        }
        ledger_life_free(ledger);
}

static void an_emergency_needs_a_class_or_a_namespace_that_may(void **state)
{
        struct ledger *ledger = new_ledger();
        struct ledger_pod_facts facts;
        json_t *json;

        (void) state;
        assert_int_equal(decode("{\"metadata\":{\"name\":\"p\",\"namespace\":\"ops\",\"labels\":{"
                                "\"remuda.dev/urgency\":\"emergency\"}}}",
                                ledger, &facts, &json, NULL),
                         0);
        assert_true(facts.request.emergency);
        json_decref(json);
        assert_int_equal(decode("{\"metadata\":{\"name\":\"p\",\"namespace\":\"other\",\"labels\":{"
                                "\"remuda.dev/urgency\":\"emergency\"}}}",
                                ledger, &facts, &json, NULL),
                         0);
        assert_false(facts.request.emergency);
        assert_true(facts.request.urgency_ignored);
        json_decref(json);
        assert_int_equal(
                decode("{\"metadata\":{\"name\":\"p\"},\"spec\":{\"priorityClassName\":\"critical\"}}",
                       ledger, &facts, &json, NULL),
                0);
        assert_true(facts.request.emergency);
        json_decref(json);
        assert_int_equal(
                decode("{\"metadata\":{\"name\":\"p\",\"labels\":{\"remuda.dev/urgency\":\"emergency\"}},"
                       "\"spec\":{\"priorityClassName\":\"critical\"}}",
                       ledger, &facts, &json, NULL),
                0); /* by its class, whatever its namespace may */
        assert_true(facts.request.emergency && !facts.request.urgency_ignored);
        json_decref(json);
        ledger_life_free(ledger);
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
        struct ledger *ledger = new_ledger();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
                struct ledger_pod_facts facts;
                struct err err = { 0 };
                json_t *json;
                int r = decode(pods[i], ledger, &facts, &json, &err);

                json_decref(json);
                if (r != -EBADMSG || err.msg[0] == '\0')
                        fail_msg("%s: got %d '%s'", pods[i], r, err.msg);
        }
        ledger_life_free(ledger);
}

static void a_gang_may_list_its_members(void **state)
{
        struct ledger *ledger = new_ledger();
        struct ledger_pod_facts facts;
        json_t *json;

        (void) state;
        assert_int_equal(
                decode("{\"metadata\":{\"name\":\"p\",\"annotations\":{\"remuda.dev/gang\":"
                       "\"nvidia.com/gpu=4x2,huawei.com/Ascend910=8x1\",\"remuda.dev/models\":\"A|B\"}}}",
                       ledger, &facts, &json, NULL),
                0);
        assert_int_equal(facts.kind_count, 2);
        assert_int_equal(facts.kinds[1].chips, 8);
        assert_int_equal(facts.request.gang_size, 3);
        assert_int_equal(facts.request.class_chips, 16);
        assert_int_equal(facts.request.model_count, 2);
        json_decref(json);
        ledger_life_free(ledger);
}

/* A pod that sits on a node is accounted for whatever else is wrong with it. */
static void a_wrong_wish_takes_no_account_away(void **state)
{
        static const char *const wishes[] = {
                "\"labels\":{\"remuda.dev/gang-size\":\"-1\",\"remuda.dev/job\":\"j\"}",
                "\"labels\":{\"remuda.dev/preemptible\":\"maybe\",\"remuda.dev/job\":\"j\"}",
                "\"labels\":{\"remuda.dev/job\":\"j\"},\"annotations\":{\"remuda.dev/placement\":\"best\"}",
                "\"labels\":{\"remuda.dev/job\":\"j\"},\"annotations\":[]",
                "\"labels\":{\"remuda.dev/job\":\"j\"},\"creationTimestamp\":7",
        };
        struct ledger *ledger = new_ledger();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(wishes); i++) {
                struct ledger_pod_facts facts;
                struct err err = { 0 };
                char text[1024];
                json_t *json;

                (void) snprintf(text, sizeof(text),
                                "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",%s},\"spec\":{\"nodeName\":"
                                "\"n\",\"containers\":[" CHIPS(4) "]}}",
                                wishes[i]);
                assert_int_equal(decode(text, ledger, &facts, &json, &err), -EBADMSG);
                assert_true(err.msg[0] != '\0');
                assert_string_equal(facts.uid, "u");
                assert_string_equal(facts.node, "n");
                assert_string_equal(facts.job, "j");
                assert_int_equal(request_chips(&facts.request), 4);
                json_decref(json);
        }
        ledger_life_free(ledger);
}

/* clang-format off */
#define RESOURCE(name, n) "\"" name "\":\"" n "\","
#define NICS RESOURCE("rdma/a", "1") RESOURCE("rdma/b", "1") RESOURCE("rdma/c", "1") RESOURCE("rdma/d", "1") \
             RESOURCE("rdma/e", "1") RESOURCE("rdma/f", "1") RESOURCE("rdma/g", "1") RESOURCE("rdma/h", "1")
#define MANY NICS RESOURCE("x.y/a", "1") RESOURCE("x.y/b", "1") RESOURCE("x.y/c", "1") RESOURCE("x.y/d", "1") \
             RESOURCE("x.y/e", "1") RESOURCE("x.y/f", "1") RESOURCE("x.y/g", "1") RESOURCE("x.y/h", "1")
static const struct {
        const char *what, *limits;
        uint32_t gpus;
        int result;
        bool unreadable;
} mixtures[] = {
        { "8 GPUs and 8 NICs of their own names", "{" NICS "\"nvidia.com/gpu\":\"8\"}",                 8, 0, false },
        { "behind more than a request holds",     "{" MANY "\"nvidia.com/gpu\":\"8\"}",           8, -EBADMSG, false },
        { "memory of a shared GPU",               "{\"nvidia.com/gpumem\":\"16000\",\"nvidia.com/gpu\":1}", 1, 0, false },
        { "what is no chip may say anything",     "{\"nvidia.com/gpumem\":[],\"nvidia.com/gpu\":1}",     1, 0, false },
        { "more than there can be",               "{\"nvidia.com/gpu\":\"1E\"}", REQUEST_CHIPS_MAX, -EBADMSG, false },
        { "beyond 64 bits",                       "{\"nvidia.com/gpu\":\"100E\"}", REQUEST_CHIPS_MAX, -EBADMSG, false },
        { "no count",                             "{\"nvidia.com/gpu\":\"many\"}", REQUEST_CHIPS_MAX, -EBADMSG, false },
        { "fewer than none",                      "{\"nvidia.com/gpu\":\"-8\"}",                       0, -EBADMSG, false },
        { "a whole number below none",            "{\"nvidia.com/gpu\":-8}",                           0, -EBADMSG, false },
        { "far below none",                       "{\"nvidia.com/gpu\":\"-100E\"}",                    0, -EBADMSG, false },
        { "a domain without a name",              "{\"nvidia.com/\":\"3\",\"nvidia.com/gpu\":1}",      1, 0, false },
        { "a quota's name",                       "{\"requests.nvidia.com/gpu\":\"3\",\"nvidia.com/gpu\":1}", 1, 0, false },
        { "Kubernetes' own domain",               "{\"node.kubernetes.io/gpu\":\"3\",\"nvidia.com/gpu\":1}", 1, 0, false },
        { "a claim of our own, which says which", "{\"remuda.dev/claim\":\"9\",\"nvidia.com/gpu\":1}",    1, 0, false },
        { "no list of resources",                 "\"all\"",                                           0, -EBADMSG, true },
};

static const struct {
        const char *what, *spec, *says;
        uint32_t gpus;
        bool unreadable;
} broken_specs[] = {
        { "who runs has containers", "{\"nodeName\":\"a\"}", "spec: has no containers", 0, true },
        { "... not init ones alone", "{\"nodeName\":\"a\",\"initContainers\":[" CHIPS(1) "]}", "spec: has no containers", 0, true },
        { "init containers that are none", "{\"initContainers\":7}", "spec.initContainers: ", 0, true },
        { "containers that are none",      "{\"containers\":{}}", "spec.containers: ", 0, true },
        { "a container that is none",      "{\"containers\":[7," CHIPS(2) "]}", "spec.containers[0]: ", 2, true },
        { "two wrong counts: the first is told",
          "{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"x\"}}},{\"resources\":7}]}",
          "spec.containers[0].resources.limits.nvidia.com/gpu: ", REQUEST_CHIPS_MAX, true },
        { "together more than there can be",
          "{\"containers\":[" CHIPS(4000) "," CHIPS(4000) "]}", "asks for 8000 of nvidia.com/gpu; at most ", REQUEST_CHIPS_MAX, false },
};
/* clang-format on */

static void chips_are_told_from_what_is_beside_them(void **state)
{
        struct ledger *ledger = new_ledger();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(mixtures); i++) {
                struct ledger_pod_facts facts;
                struct request request;
                struct err err = { 0 };
                char text[2048];
                json_t *json;
                int r;

                (void) snprintf(text, sizeof(text),
                                "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"resources\":{"
                                "\"limits\":%s}}]}}",
                                mixtures[i].limits);
                r = decode(text, ledger, &facts, &json, &err);
                request = facts.request;
                ledger_chips_only(ledger, &request);
                if (r != mixtures[i].result || request_chips(&request) != mixtures[i].gpus ||
                    request.unreadable != mixtures[i].unreadable)
                        fail_msg("%s: %d, %u chips: %s", mixtures[i].what, r, request_chips(&request),
                                 err.msg);
                json_decref(json);
        }
        ledger_life_free(ledger);
}

static void what_is_wrong_with_a_spec_is_told_and_the_rest_counts(void **state)
{
        struct ledger *ledger = new_ledger();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(broken_specs); i++) {
                struct ledger_pod_facts facts;
                struct err err = { 0 };
                char text[1024];
                json_t *json;

                (void) snprintf(text, sizeof(text), "{\"metadata\":{\"name\":\"p\"},\"spec\":%s}",
                                broken_specs[i].spec);
                if (decode(text, ledger, &facts, &json, &err) != -EBADMSG ||
                    strstr(err.msg, broken_specs[i].says) == NULL ||
                    request_chips(&facts.request) != broken_specs[i].gpus ||
                    facts.request.unreadable != broken_specs[i].unreadable)
                        fail_msg("%s: %u chips: %s", broken_specs[i].what, request_chips(&facts.request),
                                 err.msg);
                json_decref(json);
        }
        ledger_life_free(ledger);
}

/* An API server keeps a pod of so many: its account is what they ask for, and not the whole node. */
static void thousands_of_containers_are_added_up(void **state)
{
        enum { COUNT = 5000 };
        json_t *json = json_pack("{s:{s:s}, s:{s:[], s:[]}}", "metadata", "name", "p", "spec", "containers",
                                 "initContainers");
        json_t *spec = json_object_get(json, "spec");
        struct ledger *ledger = new_ledger();
        struct ledger_pod_facts facts;
        struct err err = { 0 };

        (void) state;
        for (size_t i = 0; i < COUNT; i++) {
                json_array_append_new(json_object_get(spec, "initContainers"),
                                      json_pack("{s:s}", "name", "i"));
                json_array_append_new(json_object_get(spec, "containers"),
                                      i % 1000 != 0 ? json_pack("{s:s}", "name", "c")
                                                    : json_pack("{s:{s:{s:i}}}", "resources", "limits",
                                                                "nvidia.com/gpu", 1));
        }
        assert_int_equal(pod_json_decode(json, &(struct pod_json_policy){ 0 }, ledger, true, &facts, &err),
                         0);
        assert_false(facts.request.unreadable);
        assert_int_equal(request_chips(&facts.request), 5);
        json_decref(json);
        ledger_life_free(ledger);
}

/* So many resources beside, `count` of them, and then one that may be chips, and one that is. */
static json_t *many_beside(size_t count)
{
        json_t *resources = json_object();
        char name[40];

        for (size_t i = 0; i < count; i++) {
                (void) snprintf(name, sizeof(name), "rdma/hca%zu", i);
                json_object_set_new(resources, name, json_string("1"));
        }
        json_object_set_new(resources, "acme.com/npu", json_string("4"));
        json_object_set_new(resources, "nvidia.com/gpu", json_string("8"));
        return resources;
}

static struct ledger_trust_offer offer_of(const struct ledger *ledger, const struct ledger_node_facts *node,
                                          const char *name)
{
        for (size_t i = 0; i < node->allocatable_count; i++)
                if (strcmp(symbols_name(&ledger->symbols, node->allocatable[i].resource), name) == 0)
                        return node->allocatable[i];
        return (struct ledger_trust_offer){ 0 };
}

static uint32_t chips_of(const struct ledger *ledger, const struct request_item *items, size_t count,
                         const char *resource)
{
        for (size_t i = 0; i < count; i++)
                if (items[i].resource == symbols_find(&ledger->symbols, resource, strlen(resource)))
                        return items[i].chips;
        return 0;
}

/* However many resources a pod or a node has beside its chips: their counts stand. */
static void chips_are_kept_among_many(void **state)
{
        struct ledger *ledger = new_ledger();
        struct ledger_pod_facts facts;
        struct ledger_node_facts node;
        struct err err = { 0 };
        json_t *json = json_pack("{s:{s:s}, s:{s:o}}", "metadata", "name", "n", "status", "allocatable",
                                 many_beside(400));

        (void) state;
        for (size_t i = 0; i < 400; i++) {
                char name[40];

                (void) snprintf(name, sizeof(name), "rdma/hca%zu", i);
                ledger_chips_note(ledger, symbols_add(&ledger->symbols, name), LEDGER_CHIPS_BESIDE);
        }
        assert_int_equal(pod_json_node_decode(json, ledger, &node, &err), 0);
        assert_int_equal(offer_of(ledger, &node, "nvidia.com/gpu").chips, 8);
        assert_int_equal(offer_of(ledger, &node, "acme.com/npu").chips, 4);
        assert_int_equal(node.allocatable_count + node.allocatable_left_out, 402);
        json_decref(json);
        json = json_pack("{s:{s:s}, s:{s:[{s:{s:o}}, {s:{s:o}}]}}", "metadata", "name", "p", "spec",
                         "containers", "resources", "limits", many_beside(200), "resources", "limits",
                         many_beside(100));
        assert_int_equal(pod_json_decode(json, &(struct pod_json_policy){ 0 }, ledger, true, &facts, &err),
                         0);
        assert_int_equal(chips_of(ledger, facts.request.items, facts.request.item_count, "nvidia.com/gpu"),
                         16);
        assert_int_equal(chips_of(ledger, facts.request.items, facts.request.item_count, "acme.com/npu"), 8);
        json_decref(json);
        ledger_life_free(ledger);
}

/* More resources that may be chips than a pod is added up by: those that are chips stand. */
static void what_is_beyond_all_rows_is_left_out(void **state)
{
        json_t *spec = json_pack("{s:[], s:[]}", "containers", "initContainers");
        json_t *pod = json_pack("{s:{s:s}, s:o}", "metadata", "name", "p", "spec", spec);
        struct ledger *ledger = new_ledger();
        struct ledger_pod_facts facts;
        struct err err = { 0 };
        char name[40];

        (void) state;
        for (int c = 0; c < 3; c++) {
                json_t *limits = json_pack("{s:s}", "nvidia.com/gpu", "2");

                for (int i = 0; i < 50; i++) {
                        (void) snprintf(name, sizeof(name), "unheard-%d.of/chip%d", c, i);
                        json_object_set_new(limits, name, json_string("1"));
                }
                json_array_append_new(json_object_get(spec, c < 2 ? "containers" : "initContainers"),
                                      json_pack("{s:{s:o}}", "resources", "limits", limits));
        }
        assert_int_equal(pod_json_decode(pod, &(struct pod_json_policy){ 0 }, ledger, true, &facts, &err),
                         -EBADMSG);
        assert_non_null(strstr(err.msg, "more than the 16 resources that are counted"));
        assert_true(facts.request.more && !facts.request.unreadable);
        assert_int_equal(chips_of(ledger, facts.request.items, facts.request.item_count, "nvidia.com/gpu"),
                         4);
        assert_int_equal(pod_json_decode(pod, &(struct pod_json_policy){ 0 }, ledger, false, &facts, NULL),
                         0); /* of a request nothing is accounted */
        json_object_set_new(spec, "overhead", json_pack("{s:s}", "nvidia.com/gpu", "x"));
        assert_int_equal(pod_json_decode(pod, &(struct pod_json_policy){ 0 }, ledger, true, &facts, &err),
                         -EBADMSG);
        assert_non_null(strstr(err.msg, "spec.overhead.nvidia.com/gpu: ")); /* what is wrong goes first */
        json_decref(pod);
        ledger_life_free(ledger);
}

static void none_of_a_resource_takes_no_place(void **state)
{
        json_t *limits = json_object();
        json_t *pod = json_pack("{s:{s:s}, s:{s:[{s:{s:o}}]}}", "metadata", "name", "p", "spec", "containers",
                                "resources", "limits", limits);
        struct ledger *ledger = new_ledger();
        struct ledger_pod_facts facts;
        char name[40];

        (void) state;
        for (int i = 0; i < 70; i++) {
                (void) snprintf(name, sizeof(name), "unheard-%d.of/chip", i);
                json_object_set_new(limits, name, i % 2 == 0 ? json_string("0") : json_integer(0));
        }
        json_object_set_new(limits, "unheard.of/npu", json_string("8"));
        assert_int_equal(pod_json_decode(pod, &(struct pod_json_policy){ 0 }, ledger, true, &facts, NULL), 0);
        assert_int_equal(facts.request.item_count, 1);
        assert_int_equal(chips_of(ledger, facts.request.items, facts.request.item_count, "unheard.of/npu"),
                         8);
        assert_false(facts.request.more);
        json_decref(pod);
        ledger_life_free(ledger);
}

/* Symbols are used up: what the pod asks for is nobody's now, and may be what a node brings later. */
static void what_finds_no_name_may_be_chips(void **state)
{
        struct ledger *ledger = new_ledger();
        struct ledger_pod_facts facts;
        char name[40];
        json_t *pod = json_loads("{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[{\"resources\":"
                                 "{\"limits\":{\"unheard.of/npu\":\"8\"}}}]}}",
                                 0, NULL);

        (void) state;
        for (int i = 0; ledger->symbols.count < SYMBOLS_MAX / 2; i++) {
                (void) snprintf(name, sizeof(name), "name-%d", i);
                assert_int_not_equal(symbols_add(&ledger->symbols, name), 0);
        }
        assert_int_equal(pod_json_decode(pod, &(struct pod_json_policy){ 0 }, ledger, true, &facts, NULL),
                         -EBADMSG);
        assert_true(facts.request.more);
        json_decref(pod);
        ledger_life_free(ledger);
}

/* What a node offers beside chips, and how much of it, keeps nobody from knowing the node. */
static void a_node_may_offer_anything(void **state)
{
        struct ledger *ledger = new_ledger();
        struct ledger_node_facts facts;
        json_t *json = json_loads(
                "{\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"nvidia.com/gpumem\":"
                "\"655360\",\"x.y/z\":\"many\",\"x.y/w\":\"-1\",\"nvidia.com/gpu\":\"8\"}}}",
                0, NULL);

        (void) state;
        assert_int_equal(pod_json_node_decode(json, ledger, &facts, NULL), 0);
        assert_int_equal(facts.allocatable_count, 4);
        for (size_t i = 0; i < 4; i++) {
                const char *name = symbols_name(&ledger->symbols, facts.allocatable[i].resource);

                assert_int_equal(facts.allocatable[i].chips, strcmp(name, "nvidia.com/gpu") == 0 ? 8
                                                             : strcmp(name, "nvidia.com/gpumem") == 0
                                                                     ? REQUEST_CHIPS_MAX
                                                                     : 0);
        }
        json_decref(json);
        ledger_life_free(ledger);
}

/* As another device plugin labels a node whose devices it shares. */
static void the_label_says_how_devices_are_shared(void **state)
{
        static const struct {
                const char *label;
                uint32_t replicas;
        } told[] = { { "4", 4 }, { "1", 1 },    { "0", 0 },
                     { "", 0 },  { "many", 0 }, { "99999999", REQUEST_CHIPS_MAX } };
        struct ledger *ledger = new_ledger();

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(told); i++) {
                struct ledger_node_facts facts;
                json_t *json = json_pack("{s:{s:s, s:{s:s, s:s}}, s:{s:{s:s, s:s}}}", "metadata", "name", "n",
                                         "labels", "nvidia.com/gpu.replicas", told[i].label, "x.y/z.replicas",
                                         "2", "status", "allocatable", "nvidia.com/gpu", "32", "a.b/c", "8");

                assert_int_equal(pod_json_node_decode(json, ledger, &facts, NULL), 0);
                assert_int_equal(offer_of(ledger, &facts, "nvidia.com/gpu").replicas, told[i].replicas);
                assert_int_equal(offer_of(ledger, &facts, "nvidia.com/gpu").chips, 32);
                assert_int_equal(offer_of(ledger, &facts, "a.b/c").replicas, 0);
                json_decref(json);
        }
        ledger_life_free(ledger);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(chips_are_kept_among_many),
                cmocka_unit_test(quantities_are_read_as_kubernetes_does),
                cmocka_unit_test(chips_are_counted_as_kubernetes_does),
                cmocka_unit_test(an_emergency_needs_a_class_or_a_namespace_that_may),
                cmocka_unit_test(labels_that_lie_are_refused_by_name),
                cmocka_unit_test(a_gang_may_list_its_members),
                cmocka_unit_test(a_wrong_wish_takes_no_account_away),
                cmocka_unit_test(chips_are_told_from_what_is_beside_them),
                cmocka_unit_test(what_is_wrong_with_a_spec_is_told_and_the_rest_counts),
                cmocka_unit_test(thousands_of_containers_are_added_up),
                cmocka_unit_test(the_label_says_how_devices_are_shared),
                cmocka_unit_test(what_is_beyond_all_rows_is_left_out),
                cmocka_unit_test(none_of_a_resource_takes_no_place),
                cmocka_unit_test(what_finds_no_name_may_be_chips),
                cmocka_unit_test(a_node_may_offer_anything),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
