/* What pods may wish by labels and annotations, word for word: what is taken of each, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/wire/pod_json.h"
#include "tests/support/test_ledger.h"

#define LABEL(name, value) "'metadata':{'name':'p','labels':{'remuda.dev/" name "':" value "}}"
#define NOTE(name, value)  "'metadata':{'name':'p','annotations':{'remuda.dev/" name "':" value "}}"
#define POD(more)          "'metadata':{'name':'p'}," more

/* clang-format off */
static const struct {
        const char *json, *taken; /* ' stands for ", the outer braces are left out; NULL = refused, and nothing is taken */
} pods[] = {
        { LABEL("preemptible", "'true'"),             "preemptible" },
        { LABEL("preemptible", "'false'"),            "" },
        { LABEL("preemptible", "'yes'"),              NULL },
        { LABEL("preemptible", "true"),               NULL },
        { LABEL("same-group", "'true'"),              "same-group" },
        { LABEL("gang-size", "'2'"),                  "gang=2" },
        { LABEL("gang-size", "'0'"),                  NULL },
        { LABEL("gang-size", "'x'"),                  NULL },
        { LABEL("gang-size", "'100000000'"),          NULL },
        { LABEL("gang-size", "2"),                    NULL },
        { LABEL("max-seconds", "'60'"),               "deadline=60" },
        { LABEL("role", "'server'"),                  "serves" },
        { LABEL("role", "'manager'"),                 "serves" },
        { LABEL("role", "'worker'"),                  "" },
        { LABEL("min-network-mbps", "'100'"),         "network=100" },
        { NOTE("min-network-mbps", "'200'"),          "network=200" },
        { NOTE("memory-fixed-bytes", "'2Gi'"),        "fixed=2147483648" },
        { NOTE("memory-fixed-bytes", "'-1'"),         NULL },
        { NOTE("memory-fixed-bytes", "'1E'"),         NULL },
        { NOTE("memory-fixed-bytes", "'much'"),       NULL },
        { NOTE("memory-fixed-bytes", "7"),            NULL },
        { LABEL("urgency", "'regular'"),              "" },
        { LABEL("urgency", "'high'"),                 NULL },
        { LABEL("urgency", "7"),                      NULL },
        { NOTE("placement", "'uniform'"),             "placement" },
        { NOTE("placement", "'heap'"),                NULL },
        { NOTE("placement", "7"),                     NULL },
        { NOTE("batch", "'64'"),                      "batch=64" },
        { NOTE("weight", "'0.5'"),                    "weight=0.5" },
        { NOTE("weight", "7"),                        "" },
        { NOTE("batch-share", "'32'"),                "share=32" },
        { NOTE("batch-share", "'x'"),                 "" },
        { NOTE("saves", "'on-sigterm'"),              "saves" },
        { NOTE("saves", "'always'"),                  NULL },
        { NOTE("saves", "7"),                         NULL },
        { NOTE("borrowed", "'true'"),                 "borrowed" },
        { NOTE("borrowed", "'1'"),                    "" },
        { NOTE("borrowed", "true"),                   "" },
        { NOTE("models", "'H100'"),                   "models=1" },
        { NOTE("models", "' A100 | H100 ||'"),        "models=2" },
        { NOTE("models", "'a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|q|r|s|t|u|v|w|x|y|z|1|2|3|4|5|6|7'"), NULL },
        { NOTE("models", "7"),                        NULL },
        { NOTE("groups", "'a=1,b=2'"),                "part=1 part=2" },
        { NOTE("groups", "'a=1,'"),                   "part=1" },
        { NOTE("groups", "'a=1,b'"),                  "" },
        { NOTE("groups", "'a=0'"),                    "" },
        { NOTE("groups", "'a=x'"),                    "" },
        { NOTE("groups", "'a=99999999999'"),          "" },
        { NOTE("groups", "'a=999999999999999'"),      "" },
        { NOTE("groups", "'a.name.longer.than.any.group.of.devices.may.ever.be.in.an.inventory.of.ours.and.a.bit.more=1'"), "" },
        { NOTE("groups", "7"),                        "" },
        { NOTE("gang", "'r/a=4x2, r/b=8x1'"),         "gang=3 kind=4x2 kind=8x1" },
        { NOTE("gang", "'r/a=4x2,'"),                 "gang=2 kind=4x2" },
        { NOTE("gang", "'r/a'"),                      NULL },
        { NOTE("gang", "'r/a=4'"),                    NULL },
        { NOTE("gang", "'r/a=x2'"),                   NULL },
        { NOTE("gang", "'r/a=4x'"),                   NULL },
        { NOTE("gang", "'r/a=0x2'"),                  NULL },
        { NOTE("gang", "'r/a=4x0'"),                  NULL },
        { NOTE("gang", "'r/a=99999999999x1'"),        NULL },
        { NOTE("gang", "'r/a=1x99999999999'"),        NULL },
        { NOTE("gang", "'r/a=999999999999999x1'"),    NULL },
        { NOTE("gang", "'r/a=1x999999999999999'"),    NULL },
        { NOTE("gang", "7"),                          NULL },
        { "'metadata':{'name':'p','labels':{'remuda.dev/gang-size':'5'},'annotations':{'remuda.dev/gang':'r/a=4x2'}}", "gang=5 kind=4x2" },
        { NOTE("gang", "'r/k0=1x1,r/k1=1x1,r/k2=1x1,r/k3=1x1,r/k4=1x1,r/k5=1x1,r/k6=1x1,r/k7=1x1,r/k8=1x1,r/k9=1x1,r/k10=1x1,r/k11=1x1,r/k12=1x1,r/k13=1x1,r/k14=1x1,r/k15=1x1,r/k16=1x1'"), NULL },
        { NOTE("groups", "'a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1'"), "" },
        { NOTE("models", "'mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm'"), "models=1" },
        { NOTE("models", "'a|  '"),                   "models=1" },
        { POD("'spec':{'priorityClassName':'none','schedulingGates':[{'name':'g'}]}"), "gated" },
        { POD("'spec':{'schedulingGates':[]}"),       "" },
        { POD("'spec':{'schedulingGates':null}"),     "" },
        { POD("'spec':{'schedulingGates':{'name':'a'}}"), "" },
        { POD("'spec':{'schedulingGates':'a'}"),      "" },
        { POD("'spec':{'schedulingGates':1}"),        "" },
        { "'metadata':{'name':'p','deletionTimestamp':[]}", "" },
        { "'metadata':{'name':'p','deletionTimestamp':[1]}", "deleting" },
        { "'metadata':{}",                            NULL },
        { "'kind':'Pod'",                             NULL },
        { POD("'spec':{'activeDeadlineSeconds':60}"), "deadline=60" },
        { POD("'spec':{'activeDeadlineSeconds':9999999999}"), "deadline=4294967295" },
        { POD("'spec':{'activeDeadlineSeconds':-1}"), NULL },
        { POD("'spec':{'priorityClassName':7}"),      NULL },
        { "'metadata':{'name':'p','deletionTimestamp':'2026-11-21T10:00:00Z'}", "deleting by ten" },
        { "'metadata':{'name':'p','deletionTimestamp':'soon'}", "deleting" },
        { "'metadata':{'name':'p','deletionTimestamp':'1970-01-01T00:00:00Z'}", "deleting" },
        { "'metadata':{'name':'p','creationTimestamp':'noon'}", NULL },
        { POD("'status':{'phase':'Running','startTime':'2026-11-21T10:00:00Z'}"), "started" },
        { POD("'status':{'startTime':'noon'}"),       NULL },
        { POD("'status':{'phase':7}"),                NULL },
        { POD("'status':{'startTime':7}"),            NULL },
        { NOTE("models", "'   '"),                    "" },
        { POD("'status':{'phase':'Failed','containerStatuses':[7,{'state':{'terminated':{'finishedAt':'noon'}}}]}"), "ended" },
        { POD("'status':{'phase':'Succeeded','containerStatuses':[{'state':{'terminated':{'finishedAt':'2026-11-21T10:00:01Z'}}},"
              "{'state':{'terminated':{'finishedAt':'2026-11-21T10:00:00Z'}}}]}"), "ended at=1" },
};
static const struct {
        const char *json;
        int result;
        bool out_of_service;
} nodes[] = {
        { "'metadata':{'name':'n'}",                                         0,        false },
        { "'metadata':{'name':'n'},'spec':{'taints':[{'key':'a'},{'key':7},{'key':'node.kubernetes.io/out-of-service'}]}", 0, true },
        { "'metadata':{'name':'n','labels':7}",                              -EBADMSG, false },
        { "'metadata':{'name':7}",                                           -EBADMSG, false },
        { "'metadata':{}",                                                   -EBADMSG, false },
        { "'metadata':7",                                                    -EBADMSG, false },
        { "'metadata':{'name':'n','uid':7}",                                 -EBADMSG, false },
        { "'metadata':{'name':'n'},'status':7",                              -EBADMSG, false },
        { "'metadata':{'name':'n'},'status':{'allocatable':7}",              -EBADMSG, false },
        { "'metadata':{'name':'n'},'status':{'nodeInfo':7}",                 -EBADMSG, false },
        { "'metadata':{'name':'n','labels':{'remuda.dev/switch-domain':7}}", -EBADMSG, false },
        { "'metadata':{'name':'n'},'status':{'allocatable':{'cpu':'4','x.y/z':'1'}}", 0, false },
        { "'metadata':{'name':'n'},'status':{'nodeInfo':{'bootID':7}}",      -EBADMSG, false },
};
/* clang-format on */

