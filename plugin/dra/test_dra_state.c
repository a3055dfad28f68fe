/* DRA state: written and read again, who holds what, and what is no state. */
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
#include "plugin/dra/dra_state.h"

static void add(struct dra_state *state, const char *uid, const char *id, bool admin)
{
        struct dra_state_claim claim = { .device_count = 1 };

        claim.devices = calloc(2, sizeof(*claim.devices));
        assert_non_null(claim.devices);
        (void) text_copy(claim.uid, sizeof(claim.uid), uid);
        (void) text_copy(claim.namespace_, sizeof(claim.namespace_), "ns");
        (void) text_format(claim.name, sizeof(claim.name), "claim-%s", uid);
        (void) text_copy(claim.devices[0].request, sizeof(claim.devices[0].request), "gpu");
        (void) text_copy(claim.devices[0].name, sizeof(claim.devices[0].name), "d");
        (void) text_copy(claim.devices[0].id, sizeof(claim.devices[0].id), id);
        claim.devices[0].admin = admin;
        assert_int_equal(dra_state_add(state, &claim), 0);
        assert_null(claim.devices);
}

static void what_is_written_is_read(void **state)
{
        struct dra_state have = { .count = 0 }, again;
        CLEANUP(free_p) char *text = NULL, *second = NULL;

        (void) state;
        add(&have, "u1", "GPU-1", false);
        add(&have, "u2", "GPU-1", true); /* it looks on */
        text = dra_state_encode(&have);
        assert_non_null(text);
        assert_int_equal(dra_state_decode(text, strlen(text), &again, NULL), 0);
        assert_int_equal(again.count, 2);
        assert_string_equal(dra_state_holder(&again, "GPU-1")->uid, "u1");
        assert_null(dra_state_holder(&again, "GPU-2"));
        assert_string_equal(dra_state_find(&again, "u2")->name, "claim-u2");
        second = dra_state_encode(&again);
        assert_string_equal(text, second);
        dra_state_remove(&again, "u1");
        dra_state_remove(&again, "nobody");
        assert_int_equal(again.count, 1);
        assert_null(dra_state_holder(&again, "GPU-1"));
        dra_state_free(&again);
        dra_state_free(&have);
}

static void what_is_no_state_is_refused(void **state)
{
        static const char *const texts[] = {
                "",
                "{",
                "[]",
                "{}",
                "{\"version\":2}",
                "{\"version\":1,\"claims\":[{}]}",
                "{\"version\":1,\"claims\":[{\"uid\":\"../x\",\"namespace\":\"n\",\"name\":\"c\"}]}",
                "{\"version\":1,\"claims\":["
                "{\"uid\":\"a\",\"namespace\":\"n\",\"name\":\"c\",\"devices\":[{\"request\":\"r\",\"name\":"
                "\"d\",\"id\":\"x\"}]},"
                "{\"uid\":\"b\",\"namespace\":\"n\",\"name\":\"e\",\"devices\":[{\"request\":\"r\",\"name\":"
                "\"d\",\"id\":\"x\"}]}]}",
        };
        struct dra_state got;
        struct err err;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                err = (struct err){ 0 };
                assert_int_equal(dra_state_decode(texts[i], strlen(texts[i]), &got, &err), -EBADMSG);
                assert_true(err.msg[0] != '\0');
                assert_int_equal(got.count, 0);
        }
        assert_non_null(strstr(err.msg, "two claims hold device x"));
}

static void uids_are_parts_of_names(void **state)
{
        char longest[DRA_STATE_UID_BYTES + 1];

        (void) state;
        memset(longest, 'a', sizeof(longest));
        longest[DRA_STATE_UID_BYTES] = '\0';
        assert_false(dra_state_uid_valid(longest));
        longest[DRA_STATE_UID_BYTES - 1] = '\0';
        assert_true(dra_state_uid_valid(longest));
        assert_true(dra_state_uid_valid("5e002330-0000-4000-8000-000000000000"));
        assert_false(dra_state_uid_valid("") || dra_state_uid_valid("..") || dra_state_uid_valid("a/b") ||
                     dra_state_uid_valid("\xc3\xa4"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_written_is_read),
                cmocka_unit_test(what_is_no_state_is_refused),
                cmocka_unit_test(uids_are_parts_of_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
