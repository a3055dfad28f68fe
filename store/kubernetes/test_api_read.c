/* Objects of Dynamic Resource Allocation at an API server: one is read, a node's slices are watched and
 * written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "store/store_read.h"
#include "tests/support/kube_store.h"

#define DRA    "/apis/resource.k8s.io/v1"
#define CLAIMS DRA "/namespaces/team/resourceclaims"

static char uid_read[64];

static void take(void *userdata, const json_t *object)
{
        struct kube_store *f = userdata;

        assert_int_equal(f->answers, 0);
        (void) text_copy(uid_read, sizeof(uid_read),
                         json_string_value(json_object_get(json_object_get(object, "metadata"), "uid")));
}

/* clang-format off */
static const struct { const char *what, *name, *fault; int result; const char *uid; } reads[] = {
        { "there", "c", NULL, 0, "u-c" },
        { "none", "absent", NULL, -ENOENT, "" },
        { "no name", "../c", NULL, -EINVAL, "" },
        { "refused", "c", "\"do\":\"status\",\"code\":403,\"times\":1", -EPERM, "" },
        { "after a failure", "c", "\"do\":\"status\",\"code\":500,\"times\":2", 0, "u-c" },
        { "after a torn reply", "c", "\"do\":\"torn\",\"times\":1", 0, "u-c" },
};
/* clang-format on */

/* A driver that prepares a claim asks for it anew, and watches none. */
static void a_claim_is_read_by_name(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(reads); i++) {
                struct kube_store *f = kube_store_new();

                uid_read[0] = '\0';
                kube_store_admin(f,
                                 "{\"op\":\"put\",\"path\":\"" CLAIMS "\",\"object\":{\"metadata\":{\"name\":"
                                 "\"c\",\"namespace\":\"team\",\"uid\":\"u-c\"}}}");
                kube_store_open(f, 0, NULL);
                if (reads[i].fault != NULL)
                        kube_store_admin(f, "{\"op\":\"fault\",\"match\":\"GET .*resourceclaims\",%s}",
                                         reads[i].fault);
                store_read(f->store, STORE_RESOURCE_CLAIM, "team", reads[i].name, take, kube_store_answer, f);
                KUBE_STORE_WAIT(f, f->answers == 1);
                if (f->result != reads[i].result || strcmp(uid_read, reads[i].uid) != 0)
                        fail_msg("%s: %d %s, '%s'", reads[i].what, f->result, f->sentence, uid_read);
                kube_store_free(f);
        }
}

static json_t *slice_of(const char *node, int devices)
{
        json_t *all = json_array();

        for (int i = 0; i < devices; i++) {
                char name[16];

                (void) text_format(name, sizeof(name), "d%d", i);
                (void) json_array_append_new(all, json_pack("{s:s}", "name", name));
        }
        return json_pack("{s:{}, s:{s:s, s:s, s:{s:s, s:i, s:i}, s:o}}", "metadata", "spec", "driver",
                         "remuda.dev", "nodeName", node, "pool", "name", node, "generation", 1,
                         "resourceSliceCount", 1, "devices", all);
}

/* A server that has none may not have the kind at all. */
static void put_other(struct kube_store *f)
{
        kube_store_admin(f, "{\"op\":\"put\",\"path\":\"" DRA "/resourceslices\",\"object\":{\"metadata\":"
                            "{\"name\":\"other\"},\"spec\":{\"nodeName\":\"n2\"}}}");
}

/* Written as a whole, seen by its node's watch alone, gone when it is deleted. */
static void a_node_s_slices_are_its_own(void **state)
{
        struct kube_store *f = kube_store_new();
        json_t *slice = slice_of("n1", 2);

        (void) state;
        put_other(f);
        kube_store_open(f, 1u << STORE_RESOURCE_SLICE, "n1");
        KUBE_STORE_WAIT(f, f->synced[STORE_RESOURCE_SLICE] == 1);
        store_put(f->store, STORE_RESOURCE_SLICE, NULL, "n1-slice", slice, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 1 && kube_store_has(f, "ResourceSlice n1-slice"));
        assert_int_equal(f->result, 0);
        assert_false(kube_store_has(f, "ResourceSlice other"));
        assert_int_equal(
                json_integer_value(json_object_get(
                        json_object_get(json_object_get(json_object_get(f->objects, "ResourceSlice n1-slice"),
                                                        "spec"),
                                        "pool"),
                        "generation")),
                1); /* a pool's, not the server's */
        store_delete(f->store, STORE_RESOURCE_SLICE, NULL, "n1-slice", NULL, 0, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 2 && !kube_store_has(f, "ResourceSlice n1-slice"));
        assert_int_equal(f->result, 0);
        json_decref(slice);
        kube_store_free(f);
}

/* A token that names its Node: {"kubernetes.io":{"node":{"name":"n1","uid":"u-1"}}}. */
#define TOKEN_OF_N1 "e30.eyJrdWJlcm5ldGVzLmlvIjp7Im5vZGUiOnsibmFtZSI6Im4xIiwidWlkIjoidS0xIn19fQ.x"

static const char *owner_of(struct kube_store *f, const char *object)
{
        json_t *metadata = json_object_get(json_object_get(f->objects, object), "metadata");
        const char *uid = json_string_value(
                json_object_get(json_array_get(json_object_get(metadata, "ownerReferences"), 0), "uid"));

        return uid == NULL ? "" : uid;
}

/* Whoever removes a Node removes its slices, though nobody is there to do it. */
static void a_slice_is_its_node_s(void **state)
{
        struct kube_store *f = kube_store_new();
        json_t *own = slice_of("n1", 1), *loose = slice_of("n2", 1);

        (void) state;
        kube_store_write_file(f->token, TOKEN_OF_N1 "\n");
        put_other(f);
        kube_store_open(f, 1u << STORE_RESOURCE_SLICE, NULL);
        KUBE_STORE_WAIT(f, f->synced[STORE_RESOURCE_SLICE] == 1);
        for (int i = 1; i <= 2; i++) { /* and the second time no less */
                store_put(f->store, STORE_RESOURCE_SLICE, NULL, "own", own, kube_store_answer, f);
                KUBE_STORE_WAIT(f, f->answers == i && strcmp(owner_of(f, "ResourceSlice own"), "u-1") == 0);
        }
        store_put(f->store, STORE_RESOURCE_SLICE, NULL, "loose", loose, kube_store_answer, f);
        KUBE_STORE_WAIT(f, f->answers == 3 && kube_store_has(f, "ResourceSlice loose"));
        assert_string_equal(owner_of(f, "ResourceSlice loose"), "");
        json_decref(own);
        json_decref(loose);
        kube_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_claim_is_read_by_name),
                cmocka_unit_test(a_node_s_slices_are_its_own),
                cmocka_unit_test(a_slice_is_its_node_s),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