static json_t *load(const char *members)
{
        CLEANUP(text_free) struct text text = { 0 };
        json_t *json;

        text_printf(&text, "{%s}", members);
        for (char *c = text.data; *c != '\0'; c++)
                *c = *c == '\'' ? '"' : *c;
        json = json_loads(text.data, 0, NULL);
        if (json == NULL)
                fail_msg("%s", text.data);
        return json;
}

static void put_numbers(const struct ledger_pod_facts *f, struct text *to)
{
        if (f->request.gang_size > 0)
                text_printf(to, " gang=%u", f->request.gang_size);
        if (f->request.deadline_sec > 0)
                text_printf(to, " deadline=%u", f->request.deadline_sec);
        if (f->request.network_mbps > 0)
                text_printf(to, " network=%u", f->request.network_mbps);
        if (f->request.fixed_bytes > 0)
                text_printf(to, " fixed=%llu", (unsigned long long) f->request.fixed_bytes);
        if (f->request.batch > 0)
                text_printf(to, " batch=%u", f->request.batch);
        if (f->weight > 0)
                text_printf(to, " weight=%g", f->weight);
        if (f->batch_share > 0)
                text_printf(to, " share=%u", f->batch_share);
        if (f->request.model_count > 0)
                text_printf(to, " models=%u", (unsigned) f->request.model_count);
        for (size_t i = 0; i < f->part_count; i++)
                text_printf(to, " part=%u", f->parts[i].chips);
        for (size_t i = 0; i < f->kind_count; i++)
                text_printf(to, " kind=%ux%u", f->kinds[i].chips, f->kinds[i].members);
}

