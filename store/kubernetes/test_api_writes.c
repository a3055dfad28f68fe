/* Each write against each way in which an API server may fail: what it is answered with, and whether it was
 * made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "store/kubernetes/api_writes.h"
#include "tests/support/kube_store.h"

enum write {
        BIND,
        BIND_OTHER,
        EVICT,
        DELETE,
        DELETE_TABLE,
        CREATE,
        PATCH,
        PUT,
        PUT_OWNED,
        PUT_JOB,
        PUT_TABLE,
        CHANGE
};

#define STATUS(CODE, TIMES) "\"do\":\"status\",\"code\":" CODE ",\"times\":" TIMES
#define ALWAYS              "100"
/* Written again and again until it is given up: slow, so few rows are. */
#define BROKEN "\"do\":\"close\",\"times\":100"

/* clang-format off */
static const struct row { enum write write; const char *match, *fault; int result; bool made; } rows[] = {
        { BIND,   "POST .*binding",   STATUS("403", "1"),                     -EPERM,  false },
        { BIND,   "POST .*binding",   STATUS("404", "1"),                     -ENOENT, false },
        { BIND,   "POST .*binding",   STATUS("422", "1"),                     -EINVAL, false },
        { BIND,   "(POST|GET /api/v1/namespaces/default/pods/)", STATUS("500", "3"), 0, true },
        { BIND,   "POST .*binding",   "\"do\":\"lost\",\"times\":1",          0,       true },
        { BIND,   "(POST .*binding|GET .*pods/)", STATUS("500", ALWAYS),      -EIO,    false },
        { BIND,   "POST .*binding",   STATUS("409", "1"),                     0,       true },
        { BIND,   "GET .*pods/|POST .*binding", STATUS("404", "2"),           -ENOENT, false },
        { BIND_OTHER, "POST .*binding", STATUS("500", "1"),                   -ESTALE, false },
        { EVICT,  "POST .*eviction",  STATUS("403", "1"),                     -EPERM,  false },
        { EVICT,  "POST .*eviction",  STATUS("500", "1"),                     0,       true },
        { EVICT,  "POST .*eviction",  "\"do\":\"lost\",\"times\":1",          0,       true },
        { EVICT,  "POST .*eviction",  STATUS("500", ALWAYS),                  -EAGAIN, false },
        { DELETE, "DELETE",           STATUS("403", "1"),                     -EPERM,  false },
        { DELETE, "DELETE",           STATUS("500", "2"),                     0,       true },
        { DELETE, "DELETE",           "\"do\":\"torn\",\"times\":1",          0,       true },
        { DELETE, "DELETE",           BROKEN,                                 -EPIPE,   false },
        { DELETE_TABLE, "DELETE",     STATUS("500", "1"),                     0,       true }, /* it is gone, by whomever */
        { CREATE, "POST",             STATUS("403", "1"),                     -EPERM,  false },
        { CREATE, "POST",             STATUS("500", "1"),                     -EIO,    false },
        { PATCH,  "PATCH",            STATUS("403", "1"),                     -EPERM,  false },
        { PATCH,  "PATCH",            STATUS("409", "1"),                     -ESTALE, false },
        { PATCH,  "PATCH",            STATUS("503", "2"),                     0,       true },
        { PUT,    "PATCH",            STATUS("403", "1"),                     -EPERM,  false },
        { PUT,    "PATCH",            STATUS("500", "2"),                     0,       true },
        { PUT,    "PATCH .*/status",  STATUS("404", ALWAYS),                  -EAGAIN, false },
        { PUT_OWNED, "PATCH .*nodeaccelerators/p[0-9]+\\\\?", STATUS("403", "1"), 0, true },
        { PUT_OWNED, "PATCH .*nodeaccelerators/p[0-9]+\\\\?", STATUS("403", "2"), -EPERM, false },
        { PUT_JOB, "PATCH .*/status", STATUS("404", "1"),                     -ENOENT, false },
        { PUT_TABLE, "PATCH .*",      STATUS("500", "1"),                     0,       true },
        { CHANGE, "GET .*speedtables/", STATUS("403", "1"),                   -EPERM, false },
        { CHANGE, "GET .*speedtables/", STATUS("500", "2"),                   0,       true },
        { CHANGE, "P(U|OS)T",         STATUS("409", "2"),                     0,       true },
        { CHANGE, "P(U|OS)T",         STATUS("422", "1"),                     -EINVAL, false },
        { CHANGE, "P(U|OS)T",         STATUS("404", "1"),                     -ENOENT, false },
};
/* clang-format on */

static const char *changing; /* the table's name */

static json_t *change(void *userdata, const json_t *object, struct err *err)
{
        (void) userdata;
        (void) object;
        (void) err;
        return json_pack("{s:{s:s}, s:s}", "metadata", "name", changing, "ours", "written");
}

