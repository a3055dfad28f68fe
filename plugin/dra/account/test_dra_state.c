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
#include "plugin/dra/account/dra_state.h"

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
        (void) text_copy(have.claims[0].boot, sizeof(have.claims[0].boot), "b1");
        text = dra_state_encode(&have);
        assert_non_null(text);
        assert_int_equal(dra_state_decode(text, strlen(text), &again, NULL), 0);
        assert_int_equal(again.count, 2);
        assert_string_equal(dra_state_holder(&again, "GPU-1")->uid, "u1");
        assert_null(dra_state_holder(&again, "GPU-2"));
        assert_string_equal(dra_state_find(&again, "u2")->name, "claim-u2");
        assert_true(dra_state_is_earlier(&again.claims[0], "b2"));
        assert_false(dra_state_is_earlier(&again.claims[0], "b1") ||
                     dra_state_is_earlier(&again.claims[0], "") ||
                     dra_state_is_earlier(&again.claims[1], "b1")); /* which says none */
        second = dra_state_encode(&again);
        assert_string_equal(text, second);
        dra_state_remove(&again, "u1");
        dra_state_remove(&again, "nobody");
        assert_int_equal(again.count, 1);
        assert_null(dra_state_holder(&again, "GPU-1"));
        dra_state_free(&again);
        dra_state_free(&have);
}

static void what_the_device_plugin_gave_is_read(void **state)
{
        struct dra_state have = { .count = 0 }, again;
        CLEANUP(free_p) char *text = NULL;

        (void) state;
        assert_int_equal(grants_add(&have.grants, "GPU-1", 7000000, 0), 0);
        text = dra_state_encode(&have);
        assert_non_null(text);
        assert_int_equal(dra_state_decode(text, strlen(text), &again, NULL), 0);
        assert_true(grants_has(&again.grants, "GPU-1", 7000000));
        assert_null(dra_state_holder(&again, "GPU-1")); /* no claim has it */
        for (unsigned i = 0; i < 20; i++) {
                char id[16];

                (void) text_format(id, sizeof(id), "GPU-%u", i);
                assert_int_equal(grants_add(&again.grants, id, 7000000, 0), 0);
        }
        assert_int_equal(again.grants.count, 20);
        dra_state_free(&again);
        dra_state_free(&have);
}

static void share(struct dra_state *state, const char *uid, const char *id, const char *share_id,
                  uint64_t memory_bytes)
{
        struct dra_state_device *device;

        add(state, uid, id, false);
        device = &state->claims[state->count - 1].devices[0];
        (void) text_copy(device->share, sizeof(device->share), share_id);
        device->memory_bytes = memory_bytes;
}

/* Who is in the way of a claim of this device alone? */
static const struct dra_state_claim *rival(const struct dra_state *have, struct dra_state_device *wanted,
                                           uint64_t memory_bytes)
{
        const struct dra_state_claim claim = { .devices = wanted, .device_count = 1 };
        const struct dra_share_room room = { .memory_bytes = memory_bytes, .shares = 4 };
        const struct dra_state_claim *found = dra_state_rival(have, &claim, 0, &room);

        return found == &claim ? NULL : found;
}

/* A chip of 10 bytes: 4 and 6 of it may be had at once, 4 and 7 may not, and nobody has it alone beside. */
static void shares_fit_or_are_rivals(void **state)
{
        struct dra_state have = { .count = 0 }, again;
        struct dra_state_device wanted = { .id = "GPU-1", .share = "s2", .memory_bytes = 6 };
        CLEANUP(free_p) char *text = NULL;

        (void) state;
        share(&have, "u1", "GPU-1", "s1", 4);
        assert_null(rival(&have, &wanted, 10));
        wanted.memory_bytes = 7;
        assert_string_equal(rival(&have, &wanted, 10)->uid, "u1");
        assert_null(rival(&have, &wanted, 0)); /* nobody knows how much there is */
        wanted.share[0] = '\0';
        assert_non_null(rival(&have, &wanted, 10));
        share(&have, "u2", "GPU-1", "s2", 6);
        have.claims[1].devices[0].shares = 3;
        text = dra_state_encode(&have);
        assert_int_equal(dra_state_decode(text, strlen(text), &again, NULL), 0); /* two hold it, rightly */
        assert_int_equal(again.claims[0].devices[0].memory_bytes, 4);
        assert_int_equal(again.claims[0].devices[0].shares, 0);
        assert_string_equal(again.claims[1].devices[0].share, "s2");
        assert_int_equal(again.claims[1].devices[0].shares, 3);
        assert_non_null(strstr(text, "\"shares\": 3"));
        assert_null(strstr(strstr(text, "\"shares\"") + 1, "\"shares\"")); /* of one nothing is said */
        dra_state_free(&again);
        dra_state_free(&have);
}

/* A chip for two claims, of which nobody knows the memory: shares are counted, of others and the claim's own.
 */
