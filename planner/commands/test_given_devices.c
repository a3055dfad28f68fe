/* Kinds of devices as a person names them: what each word means, and how a wrong one is mended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "planner/commands/given_devices.h"

/* clang-format off */
static const struct {
        const char *words[2], *read; /* read: "NAME TFLOPS GIB COUNT;" of each, or the sentence */
} rows[] = {
        { { "mychip=120,32*4" },       "mychip 120 32 4;" },
        { { "mychip=0.5" },            "mychip 0.5 0 1;" },
        { { "a*b=3" },                 "--devices a*b=3: '*' is followed by a count up to 65536" },
        { { "H100-SXM5-80GB*8" },      "H100-SXM5-80GB 989 80 8;" },
        { { "H100-SXM5-80GB", "L40S*2" }, "H100-SXM5-80GB 989 80 1;L40S 362 48 2;" },
        { { "" },                      "--devices : give NAME[=TFLOPS[,GIB]][*N]" },
        { { "=120" },                  "--devices =120: give NAME[=TFLOPS[,GIB]][*N]" },
        { { "*4" },                    "--devices *4: give NAME[=TFLOPS[,GIB]][*N]" },
        { { "a*x" },                   "--devices a*x: '*' is followed by a count up to 65536" },
        { { "a=1*65537" },             "--devices a=1*65537: '*' is followed by a count up to 65536" },
        { { "a=" },                    "--devices a=: '=' is followed by TFLOPS[,GIB], above 0" },
        { { "a=0" },                   "--devices a=0: '=' is followed by TFLOPS[,GIB], above 0" },
        { { "a=1e10" },                "--devices a=1e10: '=' is followed by TFLOPS[,GIB], above 0" },
        { { "a=1,x" },                 "--devices a=1,x: '=' is followed by TFLOPS[,GIB], above 0" },
        { { "a=1,-1" },                "--devices a=1,-1: '=' is followed by TFLOPS[,GIB], above 0" },
        { { "a=1,2e6" },               "--devices a=1,2e6: '=' is followed by TFLOPS[,GIB], above 0" },
        { { "a=1111111111111111111111111111111111111111111111111111111111111111" },
          "--devices a=1111111111111111111111111111111111111111111111111111111111: '=' is followed by TFLOPS[,GIB]" },
        { { "a=1", "a=2" },            "--devices a: stands twice; give *N instead" },
        { { "nosuchchip" },            "--devices nosuchchip: 'nosuchchip' is not in the device table; give its peak: nosuchchip=TFLOPS" },
};
/* clang-format on */

static void each_word_is_a_kind_or_a_sentence(void **state)
{
        size_t wrong = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct network_estimate_device devices[GIVEN_DEVICES_MAX];
                struct option_list given = { .count = rows[i].words[1] != NULL ? 2 : 1 };
                CLEANUP(text_free) struct text read = { 0 };
                struct err err = { 0 };
                size_t count = 0;
                int r;

                memcpy(given.items, rows[i].words, sizeof(rows[i].words));
                r = given_devices_collect(&given, NULL, devices, &count, &err);
                for (size_t d = 0; r == 0 && d < count; d++)
                        text_printf(&read, "%s %g %llu %llu;", devices[d].name, devices[d].tflops,
                                    (unsigned long long) devices[d].memory_bytes >> 30,
                                    (unsigned long long) devices[d].count);
                if (strcmp(r == 0 ? read.data : err.msg, rows[i].read) != 0) {
                        print_error("want '%s'\n got '%s'\n", rows[i].read, r == 0 ? read.data : err.msg);
                        wrong++;
                }
        }
        assert_int_equal(wrong, 0);
}

static void kinds_have_an_end(void **state)
{
        struct network_estimate_device devices[GIVEN_DEVICES_MAX];
        struct option_list given = { .count = GIVEN_DEVICES_MAX + 1 };
        char words[GIVEN_DEVICES_MAX + 1][16];
        struct err err = { 0 };
        size_t count = 0;

        (void) state;
        for (size_t i = 0; i < given.count; i++) {
                (void) text_format(words[i], sizeof(words[i]), "chip%zu=1", i);
                given.items[i] = words[i];
        }
        assert_int_equal(given_devices_collect(&given, NULL, devices, &count, &err), -E2BIG);
        assert_string_equal(err.msg, "--devices: more than 64 kinds");
}

