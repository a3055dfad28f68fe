/* What pods demand of those around them, and say of themselves, as lines; what cannot be judged is no demand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/wire/pod_neighbours.h"

#define POD(spec) "{'metadata':{'namespace':'ns','labels':{'a':'1','b':'2'}},'spec':{" spec "}}"
#define AFFINITY(kind, t)                                                                                    \
        POD("'affinity':{'" kind "':{'requiredDuringSchedulingIgnoredDuringExecution':[" t "]}}")
#define NEAR(t)   AFFINITY("podAffinity", t)
#define APART(t)  AFFINITY("podAntiAffinity", t)
#define SPREAD(t) POD("'topologySpreadConstraints':[{'topologyKey':'z'," t "}]")
#define ALL       "'labelSelector':{}"

struct row {
        const char *json, *lines; /* ' stands for " */
};

/* clang-format off */
static const struct row labels[] = {
        { "{}",                                                   "default\n" },
        { POD(""),                                                "ns\na=1\nb=2\n" },
        { "{'metadata':{'labels':{'a':7,'b':'x\\ny','c':''}}}",   "default\nc=\n" },
        { "{'metadata':{'labels':{'x\\ny':'1','x\\ty':'1','x=y':'1','c':''}}}", "default\nc=\n" },
};
static const struct row demands[] = {
        { "{}",                                                   "" },
        { "7",                                                    "" },
        { POD("'affinity':{'podAntiAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'podAffinityTerm':{'topologyKey':'z'}}]}}"), "" },
        { NEAR("{'topologyKey':'z'," ALL "}"),                    "N\tz\n@\tns\n" },
        { APART("{'topologyKey':'z'," ALL "}"),                   "A\tz\n@\tns\n" },
        { APART("{'topologyKey':'z'}"),                           "A\tz\n@\tns\nx\n" },
        { APART("{" ALL "}"),                                     "" },
        { APART("7,{'topologyKey':'z'," ALL "}"),                 "A\tz\n@\tns\n" },
        { APART("{'topologyKey':'z','labelSelector':{'matchLabels':{'k':'v','l':''}}}"), "A\tz\n@\tns\ni\tk\tv\ni\tl\t\n" },
        { APART("{'topologyKey':'z','labelSelector':{'matchLabels':{'k':7}}}"), "" },
        { APART("{'topologyKey':'z','labelSelector':{'matchLabels':{'k\\nA\\ty':'v'}}}"), "" },
        { APART("{'topologyKey':'z','labelSelector':{'matchExpressions':[{'key':'k','operator':'In','values':['v','w']},{'key':'k','operator':'NotIn','values':['x']},"
                "{'key':'l','operator':'Exists'},{'key':'m','operator':'DoesNotExist'}]}}"), "A\tz\n@\tns\ni\tk\tv\tw\nn\tk\tx\ne\tl\na\tm\n" },
        { APART("{'topologyKey':'z','labelSelector':{'matchExpressions':[{'key':'k','operator':'Near'}]}}"), "" },
        { APART("{'topologyKey':'z','namespaces':['x','y']," ALL "}"), "A\tz\n@\tx\ty\n" },
        { APART("{'topologyKey':'z','namespaceSelector':{}," ALL "}"), "A\tz\n@\t*\n" },
        { APART("{'topologyKey':'z','namespaces':['x'],'namespaceSelector':{}," ALL "}"), "A\tz\n@\t*\n" },
        { APART("{'topologyKey':'z','namespaces':['x'],'namespaceSelector':{'matchLabels':{}}," ALL "}"), "A\tz\n@\t*\n" },
        { APART("{'topologyKey':'z','namespaces':['x'],'namespaceSelector':{'matchLabels':{'kubernetes.io/metadata.name':'y'}}," ALL "}"), "A\tz\n@\ty\tx\n" },
        { APART("{'topologyKey':'z','namespaceSelector':{'matchExpressions':[{'key':'kubernetes.io/metadata.name','operator':'In','values':['x','y']}]}," ALL "}"),
                                                                  "A\tz\n@\tx\ty\n" },
        { APART("{'topologyKey':'z','namespaceSelector':{'matchLabels':{'team':'x'}}," ALL "}"), "" },
        { APART("{'topologyKey':'z','namespaceSelector':{'matchExpressions':[{'key':'kubernetes.io/metadata.name','operator':'NotIn','values':['x']}]}," ALL "}"), "" },
        { APART("{'topologyKey':'z','namespaceSelector':{'matchLabels':{'kubernetes.io/metadata.name':'y'},'matchExpressions':[{'key':'k','operator':'Exists'}]}," ALL "}"), "" },
        { APART("{'topologyKey':'z','namespaceSelector':{'matchExpressions':[{'key':'k','operator':'Exists'},{'key':'l','operator':'Exists'}]}," ALL "}"), "" },
        { APART("{'topologyKey':'z','namespaceSelector':{'matchExpressions':[{'key':'team','operator':'In','values':['x']}]}," ALL "}"), "" },
        { APART("{'topologyKey':''," ALL "}"),                    "" },
        { APART("{'topologyKey':'z','labelSelector':{'matchExpressions':[{'operator':'Exists'}]}}"), "" },
        { APART("{'topologyKey':'z','labelSelector':{'matchExpressions':[{'key':'k','operator':'In','values':[7,'v']}]}}"), "A\tz\n@\tns\ni\tk\tv\n" },
        { APART("{'topologyKey':'z','matchLabelKeys':[7,'a']," ALL "}"), "A\tz\n@\tns\ni\ta\t1\n" },
        { SPREAD("'minDomains':-1,'whenUnsatisfiable':'DoNotSchedule'," ALL), "" },
        { APART("{'topologyKey':'y','namespaceSelector':{'matchLabels':{'team':'x'}}," ALL "},{'topologyKey':'z'," ALL "}"), "A\tz\n@\tns\n" },
        { NEAR("{'topologyKey':'y','namespaceSelector':{'matchLabels':{'team':'x'}}," ALL "},{'topologyKey':'z'," ALL "}"), "" },
        { APART("{'topologyKey':'z','matchLabelKeys':['a','c'],'mismatchLabelKeys':['b']," ALL "}"), "A\tz\n@\tns\ni\ta\t1\nn\tb\t2\n" },
        { SPREAD("'maxSkew':2,'whenUnsatisfiable':'DoNotSchedule'," ALL), "S\tz\t2\t0\tm-\n@\tns\n" },
        { SPREAD("'maxSkew':2,'whenUnsatisfiable':'ScheduleAnyway'," ALL), "" },
        { SPREAD("'maxSkew':'2','whenUnsatisfiable':'DoNotSchedule'," ALL), "" },
        { SPREAD("'maxSkew':1,'minDomains':3,'nodeAffinityPolicy':'Ignore','nodeTaintsPolicy':'Honor','matchLabelKeys':['b'],'whenUnsatisfiable':'DoNotSchedule'," ALL),
                                                                  "S\tz\t1\t3\tt-\n@\tns\ni\tb\t2\n" },
};
/* clang-format on */

