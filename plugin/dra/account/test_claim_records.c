/* Claim records: the account of claims out of their CDI specs: what was written is read, of two holders of
 * one device the later is believed, and what is no record is left and named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/whole_file.h"
#include "plugin/dra/account/claim_records.h"
#include "plugin/dra/claim_cdi.h"

#define DEVICE(id, more)                                                                                     \
        "{\\\"request\\\":\\\"r\\\",\\\"name\\\":\\\"d\\\",\\\"id\\\":\\\"" id "\\\"" more "}"
#define CLAIM(uid, devices)                                                                                  \
        "{\\\"uid\\\":\\\"" uid "\\\",\\\"namespace\\\":\\\"n\\\",\\\"name\\\":\\\"c-" uid                   \
        "\\\",\\\"boot\\\":\\\"b1\\\",\\\"devices\\\":[" devices "]}"
#define SPEC(line) "{\"cdiVersion\":\"0.6.0\",\"annotations\":{\"remuda.dev/claim\":\"" line "\"}}"
#define ADD(claim) SPEC("{\\\"add\\\":[" claim "]}")

static void a_record_is_taken_or_says_why_not(void **state)
{
        /* clang-format off */
        static const struct {
                const char *what, *spec, *why; /* NULL = it is taken */
                int r;
        } rows[] = {
                { "another device", ADD(CLAIM("u2", DEVICE("g2", ""))), NULL, 0 },
                { "no device", ADD(CLAIM("u2", "")), NULL, 0 },
                { "it looks on", ADD(CLAIM("u2", DEVICE("g1", ",\\\"admin\\\":true"))), NULL, 0 },
                { "held by another", ADD(CLAIM("u2", DEVICE("g1", ""))), "its device 'g1' is held by claim n/c-u1", -EBUSY },
                { "a part of it is", ADD(CLAIM("u2", DEVICE("MIG-g1/7/0", ""))), "is held by claim n/c-u1", -EBUSY },
                { "a device twice", ADD(CLAIM("u2", DEVICE("g2", "") "," DEVICE("g2", ""))), "is held by claim n/c-u2", -EBUSY },
                { "of another claim", ADD(CLAIM("u3", DEVICE("g3", ""))), "is not of this claim", -EBADMSG },
                { "of two claims", ADD(CLAIM("u2", DEVICE("g2", "")) "," CLAIM("u3", DEVICE("g3", ""))), "is not of this claim", -EBADMSG },
                { "of none", SPEC("{}"), "is not of this claim", -EBADMSG },
                { "no record", "{\"cdiVersion\":\"0.6.0\"}", "no annotation remuda.dev/claim", -EBADMSG },
                { "an empty one", SPEC(""), "no annotation remuda.dev/claim", -EBADMSG },
                { "a number", "{\"annotations\":{\"remuda.dev/claim\":7}}", "no annotation remuda.dev/claim", -EBADMSG },
                { "no JSON in it", SPEC("{"), "", -EBADMSG },
                { "no JSON", "{", "", -EBADMSG },
                { "no object", "[]", "no annotation remuda.dev/claim", -EBADMSG },
        };
        /* clang-format on */
        const char *first = ADD(CLAIM("u1", DEVICE("g1", "")));

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct dra_state have = { .count = 0 };
                struct err err = { 0 };
                int r;

                assert_int_equal(claim_record_take(&have, "u1", first, strlen(first), NULL), 0);
                r = claim_record_take(&have, "u2", rows[i].spec, strlen(rows[i].spec), &err);
                if (r != rows[i].r || have.count != (r == 0 ? 2 : 1) ||
                    (r < 0 && (err.msg[0] == '\0' || strstr(err.msg, rows[i].why) == NULL)))
                        fail_msg("%s: %d, %zu claims: %s", rows[i].what, r, have.count, err.msg);
                assert_string_equal(dra_state_holder(&have, "g1")->uid, "u1");
                assert_string_equal(have.claims[0].boot, "b1");
                dra_state_free(&have);
        }
}

