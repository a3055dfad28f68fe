/* State file: what of a device is worth remembering, that it comes back as it went, and files of no use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/state_file.h"
#include "base/cleanup.h"
#include "base/text.h"

struct place {
        char folder[64], path[96];
};

static int set_up(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        (void) text_copy(p->folder, sizeof(p->folder), "/tmp/test_state_file.XXXXXX");
        assert_non_null(mkdtemp(p->folder));
        assert_true(text_format(p->path, sizeof(p->path), "%s/state", p->folder));
        *state = p;
        return 0;
}

static int tear_down(void **state)
{
        struct place *p = *state;

        (void) unlink(p->path);
        (void) rmdir(p->path);
        assert_int_equal(rmdir(p->folder), 0);
        free(p);
        return 0;
}

static const struct numbers none = { 0 };

static const struct state_file_rest *at(uint64_t generation)
{
        static struct state_file_rest rest;

        rest = (struct state_file_rest){
                .boot_id = "b", .generation = generation, .kernel_sequence = 1, .numbers = &none
        };
        return &rest;
}

static struct judge_record record_of(const char *id, enum device_health verdict)
{
        struct judge_record record = { .present = true, .judged = true, .health = { .verdict = verdict } };

        (void) text_copy(record.device.id, sizeof(record.device.id), id);
        return record;
}

/* clang-format off */
static const struct {
        const char *what;
        enum device_health verdict;
        bool present, judged, bad, waiting, turned;
        bool kept;
} devices[] = {
        { "healthy",                    HEALTH_HEALTHY,     true,  true,  false, false, false, false },
        { "unknown",                    HEALTH_UNKNOWN,     true,  true,  false, false, false, false },
        { "unhealthy",                  HEALTH_UNHEALTHY,   true,  true,  false, false, false, true  },
        { "degraded",                   HEALTH_DEGRADED,    true,  true,  false, false, false, true  },
        { "quarantined",                HEALTH_QUARANTINED, true,  true,  false, false, true,  true  },
        { "healthy, and has turned",    HEALTH_HEALTHY,     true,  true,  false, false, true,  true  },
        { "unknown, its last was bad",  HEALTH_UNKNOWN,     true,  true,  true,  false, false, true  },
        { "has not answered since",     HEALTH_UNKNOWN,     true,  true,  false, true,  false, true  },
        { "has left",                   HEALTH_UNHEALTHY,   false, true,  true,  false, false, false },
        { "excluded",                   HEALTH_UNHEALTHY,   true,  false, true,  false, false, false },
};
/* clang-format on */

static void what_is_not_plainly_healthy_is_remembered(void **state)
{
        struct place *p = *state;
        struct judge_record records[ARRAY_SIZE(devices)], *list[ARRAY_SIZE(devices)];
        struct judge judge = { .records = list, .record_count = ARRAY_SIZE(devices) };
        CLEANUP(state_file_free) struct state_file s = { 0 };
        uint64_t hash;
        const struct state_file_rest rest = {
                .boot_id = "boot-1", .generation = 5, .kernel_sequence = 6, .numbers = &none
        };
        struct err err = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
                records[i] = record_of(devices[i].what, devices[i].verdict);
                records[i].present = devices[i].present;
                records[i].judged = devices[i].judged;
                records[i].health.bad = devices[i].bad;
                records[i].health.waiting = devices[i].waiting;
                records[i].health.saved = HEALTH_DEGRADED;
                records[i].health.turn_count = devices[i].turned ? 2 : 0;
                records[i].health.turns[0] = 70;
                records[i].health.turns[1] = 7;
                records[i].device.since_usec = 77;
                (void) text_copy(records[i].health.reason, sizeof(records[i].health.reason), "Hot");
                list[i] = &records[i];
        }
        assert_int_equal(state_file_save(p->path, &judge, &rest, &err), 0);
        assert_int_equal(state_file_load(p->path, &s, &err), 0);
        assert_string_equal(s.boot_id, "boot-1");
        assert_int_equal(s.generation, 5);
        assert_int_equal(s.kernel_sequence, 6);
        for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
                const struct state_file_device *d = state_file_find(&s, devices[i].what);

                if ((d != NULL) != devices[i].kept)
                        fail_msg("%s: is %skept", devices[i].what, d != NULL ? "" : "not ");
                if (d == NULL)
                        continue;
                assert_int_equal(d->health.verdict,
                                 devices[i].waiting ? HEALTH_DEGRADED : devices[i].verdict);
                assert_int_equal(d->health.turn_count, devices[i].turned ? 2 : 0);
                assert_int_equal(d->health.turns[0], devices[i].turned ? 70 : 0);
                assert_string_equal(d->health.reason, "Hot");
                assert_int_equal(d->since_usec, 77);
                assert_true(d->health.judged);
        }
        hash = state_file_hash(&judge, &none);
        records[0].health.turns[0] = 1; /* a healthy one's past is not written */
        assert_int_equal(state_file_hash(&judge, &none), hash);
        records[2].health.verdict = HEALTH_QUARANTINED;
        assert_int_not_equal(state_file_hash(&judge, &none), hash);
}

