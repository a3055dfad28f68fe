/* Claims are asked for one after the other, whenever the store answers, and no more of one that closes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "plugin/dra/claim_lookup.h"
#include "store/store_internal.h"

#define CLAIMS 3

/* A store that answers at once, or when it is told to. */
struct slow_store {
        struct store store;
        store_answer answer;
        void *userdata;
        int result;
        bool at_once;
        unsigned asked;
};

static void on_read(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
                    store_read_taker take, store_answer answer, void *userdata)
{
        struct slow_store *s = (struct slow_store *) store;

        (void) take;
        assert_int_equal(kind, STORE_RESOURCE_CLAIM);
        assert_string_equal(namespace_, "ns");
        assert_int_equal(name[0], 'a' + (int) s->asked);
        s->asked++;
        s->answer = answer;
        s->userdata = userdata;
        if (s->at_once)
                answer(userdata, s->result, "");
}

struct bed {
        struct store_backend backend;
        struct slow_store slow;
        struct dra_state state;
        struct claim_lookup lookup;
        unsigned gone, not_known, ends;
        bool goes_on;
};

static bool on_each(void *userdata, const struct claim_lookup_claim *claim, enum claim_lookup_answer answer)
{
        struct bed *bed = userdata;

        assert_string_equal(claim->namespace_, "ns");
        bed->gone += answer == CLAIM_LOOKUP_GONE;
        bed->not_known += answer == CLAIM_LOOKUP_NOT_KNOWN;
        return bed->goes_on;
}

static void on_end(void *userdata)
{
        ((struct bed *) userdata)->ends++;
}

static void begin(struct bed *bed, bool at_once, int result)
{
        const struct claim_lookup_options options = { .state = &bed->state,
                                                      .store = &bed->slow.store,
                                                      .node = "n1",
                                                      .each = on_each,
                                                      .end = on_end,
                                                      .userdata = bed };

        bed->goes_on = true;
        bed->backend.read = on_read;
        bed->slow.store.backend = &bed->backend;
        bed->slow.at_once = at_once;
        bed->slow.result = result;
        for (unsigned i = 0; i < CLAIMS; i++) {
                struct dra_state_claim claim = { .namespace_ = "ns" };

                (void) text_format(claim.uid, sizeof(claim.uid), "uid-%u", i);
                (void) text_format(claim.name, sizeof(claim.name), "%c", (char) ('a' + i));
                assert_int_equal(claim_lookup_add(&bed->lookup, &claim), 0);
                assert_int_equal(claim_lookup_add(&bed->lookup, &claim), 0);
        }
        assert_true(claim_lookup_begin(&bed->lookup, &options));
}

static void each_is_asked_for_once(void **state)
{
        struct bed at_once = { .ends = 0 }, later = { .ends = 0 };

        (void) state;
        begin(&at_once, true, -ENOENT);
        assert_int_equal(at_once.slow.asked, CLAIMS);
        assert_int_equal(at_once.gone, CLAIMS);
        assert_int_equal(at_once.ends, 1);
        claim_lookup_free(&at_once.lookup);
        begin(&later, false, 0);
        for (unsigned i = 1; i <= CLAIMS; i++) {
                assert_int_equal(later.slow.asked, i);
                assert_int_equal(later.ends, 0);
                later.slow.answer(later.slow.userdata, -EIO, "busy");
        }
        assert_int_equal(later.not_known, CLAIMS);
        assert_int_equal(later.ends, 1);
        claim_lookup_free(&later.lookup);
}

/* store_close() gives the answers that still wait: its client is no more by then. */
static void a_store_that_closes_is_asked_no_more(void **state)
{
        struct bed bed = { .ends = 0 };

        (void) state;
        begin(&bed, false, 0);
        bed.slow.answer(bed.slow.userdata, -ECANCELED, "the store is closed");
        assert_int_equal(bed.slow.asked, 1);
        assert_int_equal(bed.not_known, 1);
        assert_int_equal(bed.ends, 1);
        claim_lookup_free(&bed.lookup);
}

static void who_has_heard_enough_ends_it(void **state)
{
        struct bed bed = { .ends = 0 };

        (void) state;
        begin(&bed, false, 0);
        bed.goes_on = false;
        bed.slow.answer(bed.slow.userdata, -ENOENT, "");
        assert_int_equal(bed.slow.asked, 1);
        assert_int_equal(bed.ends, 1);
        claim_lookup_free(&bed.lookup);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_is_asked_for_once),
                cmocka_unit_test(a_store_that_closes_is_asked_no_more),
                cmocka_unit_test(who_has_heard_enough_ends_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
