/* Program tables, good and bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "job/spec/program_table.h"

#define HASH "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

#define NO_HASH "zz7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static int decode(const char *text, struct program_table *table, struct err *err)
{
        json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        int r = program_table_decode(value, table, err);

        assert_non_null(value);
        json_decref(value);
        return r;
}

static void a_full_table_is_read(void **state)
{
        struct program_table table;
        const struct program_table_row *program;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(decode("{\"programs\":{\"cpu\":{\"path\":\"/opt/a b\",\"args\":[\"-x\",\"\"],"
                                "\"environment\":[\"HOME\",\"LD_LIBRARY_PATH\"],\"sha256\":\"" HASH
                                "\"},\"sunway\":{\"path\":\"/s\"}}}",
                                &table, &err),
                         0);
        assert_int_equal(table.count, 2);
        program = program_table_find(&table, "cpu");
        assert_string_equal(program->path, "/opt/a b");
        assert_int_equal(program->arg_count, 2);
        assert_string_equal(program->args[1], "");
        assert_null(program->args[2]);
        assert_string_equal(program->environment[1], "LD_LIBRARY_PATH");
        assert_string_equal(program->sha256, HASH);
        assert_string_equal(program_table_find(&table, "sunway")->sha256, "");
        assert_null(program_table_find(&table, "cuda"));
        program_table_free(&table);
}

static void a_table_is_written_as_it_is_read(void **state)
{
        static const char text[] = "{\"programs\":{\"cpu\":{\"path\":\"/opt/a b\",\"args\":[\"-x\"],"
                                   "\"environment\":[\"HOME\"],\"sha256\":\"" HASH
                                   "\"},\"sunway\":{\"path\":\"/s\",\"args\":[]}}}";
        CLEANUP(free_p) char *written = NULL;
        struct program_table table;
        json_t *value;

        (void) state;
        assert_int_equal(decode(text, &table, NULL), 0);
        value = program_table_encode(&table);
        written = json_dumps(value, JSON_COMPACT);
        assert_string_equal(written, text);
        json_decref(value);
        program_table_free(&table);
}

/* clang-format off */
static const struct {
        const char *what, *text, *says;
} refusals[] = {
        { "no programs",        "{}",                                                          "programs: is missing; give a mapping of runtimes" },
        { "a list",             "[]",                                                          "must be an object, not a list" },
        { "a stray field",      "{\"programs\":{},\"version\":1}",                             "version: is not known here; known: programs" },
        { "programs a list",    "{\"programs\":[]}",                                           "programs: must be an object, not a list" },
        { "program a string",   "{\"programs\":{\"cpu\":\"/x\"}}",                             "programs.cpu: must be an object" },
        { "no path",            "{\"programs\":{\"cpu\":{}}}",                                 "programs.cpu.path: is missing; give the absolute path" },
        { "relative path",      "{\"programs\":{\"cpu\":{\"path\":\"bin/x\"}}}",               "'bin/x' is not absolute" },
        { "empty path",         "{\"programs\":{\"cpu\":{\"path\":\"\"}}}",                    "is not absolute" },
        { "path with a NUL",    "{\"programs\":{\"cpu\":{\"path\":\"/x\\u0000y\"}}}",          "path: must not contain a NUL" },
        { "path a number",      "{\"programs\":{\"cpu\":{\"path\":1}}}",                       "path: must be a string, not a number" },
        { "misspelt field",     "{\"programs\":{\"cpu\":{\"path\":\"/x\",\"sha\":\"\"}}}",     "programs.cpu.sha: is not known here; known: path, args" },
        { "a hash left empty",  "{\"programs\":{\"cpu\":{\"path\":\"/x\",\"sha256\":null}}}", "sha256: has no value" },
        { "short hash",         "{\"programs\":{\"cpu\":{\"path\":\"/x\",\"sha256\":\"12\"}}}", "64 hexadecimal digits" },
        { "a hash a number",    "{\"programs\":{\"cpu\":{\"path\":\"/x\",\"sha256\":12}}}",  "'(no string)' is not 64 hexadecimal digits" },
        { "a hash of letters",  "{\"programs\":{\"cpu\":{\"path\":\"/x\",\"sha256\":\"" NO_HASH "\"}}}", "64 hexadecimal digits" },
        { "args a string",      "{\"programs\":{\"cpu\":{\"path\":\"/x\",\"args\":\"-v\"}}}",  "args: must be a list, not the string" },
        { "an arg a number",    "{\"programs\":{\"cpu\":{\"path\":\"/x\",\"args\":[1]}}}",     "args[0]: must be a string" },
        { "variable = value",   "{\"programs\":{\"cpu\":{\"path\":\"/x\",\"environment\":[\"A=1\"]}}}", "'A=1' is not the name" },
        { "a variable 1A",      "{\"programs\":{\"cpu\":{\"path\":\"/x\",\"environment\":[\"1A\"]}}}", "'1A' is not the name" },
        { "wildcard variable",  "{\"programs\":{\"cpu\":{\"path\":\"/x\",\"environment\":[\"LD_*\"]}}}", "'LD_*' is not the name" },
        { "runtime a path",     "{\"programs\":{\"../cpu\":{\"path\":\"/x\"}}}",               "not the name of a runtime" },
        { "runtime an option",  "{\"programs\":{\"-cpu\":{\"path\":\"/x\"}}}",                 "not the name of a runtime" },
        { "a nameless runtime", "{\"programs\":{\"\":{\"path\":\"/x\"}}}",                  "not the name of a runtime" },
        { "runtime too long",   "{\"programs\":{\"abcdefghijklmnop\":{\"path\":\"/x\"}}}",     "its name must have at most 15 bytes" },
};
/* clang-format on */

