/* What pods ask for beside extended resources, added up as kube-scheduler does, and what nodes offer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "scheduler-extender/wire/pod_needs.h"

#define MOST          REQUEST_NEED_MAX
#define C(RESOURCES)  "{'resources':{" RESOURCES "}}"
#define REQUEST(LIST) C("'requests':{" LIST "}")

/* clang-format off */
static const struct row {
        const char *json; /* ' stands for " */
        int64_t cpu_milli, memory_bytes, storage_bytes;
} pods[] = {
        { "{}", 0, 0, 0 },
        { "7", 0, 0, 0 },
        { "{'containers':7,'initContainers':{}}", 0, 0, 0 },
        { "{'containers':[7,null," REQUEST("'cpu':'1'") "]}", 1000, 0, 0 },
        { "{'containers':[" REQUEST("'cpu':'1','memory':'1Ki','ephemeral-storage':'2k'") "]}", 1000, 1024, 2000 },
        { "{'containers':[" REQUEST("'cpu':'100m'") "," REQUEST("'cpu':'2','memory':'5'") "]}", 2100, 5, 0 },
        { "{'containers':[" C("'limits':{'cpu':'2','memory':'7'},'requests':{'cpu':'1'}") "]}", 1000, 7, 0 },
        { "{'containers':[" REQUEST("'cpu':2,'memory':1.5") "]}", 2000, 2, 0 },
        { "{'containers':[" REQUEST("'cpu':'0.0001'") "]}", 1, 0, 0 },
        { "{'containers':[" REQUEST("'cpu':'much','memory':null,'ephemeral-storage':'-5'") "]}", 0, 0, 0 },
        { "{'containers':[" REQUEST("'cpu':'9E','memory':'9999999E','ephemeral-storage':'1e40'") "]}", MOST, MOST, MOST },
        { "{'containers':[" REQUEST("'memory':'7E'") "," REQUEST("'memory':'7E'") "]}", 0, MOST, 0 },
        { "{'containers':[" REQUEST("'cpu':1e300,'memory':-1e300") "]}", MOST, 0, 0 },
        /* one init container after the other; sidecars stay */
        { "{'containers':[" REQUEST("'cpu':'1'") "],'initContainers':[" REQUEST("'cpu':'3','memory':'4'") "]}", 3000, 4, 0 },
        { "{'containers':[" REQUEST("'cpu':'1'") "],'initContainers':[{'restartPolicy':'Always','resources':{'requests':{'cpu':'3'}}}]}", 4000, 0, 0 },
        { "{'containers':[" REQUEST("'cpu':'1'") "],'initContainers':[{'restartPolicy':'Always','resources':{'requests':{'cpu':'1'}}}," REQUEST("'cpu':'3'") "]}", 4000, 0, 0 },
        { "{'containers':[" REQUEST("'cpu':'1'") "],'initContainers':[" REQUEST("'cpu':'3'") ",{'restartPolicy':'Always','resources':{'requests':{'cpu':'1'}}}]}", 3000, 0, 0 },
        /* the pod's own, and its overhead */
        { "{'containers':[" REQUEST("'cpu':'1','memory':'9'") "],'resources':{'requests':{'cpu':'5'}}}", 5000, 9, 0 },
        { "{'containers':[" REQUEST("'cpu':'1','ephemeral-storage':'3'") "],'overhead':{'cpu':'250m','memory':'6'}}", 1250, 6, 3 },
        { "{'containers':[" REQUEST("'cpu':'1'") "],'overhead':'much','resources':[]}", 1000, 0, 0 },
}, offers[] = {
        { "{}", 0, 0, 0 },
        { "7", 0, 0, 0 },
        { "{'cpu':'63500m','memory':'256Gi','ephemeral-storage':'90','pods':'110'}", 63500, INT64_C(256) << 30, 90 },
        { "{'cpu':'many','memory':'-1'}", 0, 0, 0 },
};
/* clang-format on */

static json_t *json_of(const char *json)
{
        struct text text = { 0 };
        json_t *object;

        for (; *json != '\0'; json++)
                text_append_char(&text, *json == '\'' ? '"' : *json);
        object = json_loads(text.data, JSON_DECODE_ANY, NULL);
        assert_non_null(object);
        text_free(&text);
        return object;
}

static void check(const struct row *row, const struct request_needs *got)
{
        if (got->cpu_milli != row->cpu_milli || got->memory_bytes != row->memory_bytes ||
            got->storage_bytes != row->storage_bytes)
                fail_msg("%s: got %lld, %lld, %lld", row->json, (long long) got->cpu_milli,
                         (long long) got->memory_bytes, (long long) got->storage_bytes);
}

static void pods_ask_for_what_kubernetes_counts(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
                json_t *object = json_of(pods[i].json);
                struct json_field spec = json_field_root(object);
                struct request_needs needs = pod_needs_decode(&spec);

                check(&pods[i], &needs);
                json_decref(object);
        }
}

static void nodes_offer_what_is_allocatable(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(offers); i++) {
                json_t *object = json_of(offers[i].json);
                struct json_field list = json_field_root(object);
                struct ledger_room room = pod_needs_offered(&list);

                check(&offers[i], &room.offered);
                assert_int_equal(room.pods_offered, i == 2 ? 110 : 0);
                json_decref(object);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pods_ask_for_what_kubernetes_counts),
                cmocka_unit_test(nodes_offer_what_is_allocatable),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
