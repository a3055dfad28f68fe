/* What pods demand of nodes and nodes say of themselves, as lines; what cannot be read is no demand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/wire/pod_node_match.h"

#define TERMS(t)                                                                                             \
        "{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"             \
        "{'nodeSelectorTerms':[" t "]}}}}}"
#define LABEL(e) TERMS("{'matchExpressions':[" e "]}")
#define FIELD(e) TERMS("{'matchFields':[" e "]}")

struct row {
        const char *json, *lines; /* ' stands for " */
};

/* clang-format off */
static const struct row pods[] = {
        { "{}",                                                        "" },
        { "7",                                                         "" },
        { "{'spec':{'nodeSelector':{'a':'b','c':''}}}",                "=\ta\tb\n=\tc\t\n" },
        { "{'spec':{'nodeSelector':{'a':7,'b':'x\\ny','c':null}}}",    "" },
        { "{'spec':{'nodeSelector':{'!a':'b'}}}",                      "=\t!a\tb\n" },
        { "{'spec':{'nodeSelector':{'a\\nt\\t\\te':'b','c':''}}}",     "=\tc\t\n" },
        { TERMS(""),                                                   "" },
        { TERMS("{}"),                                                 "|\nx\n" },
        { TERMS("{},7"),                                               "|\nx\n|\nx\n" },
        { LABEL("{'key':'k','operator':'In','values':['a','b']}"),     "|\ni\tk\ta\tb\n" },
        { LABEL("{'key':'k','operator':'In','values':['a',7,'\\t']}"), "|\ni\tk\ta\n" },
        { LABEL("{'key':'k','operator':'NotIn','values':['a']}"),      "|\nn\tk\ta\n" },
        { LABEL("{'key':'k','operator':'Exists'}"),                    "|\ne\tk\n" },
        { LABEL("{'key':'k','operator':'DoesNotExist'}"),              "|\na\tk\n" },
        { LABEL("{'key':'k','operator':'Gt','values':['3']}"),         "|\ng\tk\t3\n" },
        { LABEL("{'key':'k','operator':'Lt','values':['3']}"),         "|\nl\tk\t3\n" },
        { LABEL("{'key':'k','operator':'Near','values':['3']}"),       "|\n" },
        { LABEL("{'key':'k'}"),                                        "|\n" },
        { LABEL("{'operator':'Exists'}"),                              "|\n" },
        { FIELD("{'key':'metadata.name','operator':'In','values':['n']}"),    "|\nI\tn\n" },
        { FIELD("{'key':'metadata.name','operator':'NotIn','values':['n']}"), "|\nN\tn\n" },
        { FIELD("{'key':'metadata.name','operator':'Exists'}"),        "|\n" },
        { FIELD("{'key':'metadata.uid','operator':'In','values':['n']}"),     "|\n" },
        { "{'spec':{'tolerations':[{'key':'k','value':'v','effect':'NoSchedule'}]}}",  "t\tk\t=\tv\tNoSchedule\n" },
        { "{'spec':{'tolerations':[{'key':'k','operator':'Equal'}]}}", "t\tk\t=\t\t\n" },
        { "{'spec':{'tolerations':[{'operator':'Exists'},7]}}",        "t\t\te\t\t\nt\t\t=\t\t\n" },
};
static const struct row nodes[] = {
        { "{}",                                                        "" },
        { "{'metadata':{'labels':{'a':'b','!c':'d','e':'x\\ty'}}}",    "a=b\n" },
        { "{'metadata':{'labels':{'a':'b','c\\nd':'e','f=g':'h'}}}",    "a=b\n" },
        { "{'spec':{'taints':[{'key':'k','value':'v','effect':'NoSchedule'},{'key':'l','effect':'NoExecute'}]}}",
                                                                       "!k=v:NoSchedule\n!l=:NoExecute\n" },
        { "{'spec':{'taints':[{'key':'k','effect':'PreferNoSchedule'},{'key':'k'},{'effect':'NoExecute'}]}}", "" },
        { "{'spec':{'unschedulable':true}}",                           "!node.kubernetes.io/unschedulable=:NoSchedule\n" },
        { "{'spec':{'unschedulable':true,'taints':[{'key':'k','effect':'NoExecute'}]}}",
                                                                       "!k=:NoExecute\n!node.kubernetes.io/unschedulable=:NoSchedule\n" },
        { "{'spec':{'unschedulable':true,'taints':[{'key':'node.kubernetes.io/unschedulable','effect':'NoSchedule'},{'key':'k','effect':'NoExecute'}]}}",
                                                                       "!node.kubernetes.io/unschedulable=:NoSchedule\n!k=:NoExecute\n" },
};
/* clang-format on */

static void compare(const struct row *rows, size_t count, void (*put)(const json_t *, struct text *))
{
        for (size_t i = 0; i < count; i++) {
                CLEANUP(text_free) struct text json = { 0 }, lines = { 0 };
                json_t *object;

                text_append(&json, rows[i].json);
                for (char *c = json.data; *c != '\0'; c++)
                        *c = *c == '\'' ? '"' : *c;
                object = json_loads(json.data, JSON_DECODE_ANY, NULL);
                assert_non_null(object);
                put(object, &lines);
                assert_string_equal(lines.data == NULL ? "" : lines.data, rows[i].lines);
                json_decref(object);
        }
}

static void what_pods_demand(void **state)
{
        (void) state;
        compare(pods, ARRAY_SIZE(pods), pod_node_match);
}

static void what_nodes_say(void **state)
{
        (void) state;
        compare(nodes, ARRAY_SIZE(nodes), pod_node_match_traits);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_pods_demand),
                cmocka_unit_test(what_nodes_say),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