static void write_spec(const char *folder, const char *name, const char *text, time_t written)
{
        const struct timespec times[2] = { { .tv_sec = written }, { .tv_sec = written } };
        char path[128];

        (void) text_format(path, sizeof(path), "%s/%s", folder, name);
        assert_int_equal(whole_file_write(path, text, strlen(text), 0644, 0, NULL), 0);
        assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void a_folder_is_an_account(void **state)
{
        static const struct {
                const char *name, *text;
                time_t written;
        } files[] = {
                { "remuda.dev-claim_u1.json", ADD(CLAIM("u1", DEVICE("g1", ""))), 10 },
                { "remuda.dev-claim_u2.json", ADD(CLAIM("u2", DEVICE("g1", ""))), 20 },
                { "remuda.dev-claim_u3.json", ADD(CLAIM("u3", DEVICE("g3", ""))), 5 },
                { "remuda.dev-claim_u4.json", "{", 30 },
                { "remuda.dev-claim_u5.json", ADD(CLAIM("u5", DEVICE("g5", ""))), 30 },
                { "remuda.dev-nvidia.json", "{}", 30 },
                { ".remuda.dev-claim_u6.json.part", "{", 30 },
        };
        char folder[] = "/tmp/remuda-claim-records-XXXXXX", path[128];
        struct dra_state have = { .count = 0 };
        struct dra_state_claim known = { .uid = "u5", .namespace_ = "n", .name = "known" };
        CLEANUP(text_free) struct text left = { 0 };

        (void) state;
        assert_non_null(mkdtemp(folder));
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                write_spec(folder, files[i].name, files[i].text, files[i].written);
        assert_int_equal(dra_state_add(&have, &known), 0);
        assert_int_equal(claim_records_read(folder, &have, &left, NULL), 0);
        assert_int_equal(have.count, 3);
        assert_string_equal(dra_state_find(&have, "u5")->name, "known");
        assert_string_equal(dra_state_holder(&have, "g1")->uid, "u2"); /* which was written later */
        assert_non_null(dra_state_find(&have, "u3"));
        assert_int_equal(dra_state_check(&have, NULL), 0);
        assert_non_null(strstr(left.data, "claim_u1.json': its device 'g1' is held by claim n/c-u2\n"));
        assert_non_null(strstr(left.data, "claim_u4.json': "));
        assert_null(strstr(left.data, "u6"));
        dra_state_free(&have);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                (void) text_format(path, sizeof(path), "%s/%s", folder, files[i].name);
                assert_int_equal(unlink(path), 0);
        }
        assert_int_equal(rmdir(folder), 0);
        assert_int_equal(claim_records_read(folder, &have, NULL, NULL), 0); /* none is there */
        assert_int_equal(have.count, 0);
}

/* Whoever has no file descriptor left must not believe that there are no claims. */
static void what_cannot_be_read_just_then_is_not_passed_over(void **state)
{
        char folder[] = "/tmp/remuda-claim-records-XXXXXX", path[128];
        struct dra_state have = { .count = 0 };
        struct rlimit before, none;
        struct err err = { 0 };

        (void) state;
        assert_non_null(mkdtemp(folder));
        write_spec(folder, "remuda.dev-claim_u1.json", ADD(CLAIM("u1", DEVICE("g1", ""))), 10);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        for (rlim_t fds = 0; fds < 2; fds++) { /* of the folder; of the spec */
                int next = dup(0);

                assert_true(next >= 0 && close(next) == 0);
                none = (struct rlimit){ .rlim_cur = (rlim_t) next + fds, .rlim_max = before.rlim_max };
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
                assert_int_equal(claim_records_read(folder, &have, NULL, &err), fds == 0 ? -EMFILE : 0);
                assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
                assert_int_equal(have.count, fds);
        }
        dra_state_free(&have);
        (void) text_format(path, sizeof(path), "%s/remuda.dev-claim_u1.json", folder);
        assert_true(unlink(path) == 0 && symlink("/proc/self/mem", path) == 0);
        assert_true(claim_records_read(folder, &have, NULL, &err) < 0);
        assert_non_null(strstr(err.msg, path));
        assert_int_equal(have.count, 0);
        assert_true(unlink(path) == 0 && mkdir(path, 0700) == 0); /* it is none, and stays so */
        assert_int_equal(claim_records_read(folder, &have, NULL, NULL), 0);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(rmdir(folder), 0);
}