static void the_file_is_made_when_there_is_something_to_remember(void **state)
{
        struct place *p = *state;
        struct judge_record record = record_of("a", HEALTH_HEALTHY), *list[] = { &record };
        struct judge judge = { .records = list, .record_count = 1 };
        CLEANUP(state_file_free) struct state_file s = { 0 };
        struct err err = { 0 };
        char under[128];

        assert_int_equal(state_file_save(p->path, &judge, at(1), &err), 0);
        assert_int_equal(state_file_load(p->path, &s, &err), -ENOENT);
        record.health.verdict = HEALTH_UNHEALTHY;
        assert_int_equal(state_file_save(p->path, &judge, at(2), &err), 0);
        record.health.verdict = HEALTH_HEALTHY;
        assert_int_equal(state_file_save(p->path, &judge, at(3), &err), 0); /* and then it is kept true */
        assert_int_equal(state_file_load(p->path, &s, &err), 0);
        assert_int_equal(s.generation, 3);
        assert_int_equal(s.device_count, 0);
        record.health.verdict = HEALTH_UNHEALTHY;
        assert_true(text_format(under, sizeof(under), "%s/below", p->path)); /* a file is no folder */
        assert_int_equal(state_file_save(under, &judge, at(4), &err), -ENOTDIR);
        assert_string_not_equal(err.msg, "");
}

static void numbers_come_back_as_they_went(void **state)
{
        struct place *p = *state;
        struct numbers_entry entries[] = { { "nvidia", "GPU-1", "0000:18:00.0", 0 },
                                           { "cpu", "cpu-0", "", 1 } };
        struct numbers numbers = { .entries = entries, .count = 2 };
        struct state_file_rest rest = { .boot_id = "b", .numbers = &numbers };
        const struct judge judge = { 0 };
        CLEANUP(state_file_free) struct state_file s = { 0 };
        struct err err = { 0 };
        uint64_t hash = state_file_hash(&judge, &numbers);

        assert_int_equal(state_file_save(p->path, &judge, &rest, &err), 0);
        assert_int_equal(access(p->path, F_OK), -1); /* all is in order: a tree that is read stays as it is */
        numbers.moved = true;
        assert_int_not_equal(state_file_hash(&judge, &numbers), hash);
        assert_int_equal(state_file_save(p->path, &judge, &rest, &err), 0);
        assert_int_equal(state_file_load(p->path, &s, &err), 0);
        assert_int_equal(s.numbers.count, 2);
        assert_string_equal(s.numbers.entries[0].vendor, "nvidia");
        assert_string_equal(s.numbers.entries[0].id, "GPU-1");
        assert_string_equal(s.numbers.entries[0].pci, "0000:18:00.0");
        assert_int_equal(s.numbers.entries[1].index, 1);
        assert_int_equal(unlink(p->path), 0);
        numbers.moved = false;
        rest.always = true;
        assert_int_equal(state_file_save(p->path, &judge, &rest, &err), 0);
        assert_int_equal(access(p->path, F_OK), 0);
}

