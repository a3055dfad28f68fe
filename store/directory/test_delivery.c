/* Objects of Dynamic Resource Allocation in a store of files: written, read as they are now, patched, gone.
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
#include "base/text.h"
#include "store/store_read.h"
#include "tests/support/dir_store.h"

#define CLAIM(name, uid)                                                                                     \
        "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceClaim\",\"metadata\":{\"name\":\"" name   \
        "\",\"namespace\":\"team\",\"uid\":\"" uid "\"},\"spec\":{}}"

static char uid_read[64], label_read[64];

static void copy(char *to, size_t bytes, const json_t *value)
{
        const char *text = json_string_value(value);

        (void) text_copy(to, bytes, text == NULL ? "" : text);
}

static void take(void *userdata, const json_t *object)
{
        json_t *metadata = json_object_get(object, "metadata");

        (void) userdata;
        copy(uid_read, sizeof(uid_read), json_object_get(metadata, "uid"));
        copy(label_read, sizeof(label_read), json_object_get(json_object_get(metadata, "labels"), "a"));
}

static int read_claim(struct dir_store *f, const char *name)
{
        uid_read[0] = label_read[0] = '\0';
        store_read(f->store, STORE_RESOURCE_CLAIM, "team", name, take, dir_store_answer, f);
        dir_store_settle(f);
        return f->result;
}

static void what_is_read_is_there_now(void **state)
{
        struct dir_store *f = dir_store_new();
        json_t *patch = json_pack("{s:{s:{s:s}}}", "metadata", "labels", "a", "1");

        (void) state;
        dir_store_write(f, "all.json",
                        "{\"kind\":\"List\",\"items\":[" CLAIM("a", "u-a") "," CLAIM("b", "u-b") "]}");
        dir_store_write(f, "more.yaml",
                        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\n"
                        "metadata: {name: y, namespace: team, uid: u-y}\n");
        dir_store_open(f);
        assert_int_equal(read_claim(f, "a"), 0);
        assert_string_equal(uid_read, "u-a");
        assert_int_equal(read_claim(f, "y"), 0);
        assert_string_equal(uid_read, "u-y");
        assert_int_equal(read_claim(f, "absent"), -ENOENT);
        assert_string_equal(f->sentence, "ResourceClaim 'team/absent' is not in the store");
        assert_int_equal(read_claim(f, ""), -EINVAL);

        store_patch(f->store, STORE_RESOURCE_CLAIM, "team", "a", patch, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(read_claim(f, "a"), 0);
        assert_string_equal(label_read, "1");
        store_delete(f->store, STORE_RESOURCE_CLAIM, "team", "b", NULL, 0, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(read_claim(f, "b"), -ENOENT);

        /* no loop has run since it was written: what is there counts, not what was told */
        dir_store_write(f, "team.new.resourceclaim.json", CLAIM("new", "u-new"));
        uid_read[0] = '\0';
        store_read(f->store, STORE_RESOURCE_CLAIM, "team", "new", take, dir_store_answer, f);
        assert_string_equal(uid_read, "u-new");
        dir_store_write(f, "team.other.resourceclaim.json", CLAIM("new", "u-new")); /* about another */
        assert_int_equal(read_claim(f, "other"), -ENOENT);
        json_decref(patch);
        dir_store_free(f);
}

/* As a driver writes them, and people and tests beside it. */
static void slices_and_classes_are_objects_like_others(void **state)
{
        struct dir_store *f = dir_store_new();
        json_t *slice = json_loads("{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\","
                                   "\"metadata\":{\"name\":\"n1\"},\"spec\":{\"nodeName\":\"n1\"}}",
                                   0, NULL);

        (void) state;
        dir_store_write(f, "class.yaml",
                        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\n"
                        "metadata: {name: remuda-cuda}\n---\n"
                        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\n"
                        "metadata: {name: two, namespace: team}\n");
        dir_store_open(f);
        assert_true(dir_store_has(f, "DeviceClass remuda-cuda"));
        assert_true(dir_store_has(f, "ResourceClaimTemplate team/two"));
        store_put(f->store, STORE_RESOURCE_SLICE, NULL, "n1", slice, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_string_equal(dir_store_field(f, "ResourceSlice n1", "spec/nodeName"), "n1");
        dir_store_remove(f, "n1.resourceslice.json"); /* as a kubelet does at its start */
        dir_store_settle(f);
        assert_false(dir_store_has(f, "ResourceSlice n1"));
        store_put(f->store, STORE_RESOURCE_SLICE, NULL, "n1", slice, dir_store_answer, f);
        dir_store_settle(f);
        store_delete(f->store, STORE_RESOURCE_SLICE, NULL, "n1", NULL, 0, dir_store_answer, f);
        dir_store_settle(f);
        assert_int_equal(f->result, 0);
        assert_false(dir_store_has(f, "ResourceSlice n1"));
        json_decref(slice);
        dir_store_free(f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_read_is_there_now),
                cmocka_unit_test(slices_and_classes_are_objects_like_others),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