static void fill(char *field, size_t bytes, size_t number)
{
        memset(field, 'x', bytes - 1);
        field[bytes - 1] = '\0';
        for (size_t i = 0; i < 4; i++, number /= 10)
                field[i] = (char) ('0' + number % 10);
}

/* As many devices as a claim may have, and each word as long as it may be. */
static void longest(struct dra_state_claim *ret, char letter)
{
        *ret = (struct dra_state_claim){ .device_count = DRA_STATE_DEVICES_MAX };
        ret->devices = calloc(DRA_STATE_DEVICES_MAX + 1, sizeof(*ret->devices));
        assert_non_null(ret->devices);
        fill(ret->uid, sizeof(ret->uid), 0);
        fill(ret->namespace_, sizeof(ret->namespace_), 0);
        fill(ret->name, sizeof(ret->name), 0);
        fill(ret->pod, sizeof(ret->pod), 0);
        fill(ret->boot, sizeof(ret->boot), 0);
        for (size_t i = 0; i < DRA_STATE_DEVICES_MAX; i++) {
                struct dra_state_device *device = &ret->devices[i];

                fill(device->request, sizeof(device->request), 0);
                fill(device->name, sizeof(device->name), i);
                fill(device->id, sizeof(device->id), i);
                memset(device->id + 4, letter, sizeof(device->id) - 5);
                fill(device->share, sizeof(device->share), i);
                device->memory_bytes = UINT64_MAX / 2;
        }
}

/* CDI's bound is of the names and the values of all annotations of a spec. */
static void the_longest_record_is_within_the_bound(void **state)
{
        static const char letters[] = { 'x', '\001' }; /* one that JSON escapes: such a claim has no record */

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(letters); i++) {
                struct inventory inventory;
                struct plugin_config config;
                const struct claim_cdi_node node = { .directory = "/none",
                                                     .inventory = &inventory,
                                                     .config = &config };
                struct dra_state_claim claim;
                struct dra_state again = { .count = 0 };
                struct device_group *group;
                json_t *spec = NULL;
                const char *record;
                CLEANUP(free_p) char *text = NULL;

                plugin_config_default(&config);
                inventory_init(&inventory);
                longest(&claim, letters[i]);
                for (size_t k = 0; k < claim.device_count; k++) {
                        struct device *device = inventory_add_device(&inventory);

                        (void) text_copy(device->id, sizeof(device->id), claim.devices[k].id);
                        (void) text_copy(device->group, sizeof(device->group), "g");
                        device->index = (unsigned) k;
                }
                group = inventory_add_group(&inventory);
                (void) text_copy(group->name, sizeof(group->name), "g");
                (void) text_copy(group->resource, sizeof(group->resource), "n.com/g");
                assert_int_equal(claim_cdi_build(&node, &claim, &spec, NULL), 0);
                record = json_string_value(
                        json_object_get(json_object_get(spec, "annotations"), CLAIM_CDI_RECORD));
                text = json_dumps(spec, 0);
                if (letters[i] == 'x') {
                        assert_in_range(strlen(record) + strlen(CLAIM_CDI_RECORD), 150000,
                                        CLAIM_CDI_RECORD_MAX);
                        assert_int_equal(claim_record_take(&again, claim.uid, text, strlen(text), NULL), 0);
                        assert_int_equal(again.claims[0].device_count, DRA_STATE_DEVICES_MAX);
                } else
                        assert_null(json_object_get(spec, "annotations"));
                dra_state_free(&again);
                dra_state_claim_free(&claim);
                json_decref(spec);
                inventory_free(&inventory);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_record_is_taken_or_says_why_not),
                cmocka_unit_test(a_folder_is_an_account),
                cmocka_unit_test(what_cannot_be_read_just_then_is_not_passed_over),
                cmocka_unit_test(the_longest_record_is_within_the_bound),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