static json_t *load(const char *quoted)
{
        CLEANUP(text_free) struct text json = { 0 };
        json_t *object;

        text_append(&json, quoted);
        assert_false(json.failed);
        for (char *c = json.data; *c != '\0'; c++)
                *c = *c == '\'' ? '"' : *c;
        object = json_loads(json.data, JSON_DECODE_ANY, NULL);
        assert_non_null(object);
        return object;
}

static void compare(const struct row *rows, size_t count, void (*put)(const json_t *, struct text *))
{
        for (size_t i = 0; i < count; i++) {
                CLEANUP(text_free) struct text lines = { 0 };
                json_t *object = load(rows[i].json);

                put(object, &lines);
                assert_false(lines.failed);
                assert_string_equal(lines.data == NULL ? "" : lines.data, rows[i].lines);
                json_decref(object);
        }
}

static void what_pods_say_of_themselves(void **state)
{
        (void) state;
        compare(labels, ARRAY_SIZE(labels), pod_neighbours_labels);
}

static void what_pods_demand_of_those_around_them(void **state)
{
        (void) state;
        compare(demands, ARRAY_SIZE(demands), pod_neighbours_demands);
}

/* A tenant's pod keeps no more of our memory than that. */
static void what_is_too_long_is_not_read(void **state)
{
        CLEANUP(text_free) struct text json = { 0 }, lines = { 0 };
        json_t *object;

        (void) state;
        text_append(&json, "{'metadata':{'labels':{");
        for (int i = 0; i < 1000; i++)
                text_printf(&json, "%s'key-%04d':'value'", i == 0 ? "" : ",", i);
        text_append(&json, "}},'spec':{'affinity':{'podAntiAffinity':{'"
                           "requiredDuringSchedulingIgnoredDuringExecution':[");
        for (int i = 0; i < 1000; i++)
                text_printf(&json, "%s{'topologyKey':'key-%04d'," ALL "}", i == 0 ? "" : ",", i);
        text_append(&json, "]}}}}");
        assert_false(json.failed);
        object = load(json.data);
        pod_neighbours_labels(object, &lines);
        assert_false(lines.failed);
        assert_true(lines.size_bytes <= POD_NEIGHBOURS_LABEL_BYTES);
        assert_true(lines.size_bytes > POD_NEIGHBOURS_LABEL_BYTES - 20);
        text_reset(&lines);
        pod_neighbours_demands(object, &lines);
        assert_int_equal(lines.size_bytes, 0);
        assert_false(lines.failed);
        json_decref(object);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_pods_say_of_themselves),
                cmocka_unit_test(what_pods_demand_of_those_around_them),
                cmocka_unit_test(what_is_too_long_is_not_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