static void what_is_wrong_is_named(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
                struct program_table table;
                struct err err = { 0 };
                int r = decode(refusals[i].text, &table, &err);

                if (r != -EINVAL || strstr(err.msg, refusals[i].says) == NULL || table.count != 0)
                        fail_msg("%s: want '%s', got %d '%s'", refusals[i].what, refusals[i].says, r,
                                 err.msg);
        }
}

static void a_path_that_nobody_can_open_is_refused(void **state)
{
        CLEANUP(free_p) char *path = calloc(1, PROGRAM_PATH_MAX_BYTES + 1);
        struct program_table table;
        struct err err = { 0 };
        json_t *value;

        (void) state;
        for (size_t length = PROGRAM_PATH_MAX_BYTES - 1; length <= PROGRAM_PATH_MAX_BYTES; length++) {
                memset(path, '/', length);
                value = json_pack("{s:{s:{s:s}}}", "programs", "cpu", "path", path);
                assert_int_equal(program_table_decode(value, &table, &err),
                                 length < PROGRAM_PATH_MAX_BYTES ? 0 : -EINVAL);
                json_decref(value);
                program_table_free(&table);
        }
        assert_non_null(strstr(err.msg, "programs.cpu.path: longer than 4095 bytes"));
        program_table_free(NULL);
}

/* What a program may be given by whoever starts it, and what would be another program. */
static void variables_that_bring_code_are_known(void **state)
{
        /* clang-format off */
        static const struct {
                const char *name;
                bool steers, loads;
        } rows[] = {
                { "LD_PRELOAD",            true,  true },  { "LD_AUDIT",              true,  true },
                { "GLIBC_TUNABLES",        true,  true },  { "GCONV_PATH",            true,  true },
                { "GCONV_PATHS",           false, false }, { "OMP_TOOL_LIBRARIES",    false, true },
                { "OCL_ICD_VENDORS",       false, true },  { "OCL_ICD_FILENAMES",     false, true },
                { "OPENCL_VENDOR_PATH",    false, true },  { "OPENCL_LAYERS",         false, true },
                { "FI_PROVIDER_PATH",      false, true },  { "RDMAV_DRIVERS",         false, true },
                { "IBV_DRIVERS",           false, true },  { "UCX_MODULE_DIR",        false, true },
                { "HWLOC_PLUGINS_PATH",    false, true },  { "OPENSSL_CONF",          false, true },
                { "OPENSSL_ENGINES",       false, true },  { "OPENSSL_MODULES",       false, true },
                { "PJRT_NAMES_AND_LIBRARY_PATHS", false, true },
                { "CUDA_INJECTION64_PATH", false, true },  { "HSA_TOOLS_LIB",         false, true },
                { "CUDA_VISIBLE_DEVICES",  false, false }, { "OMP_NUM_THREADS",       false, false },
                { "PYTHONPATH",            false, false }, { "NCCL_DEBUG",            false, false },
                { "HOME",                  false, false }, { "",                      false, false },
        };
        /* clang-format on */
        char *names[] = { (char *) "HOME", (char *) "LANG" };
        struct program_table_row row = { .environment = names, .environment_count = 2 };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (program_table_steers(rows[i].name) != rows[i].steers ||
                    program_table_loads(rows[i].name) != rows[i].loads)
                        fail_msg("%s", rows[i].name);
        assert_true(program_table_passes(&row, "LANG"));
        assert_false(program_table_passes(&row, "LC_ALL"));
        row.inherits = true;
        assert_true(program_table_passes(&row, "LC_ALL"));
}

static void a_hash_in_capitals_is_the_same_hash(void **state)
{
        struct program_table table;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(decode("{\"programs\":{\"cpu\":{\"path\":\"/x\",\"sha256\":"
                                "\"BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD\"}}}",
                                &table, &err),
                         0);
        assert_string_equal(table.programs[0].sha256, HASH);
        program_table_free(&table);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_full_table_is_read),
                cmocka_unit_test(a_table_is_written_as_it_is_read),
                cmocka_unit_test(what_is_wrong_is_named),
                cmocka_unit_test(a_path_that_nobody_can_open_is_refused),
                cmocka_unit_test(variables_that_bring_code_are_known),
                cmocka_unit_test(a_hash_in_capitals_is_the_same_hash),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