static void shares_are_no_more_than_the_device_has(void **state)
{
        static const struct {
                const char *what;
                uint64_t held, first, second; /* shares, 0 = one; of the claim that is to have two devices */
                int refused;                  /* the index in whose way it is, or -1 */
                bool own;                     /* by the claim itself */
        } rows[] = {
                { "none is left for the second", 0, 0, 0, 1, false },
                { "two are had by one", 2, 0, 0, 0, false },
                { "three of two", 1, 3, 0, 0, true },
                { "no sum of them overflows", UINT64_MAX, 1, UINT64_MAX, 0, false },
        };
        const struct dra_share_room room = { .shares = 2 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct dra_state have = { .count = 0 };
                struct dra_state_device devices[2] = {
                        { .id = "GPU-1", .share = "a", .shares = rows[i].first },
                        { .id = "GPU-1", .share = "b", .shares = rows[i].second }
                };
                struct dra_state_claim claim = { .devices = devices, .device_count = 2 };
                const struct dra_state_claim *found = NULL;
                int at = -1;

                share(&have, "u1", "GPU-1", "s1", 0);
                have.claims[0].devices[0].shares = rows[i].held;
                for (int k = 0; k < 2 && found == NULL; k++) {
                        found = dra_state_rival(&have, &claim, (size_t) k, &room);
                        at = found != NULL ? k : -1;
                }
                if (at != rows[i].refused || (found == &claim) != rows[i].own)
                        fail_msg("%s: at %d", rows[i].what, at);
                dra_state_free(&have);
        }
}

/* Two shares in one claim are added, before those of others: a chip of 10 bytes, of which another has 4. */
static void a_claim_may_be_in_its_own_way(void **state)
{
        /* clang-format off */
        static const struct {
                const char *what;
                uint64_t first, second;
                int refused; /* the index in whose way it is, or -1 */
                bool own;    /* by the claim itself */
        } rows[] = {
                { "3 and 3 are what the other leaves",    3, 3, -1, false },
                { "4 and 3 are more, with the other's",   4, 3, 1, false },
                { "6 and 5 are more by themselves",       6, 5, 1, true },
                { "11 are more than a chip has",          11, 0, 0, true },
                { "no sum of them overflows",             5, UINT64_MAX, 1, true },
        };
        /* clang-format on */
        struct dra_state have = { .count = 0 };
        struct dra_state_device twice[2] = { { .id = "GPU-2" }, { .id = "GPU-2" } };
        struct dra_state_claim whole = { .devices = twice, .device_count = 2 };
        const struct dra_share_room room = { .memory_bytes = 10, .shares = 4 };

        (void) state;
        share(&have, "u1", "GPU-1", "s1", 4);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct dra_state_device devices[2] = {
                        { .id = "GPU-1", .share = "a", .memory_bytes = rows[i].first },
                        { .id = "GPU-1", .share = "b", .memory_bytes = rows[i].second }
                };
                struct dra_state_claim claim = { .devices = devices, .device_count = 2 };
                const struct dra_state_claim *found = NULL;
                int at = -1;

                for (int k = 0; k < 2 && found == NULL; k++) {
                        found = dra_state_rival(&have, &claim, (size_t) k, &room);
                        at = found != NULL ? k : -1;
                }
                if (at != rows[i].refused || (found == &claim) != rows[i].own)
                        fail_msg("%s: at %d", rows[i].what, at);
        }
        assert_null(dra_state_rival(&have, &whole, 0, &room));
        assert_ptr_equal(dra_state_rival(&have, &whole, 1, &room), &whole); /* one chip is not two */
        twice[0].admin = true;
        assert_null(dra_state_rival(&have, &whole, 1, &room));
        dra_state_free(&have);
}

/* A chip that was divided while a claim had it whole, and the reverse: who has a part has the chip. */
static void a_partition_and_its_chip_are_rivals(void **state)
{
        static const struct {
                const char *have, *want;
                bool rivals;
        } rows[] = {
                { "GPU-5e", "MIG-GPU-5e/7/0", true },
                { "MIG-GPU-5e/7/0", "GPU-5e", true },
                { "MIG-GPU-5e/7/0", "MIG-GPU-5e/8/0", false },
                { "GPU-9f", "GPU-9f-p1", true },
                { "GPU-9f-p1", "GPU-9f-p10", false },
                { "GPU-5e", "GPU-5e0", false },
                { "0000:11:00.0", "MIG-0000:11:00.0/0/0", true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct dra_state have = { .count = 0 };

                add(&have, "u1", rows[i].have, false);
                if ((dra_state_holder(&have, rows[i].want) != NULL) != rows[i].rivals)
                        fail_msg("%s and %s", rows[i].have, rows[i].want);
                dra_state_free(&have);
        }
}

static void what_is_no_state_is_refused(void **state)
{
        static const char *const texts[] = {
                "",
                "{",
                "[]",
                "{}",
                "{\"version\":3}",
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

/* Of an earlier boot, which goes as the claim is prepared anew. */
static void a_claim_is_not_in_its_own_way(void **state)
{
        struct dra_state have = { .count = 0 };
        struct dra_state_device wanted = { .id = "GPU-1" };
        struct dra_state_claim again = { .uid = "u1", .devices = &wanted, .device_count = 1 };
        struct err err = { 0 };

        (void) state;
        add(&have, "u1", "GPU-1", false);
        assert_null(dra_state_rival(&have, &again, 0, NULL));
        (void) text_copy(again.uid, sizeof(again.uid), "u2");
        assert_string_equal(dra_state_rival(&have, &again, 0, NULL)->uid, "u1");
        assert_int_equal(dra_state_check(&have, NULL), 0);
        add(&have, "u1", "GPU-1", false); /* no state has one twice */
        assert_int_equal(dra_state_check(&have, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "claim u1 is there twice"));
        dra_state_free(&have);
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
                cmocka_unit_test(what_the_device_plugin_gave_is_read),
                cmocka_unit_test(shares_fit_or_are_rivals),
                cmocka_unit_test(shares_are_no_more_than_the_device_has),
                cmocka_unit_test(a_claim_may_be_in_its_own_way),
                cmocka_unit_test(a_partition_and_its_chip_are_rivals),
                cmocka_unit_test(what_is_no_state_is_refused),
                cmocka_unit_test(a_claim_is_not_in_its_own_way),
                cmocka_unit_test(uids_are_parts_of_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
