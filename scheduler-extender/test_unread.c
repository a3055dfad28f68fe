/* What store.c says nobody reads, nobody reads: whoever comes upon such a field of an object that the store
 * tells, through any look into a JSON object, is caught. A reader that is new takes his field off the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/metadata.h"
#include "tests/support/extender_bed.h"

#define MARK "nobody-reads-this"

static char caught[200]; /* the path of a marked value that somebody got, or "" */

json_t *__real_json_object_get(const json_t *object, const char *key);
json_t *__wrap_json_object_get(const json_t *object, const char *key);
json_t *__real_json_object_iter_value(void *iter);
json_t *__wrap_json_object_iter_value(void *iter);

static json_t *look(json_t *value)
{
        const json_t *mark = json_is_object(value) ? __real_json_object_get(value, MARK) : NULL;

        if (mark != NULL)
                (void) text_copy(caught, sizeof(caught), json_string_value(mark));
        return value;
}

json_t *__wrap_json_object_get(const json_t *object, const char *key)
{
        return look(__real_json_object_get(object, key));
}

json_t *__wrap_json_object_iter_value(void *iter)
{
        return look(__real_json_object_iter_value(iter));
}

/* Puts a marked value where the path leads, in each object of an array on the way. */
static void mark(json_t *at, const char *path, const char *rest)
{
        const char *dot = strchr(rest, '.');
        char name[64];

        for (size_t i = 0; i < json_array_size(at); i++)
                mark(json_array_get(at, i), path, rest);
        if (!json_is_object(at))
                return;
        (void) text_format(name, sizeof(name), "%.*s", dot == NULL ? (int) strlen(rest) : (int) (dot - rest),
                           rest);
        if (dot == NULL)
                (void) json_object_set_new(at, name, json_pack("{s:s}", MARK, path));
        else
                mark(__real_json_object_get(at, name), path, dot + 1);
}

#define META(NAME, MORE)                                                                                     \
        "\"metadata\":{\"name\":\"" NAME "\",\"uid\":\"u-" NAME "\",\"resourceVersion\":\"7\","              \
        "\"creationTimestamp\":\"2026-11-21T10:00:00Z\",\"annotations\":{\"remuda.dev/"                      \
        "groups\":\"g=2\"}" MORE "}"
#define CONTAINER                                                                                            \
        "{\"name\":\"main\",\"image\":\"x\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"},"           \
        "\"requests\":{\"cpu\":\"1\",\"nvidia.com/gpu\":\"2\"}}}"
#define POD(NAME, LABELS, SPEC, STATUS)                                                                      \
        "{\"kind\":\"Pod\"," META(                                                                           \
                NAME,                                                                                        \
                ",\"namespace\":\"default\",\"labels\":{\"a\":\"b\"" LABELS                                  \
                "}") ",\"spec\":{\"containers\":[" CONTAINER "," CONTAINER                                   \
                     "],\"initContainers\":[" CONTAINER "],"                                                 \
                     "\"tolerations\":[{\"key\":\"k\",\"operator\":\"Exists\"}],\"nodeSelector\":{\"a\":"    \
                     "\"b\"},"                                                                               \
                     "\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"  \
                     "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}" \
                     "]}]}}},"                                                                               \
                     "\"priorityClassName\":\"x\",\"priority\":7,\"activeDeadlineSeconds\":600" SPEC         \
                     "},\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","        \
                     "\"reason\":"                                                                           \
                     "\"Unschedulable\"}]," STATUS "}}"
#define RUNS                                                                                                 \
        "\"phase\":\"Running\",\"podIP\":\"10.0.0.7\",\"startTime\":\"2026-11-21T10:00:00Z\","               \
        "\"containerStatuses\":[{\"name\":\"main\",\"restartCount\":1,\"state\":{\"terminated\":{"           \
        "\"exitCode\":1,\"reason\":\"Error\",\"message\":\"m\"}},\"lastState\":{\"terminated\":{"            \
        "\"exitCode\":1}}}]"

/* clang-format off */
static const struct { enum store_kind kind; const char *name, *text; } objects[] = {
        { STORE_NODE, "Node a", "{\"kind\":\"Node\"," META("a", ",\"labels\":{\"remuda.dev/pool\":\"regular\",\"zone\":\"z\"}")
          ",\"spec\":{\"unschedulable\":true,\"taints\":[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]},\"status\":{\"allocatable\":"
          "{\"cpu\":\"64\",\"nvidia.com/gpu\":\"8\"},\"capacity\":{\"cpu\":\"64\"},\"nodeInfo\":{\"bootID\":\"b\",\"kernelVersion\":\"6\"}}}" },
        { STORE_NODE, "Node b", "{\"kind\":\"Node\"," META("b", ",\"labels\":{}") ",\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"8\"}}}" },
        { STORE_POD, "Pod default/waits", POD("waits", "", "", "\"phase\":\"Pending\"") },
        { STORE_POD, "Pod default/runs", POD("runs", ",\"remuda.dev/job\":\"j\"", ",\"nodeName\":\"a\"", RUNS) },
        { STORE_POD, "Pod default/gang", POD("gang", ",\"remuda.dev/job\":\"g\",\"remuda.dev/gang-size\":\"2\"", "", "\"phase\":\"Pending\"") },
        { STORE_POD, "Pod default/q", POD("q", ",\"remuda.dev/urgency\":\"emergency\"", "", "\"phase\":\"Pending\"") },
        { STORE_POD, "Pod default/ends", POD("ends", "", ",\"nodeName\":\"b\"", "\"phase\":\"Failed\"") },
};
/* clang-format on */

static void tell(struct extender_bed *b, enum store_kind kind, const char *name, const char *text,
                 const char *const *unread)
{
        json_t *object = json_loads(text, 0, NULL);
        CLEANUP(free_p) char *marked = NULL;

        assert_non_null(object);
        for (size_t i = 0; unread[i] != NULL; i++)
                mark(object, unread[i], unread[i]);
        marked = json_dumps(object, 0);
        json_decref(object);
        object = json_loads(marked, 0, NULL);
        b->memory->store.options.changed(b->memory->store.options.userdata, kind, strchr(name, ' ') + 1,
                                         object);
        (void) metadata_of(object);
        json_decref(object);
}

static void nobody_reads_what_the_table_leaves_out(void **state)
{
        static const char *const read_it_is[] = { "metadata.labels", NULL };
        struct extender_bed *b = extender_bed_new();

        (void) state;
        b->options.jobs = "on";
        b->options.server.emergency_namespaces = "*";
        extender_bed_open(b);
        extender_bed_ready(b);
        EXTENDER_BED_WAIT(b, b->extender->was_ready);
        extender_bed_to_memory(b);
        for (size_t i = 0; i < 2 * ARRAY_SIZE(objects); i++) {
                size_t at = i / 2;

                caught[0] = '\0';
                tell(b, objects[at].kind, objects[at].name, objects[at].text,
                     store_kind_info(objects[at].kind)->unread);
                if (caught[0] != '\0')
                        fail_msg("%s: somebody reads %s, which store.c leaves out", objects[at].name, caught);
        }
        tell(b, STORE_POD, objects[2].name, objects[2].text, read_it_is);
        assert_string_equal(caught, "metadata.labels"); /* who reads is caught */
        extender_bed_free(b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nobody_reads_what_the_table_leaves_out),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