/* Each of an object of its own. */
static void write_it(struct kube_store *f, enum write write, const char *pod)
{
        json_t *object =
                json_pack("{s:{s:s}, s:{s:s}}", "metadata", "name", pod, "status", "pool", "regular");
        json_t *made = json_pack("{s:{s:s}, s:{}}", "metadata", "name", "made", "spec");
        json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "annotations", "ours", "written");

        changing = pod;
        if (write == PUT_OWNED)
                (void) json_object_set_new(json_object_get(object, "metadata"), "ownerReferences",
                                           json_pack("[{s:s}]", "kind", "Node"));
        if (write == BIND)
                store_bind(f->store, &(struct store_binding){ "default", pod, pod, "n1", NULL },
                           kube_store_answer, f);
        else if (write == BIND_OTHER)
                store_bind(f->store, &(struct store_binding){ "default", pod, "another", "n1", NULL },
                           kube_store_answer, f);
        else if (write == EVICT)
                store_evict(f->store, "default", pod, pod, 3, kube_store_answer, f);
        else if (write == DELETE)
                store_delete(f->store, STORE_POD, "default", pod, pod, 3, kube_store_answer, f);
        else if (write == DELETE_TABLE)
                store_delete(f->store, STORE_SPEED_TABLE, NULL, pod, NULL, 0, kube_store_answer, f);
        else if (write == CREATE)
                store_create(f->store, STORE_POD, "default", made, kube_store_answer, f);
        else if (write == PATCH)
                store_patch(f->store, STORE_POD, "default", pod, patch, kube_store_answer, f);
        else if (write == PUT_JOB)
                store_put(f->store, STORE_TRAINING_JOB, "default", pod, object, kube_store_answer, f);
        else if (write == PUT_TABLE)
                store_put(f->store, STORE_SPEED_TABLE, NULL, pod, object, kube_store_answer, f);
        else if (write == PUT_OWNED) /* as with a token that says which node its agent is on */
                api_writes_put(f->store, STORE_INVENTORY, NULL, pod, object, kube_store_answer, f);
        else if (write == PUT)
                store_put(f->store, STORE_INVENTORY, NULL, pod, object, kube_store_answer, f);
        else
                store_change(f->store, STORE_SPEED_TABLE, NULL, pod, change, kube_store_answer, f);
        json_decref(object);
        json_decref(made);
        json_decref(patch);
}

/* By what the watch of another shows. */
static bool is_made(struct kube_store *f, enum write write, const char *pod)
{
        char name[40];

        (void) text_format(name, sizeof(name), "%s%s",
                           write == PUT || write == PUT_OWNED ? "NodeAccelerators "
                           : write == CHANGE || write == PUT_TABLE || write == DELETE_TABLE ? "SpeedTable "
                                                                                            : "Pod default/",
                           pod);
        switch (write) {
        case BIND:
        case BIND_OTHER:
                return kube_store_field(f, name, "spec", "nodeName")[0] != '\0';
        case EVICT:
                return kube_store_field(f, name, "metadata", "deletionTimestamp")[0] != '\0';
        case DELETE:
                return !kube_store_has(f, name);
        case CREATE:
                return kube_store_has(f, "Pod default/made");
        case PATCH:
                return json_object_get(json_object_get(json_object_get(f->objects, name), "metadata"),
                                       "annotations") != NULL;
        case PUT:
        case PUT_OWNED:
                return kube_store_field(f, name, "status", "pool")[0] != '\0';
        case PUT_JOB:
                return false;
        case PUT_TABLE:
                return kube_store_has(f, name);
        case DELETE_TABLE:
                return !kube_store_has(f, name);
        default:
                return json_object_get(json_object_get(f->objects, name), "ours") != NULL;
        }
}

static void writes_end_well_or_say_why(void **state)
{
        struct kube_store *f = kube_store_new();
        const unsigned kinds = 1u << STORE_POD | 1u << STORE_INVENTORY | 1u << STORE_SPEED_TABLE;

        (void) state;
        kube_store_open(f, kinds, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_POD] > 0 && f->synced[STORE_INVENTORY] > 0 &&
                                   f->synced[STORE_SPEED_TABLE] > 0);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                const struct row *row = &rows[i];
                char pod[16];
                int before = f->answers;

                (void) text_format(pod, sizeof(pod), "p%zu", i);
                kube_store_put_pod(f, pod, pod, NULL);
                KUBE_STORE_WAIT(f, !is_made(f, DELETE, pod));
                kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"%s\",%s}", row->match, row->fault);
                write_it(f, row->write, pod);
                KUBE_STORE_WAIT(f, f->answers > before);
                kube_store_admin(f, "{\"op\":\"well\"}");
                if (f->result != row->result)
                        fail_msg("%zu %s %s: %d %s", i, row->match, row->fault, f->result, f->sentence);
                if (row->made)
                        KUBE_STORE_WAIT(f, is_made(f, row->write, pod));
                else if (is_made(f, row->write, pod))
                        fail_msg("%zu %s %s: it was made", i, row->match, row->fault);
        }
        kube_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(writes_end_well_or_say_why),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