/* clang-format off */
#define DEVICE(rest) "{\"version\":1,\"devices\":[{\"id\":\"a\"" rest "}]}"
static const struct {
        const char *content, *sentence; /* sentence: after "'PATH'"; "" = it is read */
} files[] = {
        { "{}",                                                           "" },
        { DEVICE(",\"verdict\":\"unhealthy\",\"turns\":[7,7,3]"),         "" },
        { "",                                                             ": line 1: '[' or '{' expected near end of file" },
        { "{\"version\":1",                                               ": line 1: '}' expected near end of file" },
        { "{\"version\":1,\"version\":1}",                                ": line 1: duplicate object key near '\"version\"'" },
        { "[]",                                                           ": must be an object, not a list" },
        { "{\"version\":2}",                                              ": version: must be a whole number in 1..1, not 2" },
        { "{\"later\":2}",                                                "" }, /* of an agent that knows more */
        { DEVICE(""),                                                     ": devices[0].verdict: is missing" },
        { DEVICE(",\"verdict\":\"well\""),                                ": devices[0].verdict: " },
        { DEVICE(",\"verdict\":\"healthy\",\"turns\":[3,7]"),             ": devices[0].turns[1]: must not be later than the one before" },
        { DEVICE(",\"verdict\":\"quarantined\""),                         ": devices[0]: a quarantine without turns" },
        { DEVICE(",\"verdict\":\"healthy\",\"turns\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"), ": devices[0].turns: " },
        { DEVICE(",\"verdict\":\"healthy\",\"turns\":[-1]"),              ": devices[0].turns[0]: " },
};
/* clang-format on */

static void a_file_of_no_use_is_refused_with_its_place(void **state)
{
        struct place *p = *state;

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                CLEANUP(state_file_free) struct state_file s = { 0 };
                FILE *file = fopen(p->path, "we");
                char want[256];
                struct err err = { 0 };
                int r;

                assert_non_null(file);
                assert_true(fputs(files[i].content, file) >= 0);
                assert_int_equal(fclose(file), 0);
                r = state_file_load(p->path, &s, &err);
                assert_true(text_format(want, sizeof(want), "'%s'%s", p->path, files[i].sentence));
                if (files[i].sentence[0] == '\0' ? r != 0 : r != -EBADMSG)
                        fail_msg("%s: %d %s", files[i].content, r, err.msg);
                if (r < 0 && strncmp(err.msg, want, strlen(want)) != 0)
                        fail_msg("%s: %s", files[i].content, err.msg);
                if (r < 0)
                        assert_true(s.devices == NULL && s.device_count == 0);
        }
}

static void only_a_file_is_read(void **state)
{
        struct place *p = *state;
        struct state_file s;
        struct err err = { 0 };

        assert_int_equal(mkfifo(p->path, 0600), 0); /* it would be waited for */
        assert_int_equal(state_file_load(p->path, &s, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "is not a state file"));
        assert_int_equal(unlink(p->path), 0);
        assert_int_equal(symlink("/etc/passwd", p->path), 0);
        assert_int_equal(state_file_load(p->path, &s, &err), -ELOOP);
        assert_int_equal(unlink(p->path), 0);
        assert_int_equal(fclose(fopen(p->path, "we")), 0);
        assert_int_equal(truncate(p->path, (off_t) STATE_FILE_MAX_BYTES + 1), 0);
        assert_int_equal(state_file_load(p->path, &s, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, "is not a state file"));
        state_file_free(NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(what_is_not_plainly_healthy_is_remembered, set_up, tear_down),
                cmocka_unit_test_setup_teardown(the_file_is_made_when_there_is_something_to_remember, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(numbers_come_back_as_they_went, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_file_of_no_use_is_refused_with_its_place, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(only_a_file_is_read, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
