/* The profile of a split from a ConfigMap: what cannot be read is the job's reason, and it is read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "job/controller/profile/profile_read.h"

#define MAP(text_) "{\"data\": {\"k\": " text_ "}}"

static int decode(const char *object, struct job_split_profile *ret, struct err *err)
{
        const struct job_split_profile wanted = { .map = { "m", "k" } };
        json_t *json = object == NULL ? NULL : json_loads(object, 0, NULL);
        int r = profile_read_decode(&wanted, "team", json, ret, err);

        json_decref(json);
        return r;
}

static void what_cannot_be_read_says_why(void **state)
{
        static const struct {
                const char *object, *says;
                int result;
        } rows[] = {
                { NULL, "there is no ConfigMap 'm' in namespace 'team'; make it", -ENOENT },
                { "{}", "ConfigMap 'm' has no text under the key 'k'; correct the key", -ENOENT },
                { MAP("7"), "has no text under the key 'k'", -ENOENT },
                { MAP("\"words\""), "'k' of ConfigMap 'm' is no profile", 0 },
                { MAP("\"{\\\"layers\\\": [{\\\"memory\\\": 1}]}\""), "layers[0].memory", 0 },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct job_split_profile got = { .samples = 1 };
                struct err err = { 0 };
                int r = decode(rows[i].object, &got, &err);

                if (r >= 0 || (rows[i].result != 0 && r != rows[i].result) ||
                    strstr(err.msg, rows[i].says) == NULL ||
                    strncmp(err.msg, "spec.profile.configMapKeyRef: ", 30) != 0)
                        fail_msg("row %zu: %d, %s", i, r, err.msg);
                job_split_profile_free(&got);
        }
}

static void too_large_a_one_is_not_read(void **state)
{
        struct job_split_profile got = { .samples = 1 };
        struct err err = { 0 };
        struct text object = { 0 };

        (void) state;
        text_append(&object, "{\"data\": {\"k\": \"");
        for (size_t i = 0; i <= PROFILE_READ_MAX_BYTES; i++)
                text_append(&object, " ");
        text_append(&object, "\"}}");
        assert_int_equal(decode(object.data, &got, &err), -E2BIG);
        assert_non_null(strstr(err.msg, "has 524289 bytes, 524288 may be read"));
        text_free(&object);
}

static void layers_are_read(void **state)
{
        struct job_split_profile got = { .samples = 1 };

        (void) state;
        assert_int_equal(decode(MAP("\"{\\\"layers\\\": [{}, {}, {}]}\""), &got, NULL), 0);
        assert_int_equal(got.layer_count, 3);
        job_split_profile_free(&got);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_cannot_be_read_says_why),
                cmocka_unit_test(too_large_a_one_is_not_read),
                cmocka_unit_test(layers_are_read),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