/* clang-format off */
static const struct {
        const char *file, *read; /* the inventory's groups; read: as above, or the end of the sentence */
} machines[] = {
        { "{\"name\":\"a\",\"model\":\"X\",\"total\":2,\"healthy\":2,\"tflopsBf16\":100}", "X 100 2;" },
        { "{\"name\":\"a\",\"model\":\"X\",\"total\":2,\"healthy\":2,\"tflopsFp16\":50},{\"name\":\"b\",\"model\":\"X\",\"total\":1,\"healthy\":1,\"tflopsFp16\":50}", "X 50 3;" },
        { "{\"name\":\"a\",\"model\":\"X\",\"total\":2,\"healthy\":0,\"tflopsBf16\":100}", "has no usable device whose peak is known" },
        { "{\"name\":\"a\",\"model\":\"X\",\"total\":2,\"healthy\":2}", "has no usable device whose peak is known" },
        { "{\"name\":\"a\",\"total\":2,\"healthy\":1,\"tflopsFp32\":10}", "a 10 1;" },
        { "{\"name\":\"a\",\"model\":\"X\",\"healthy\":2,\"tflopsFp16\":50},{\"name\":\"b\",\"model\":\"Y\",\"healthy\":1,\"tflopsFp16\":20}", "X 50 2;Y 20 1;" },
        { "{\"name\":\"a\",\"model\":\"X\",\"healthy\":2,\"tflopsFp32\":2,\"estimated\":true}", "has no usable device whose peak is known" },
        { "{\"name\":\"a\",\"model\":\"X\",\"healthy\":2,\"tflopsFp32\":2,\"estimated\":true,\"measured\":{\"gflops\":1500}}", "X 1.5 2;" },
        { "{\"name\":\"a\",\"model\":\"X\",\"healthy\":2,\"tflopsBf16\":100,\"measured\":{\"gflops\":1500}}", "X 100 2;" },
        { "", "has no usable device whose peak is known" },
        { "7", "status.groups[0]: must be an object, not a number" },
};
/* clang-format on */

static void machines_tell_their_kinds(void **state)
{
        static const char *const before[] = { "", "[", "{\"items\":[" }, *const behind[] = { "", "]", "]}" };
        size_t wrong = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
                for (size_t f = 0; f < ARRAY_SIZE(before); f++) {
                        char path[] = "/tmp/test_given_devices.XXXXXX";
                        struct network_estimate_device devices[GIVEN_DEVICES_MAX];
                        const struct option_list none = { .count = 0 };
                        CLEANUP(text_free) struct text read = { 0 };
                        struct err err = { 0 };
                        FILE *file;
                        size_t count = 0;
                        int r;

                        file = fdopen(mkstemp(path), "w");
                        assert_non_null(file);
                        assert_true(fprintf(file,
                                            "%s{\"apiVersion\":\"remuda.dev/"
                                            "v1alpha1\",\"kind\":\"NodeAccelerators\","
                                            "\"metadata\":{\"name\":\"n\"},\"status\":{\"groups\":[%s]}}%s",
                                            before[f], machines[i].file, behind[f]) > 0);
                        assert_int_equal(fclose(file), 0);
                        r = given_devices_collect(&none, path, devices, &count, &err);
                        assert_int_equal(unlink(path), 0);
                        for (size_t d = 0; r == 0 && d < count; d++)
                                text_printf(&read, "%s %g %llu;", devices[d].name, devices[d].tflops,
                                            (unsigned long long) devices[d].count);
                        if (!text_ends_with(r == 0 ? read.data : err.msg, machines[i].read)) {
                                print_error("%s: want '%s', got '%s'\n", before[f], machines[i].read,
                                            r == 0 ? read.data : err.msg);
                                wrong++;
                        }
                }
        assert_int_equal(wrong, 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_word_is_a_kind_or_a_sentence),
                cmocka_unit_test(kinds_have_an_end),
                cmocka_unit_test(machines_tell_their_kinds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