static void put_flags(const struct ledger_pod_facts *f, struct text *to)
{
        const struct {
                bool is;
                const char *word;
        } flags[] = {
                { f->request.preemptible, " preemptible" },
                { f->request.same_group, " same-group" },
                { f->request.placement != 0, " placement" },
                { f->borrowed, " borrowed" },
                { f->saves, " saves" },
                { f->request.serves, " serves" },
                { f->request.gated, " gated" },
                { f->deleting, f->deletion_usec == 0                            ? " deleting"
                               : f->deletion_usec == UINT64_C(1795255200000000) ? " deleting by ten"
                                                                                : " deleting by ?" },
                { f->started_usec > 0, " started" },
                { f->ended, " ended" },
                { f->ended_usec % 60000000 == 1000000, " at=1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                text_append(to, flags[i].is ? flags[i].word : "");
}

static void what_is_taken_of_a_pod(void **state)
{
        static const struct pod_json_policy policy = { .emergency_namespace_count = 0 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
                CLEANUP(text_free) struct text taken = { 0 };
                struct ledger *ledger = test_ledger();
                struct ledger_pod_facts facts;
                struct err err = { 0 };
                json_t *json = load(pods[i].json);
                int r = pod_json_decode(json, &policy, ledger, true, &facts, &err);

                text_append(&taken, " ");
                put_numbers(&facts, &taken);
                put_flags(&facts, &taken);
                if (r != (pods[i].taken == NULL ? -EBADMSG : 0) || (r < 0) != (err.msg[0] != '\0') ||
                    (r == 0 && strcmp(taken.data + (taken.size_bytes > 1 ? 2 : 1), pods[i].taken) != 0))
                        fail_msg("%s: %d '%s', %s", pods[i].json, r, taken.data, err.msg);
                json_decref(json);
                ledger_life_free(ledger);
        }
}

static void what_is_taken_of_a_node(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
                struct ledger *ledger = test_ledger();
                struct ledger_node_facts facts;
                struct err err = { 0 };
                json_t *json = load(nodes[i].json);

                if (pod_json_node_decode(json, ledger, &facts, &err) != nodes[i].result ||
                    facts.out_of_service != nodes[i].out_of_service)
                        fail_msg("%s: %s", nodes[i].json, err.msg);
                json_decref(json);
                ledger_life_free(ledger);
        }
}

/* The label of a resource whose name is longer than any of ours, and one that is no text. */
static void a_label_that_cannot_be_read_shares_nothing(void **state)
{
        struct ledger *ledger = test_ledger();
        struct ledger_node_facts facts;
        char name[200] = "x.y/", label[220];
        json_t *json;

        (void) state;
        memset(name + strlen(name), 'z', sizeof(name) - strlen(name) - 1);
        (void) snprintf(label, sizeof(label), "%s.replicas", name);
        json = json_pack("{s:{s:s, s:{s:i, s:s, s:s}}, s:{s:{s:s, s:s, s:s}}}", "metadata", "name", "n",
                         "labels", "a.b/c.replicas", 4, label, "4", "d.e/f.replicas", "4", "status",
                         "allocatable", "a.b/c", "32", name, "32", "d.e/f", "32");
        assert_int_equal(pod_json_node_decode(json, ledger, &facts, NULL), 0);
        assert_int_equal(facts.allocatable_count, 3);
        for (size_t i = 0; i < facts.allocatable_count; i++) {
                bool shared =
                        strcmp(symbols_name(&ledger->symbols, facts.allocatable[i].resource), "d.e/f") == 0;

                assert_int_equal(facts.allocatable[i].chips, 32);
                assert_int_equal(facts.allocatable[i].replicas, shared ? 4 : 0);
        }
        json_decref(json);
        ledger_life_free(ledger);
}

static void what_is_no_object_is_neither_pod_nor_node(void **state)
{
        static const char *const everywhere[] = { "*" };
        const struct pod_json_policy policy = { .emergency_namespaces = everywhere,
                                                .emergency_namespace_count = 1 };
        struct ledger *ledger = test_ledger();
        struct ledger_pod_facts pod;
        struct ledger_node_facts node;
        json_t *seven = json_integer(7);

        (void) state;
        assert_int_equal(pod_json_decode(seven, &policy, ledger, true, &pod, NULL), -EBADMSG);
        assert_int_equal(pod_json_node_decode(seven, ledger, &node, NULL), -EBADMSG);
        assert_true(pod_json_emergency_allowed(&policy, "any"));
        json_decref(seven);
        ledger_life_free(ledger);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_taken_of_a_pod),
                cmocka_unit_test(what_is_taken_of_a_node),
                cmocka_unit_test(a_label_that_cannot_be_read_shares_nothing),
                cmocka_unit_test(what_is_no_object_is_neither_pod_nor_node),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
