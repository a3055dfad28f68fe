/* Program file: tables and programs that may be started, and that may not. */
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

#include "agent/launch/program_file.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"

#define ABC_SHA256 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

struct folder {
        char path[64];
        char file[96];
};

static int set_up(void **state)
{
        struct folder *folder = calloc(1, sizeof(*folder));

        strcpy(folder->path, "/tmp/remuda-test-XXXXXX");
        assert_non_null(mkdtemp(folder->path));
        assert_true(text_format(folder->file, sizeof(folder->file), "%s/file", folder->path));
        *state = folder;
        return 0;
}

static int tear_down(void **state)
{
        struct folder *folder = *state;

        (void) unlink(folder->file);
        (void) rmdir(folder->path);
        free(folder);
        return 0;
}

static void write_file(const char *path, const char *content, mode_t mode)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "we");

        assert_non_null(f);
        assert_true(fputs(content, f) >= 0);
        assert_int_equal(fflush(f), 0);
        assert_int_equal(chmod(path, mode), 0);
}

static void a_table_is_loaded_from_a_file(void **state)
{
        struct folder *folder = *state;
        struct program_table table;
        struct err err = { 0 };

        write_file(folder->file, "programs:\n  cpu: {path: /bin/true, args: [\"1\", two]}\n", 0644);
        assert_int_equal(program_file_load(folder->file, &table, &err), 0);
        assert_string_equal(program_table_find(&table, "cpu")->args[0], "1");
        program_table_free(&table);
}

static void a_bad_table_says_where_it_is(void **state)
{
        struct folder *folder = *state;
        struct program_table table;
        struct err err = { 0 };
        int r;

        write_file(folder->file, "programs: {cpu: {path: bin/true}}\n", 0644);
        r = program_file_load(folder->file, &table, &err);
        assert_int_equal(exit_code_of(r), EXIT_USAGE);
        assert_non_null(strstr(err.msg, folder->file));
        assert_non_null(strstr(err.msg, "not absolute"));
        r = program_file_load("/nonexistent/programs.yaml", &table, &err);
        assert_int_equal(exit_code_of(r), EXIT_NOT_FOUND);
        r = program_file_load("/tmp", &table, &err);
        assert_int_equal(exit_code_of(r), EXIT_USAGE);
}

static void a_program_is_judged_before_it_starts(void **state)
{
        struct folder *folder = *state;
        struct program_table_row program = { .runtime = "cpu", .path = folder->file };
        char sha256[SHA256_HEX_BYTES];
        struct err err = { 0 };

        assert_int_equal(exit_code_of(program_file_check(&program, sha256, &err)), EXIT_NOT_FOUND);
        write_file(folder->file, "abc", 0644);
        assert_int_equal(exit_code_of(program_file_check(&program, sha256, &err)), EXIT_NO_PERMISSION);
        assert_int_equal(chmod(folder->file, 0755), 0);
        assert_int_equal(program_file_check(&program, sha256, &err), 0);
        assert_string_equal(sha256, ABC_SHA256);

        (void) text_copy(program.sha256, sizeof(program.sha256), ABC_SHA256);
        assert_int_equal(program_file_check(&program, NULL, &err), 0);
        program.sha256[0] = 'c';
        assert_int_equal(exit_code_of(program_file_check(&program, NULL, &err)), EXIT_USAGE);
        assert_non_null(strstr(err.msg, ABC_SHA256));

        program.path = folder->path;
        assert_int_equal(exit_code_of(program_file_check(&program, NULL, &err)), EXIT_NO_PERMISSION);
}

static void a_script_is_a_file_that_says_so(void **state)
{
        static const struct {
                const char *ending, *content;
                bool is;
        } files[] = {
                { ".py", "abc", true },      { ".sh", "", true },
                { "", "#!/bin/sh\n", true }, { "", "abc", false },
                { "", "#", false },          { ".csv", "1,2\n", false },
                { ".pyc", "abc", false },    { ".json", "{\"a\":1}", false },
        };
        struct folder *folder = *state;
        char path[128], sha256[SHA256_HEX_BYTES];

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                assert_true(text_format(path, sizeof(path), "%s%s", folder->file, files[i].ending));
                write_file(path, files[i].content, 0644);
                if (program_file_script(path, sha256) != files[i].is)
                        fail_msg("'%s': %s", files[i].ending, files[i].content);
                if (files[i].is && strcmp(files[i].content, "abc") == 0)
                        assert_string_equal(sha256, ABC_SHA256);
                assert_int_equal(unlink(path), 0);
                assert_false(program_file_script(path, sha256));
        }
        assert_false(program_file_script(folder->path, sha256));
        assert_false(program_file_script("--model", sha256));
        assert_false(program_file_script("", sha256));
}

static void a_table_and_a_script_have_a_size(void **state)
{
        struct folder *folder = *state;
        struct program_table table;
        char sha256[SHA256_HEX_BYTES];
        struct err err = { 0 };

        write_file(folder->file, "#!/bin/sh\n", 0644);
        assert_true(program_file_script(folder->file, sha256));
        assert_int_equal(truncate(folder->file, PROGRAM_FILE_SCRIPT_MAX_BYTES + 1), 0);
        assert_false(program_file_script(folder->file, sha256));
        assert_int_equal(program_file_load(folder->file, &table, &err), -E2BIG);
        assert_non_null(strstr(err.msg, "larger than 1048576 bytes; a program table is a short list"));
        write_file(folder->file, "", 0644);
        assert_int_equal(program_file_load(folder->file, &table, &err), -EINVAL); /* says nothing */
}

static void a_program_is_found_by_its_path_or_in_those_of_the_environment(void **state)
{
        struct folder *folder = *state;
        CLEANUP(free_p) char *before = strdup(getenv("PATH") != NULL ? getenv("PATH") : "");
        char found[128], paths[256], small[4];
        struct {
                const char *paths, *name;
                int result;
        } rows[] = {
                { paths, "file", 0 },       { paths, "none", -ENOENT },   { paths, folder->file, 0 },
                { "", "file", -ENOENT },    { ".:tmp", "file", -ENOENT }, { paths, "/none/file", -ENOENT },
                { paths, "/tmp", -EACCES },
        };

        assert_true(text_format(paths, sizeof(paths), "relative:/none:%s", folder->path));
        write_file(folder->file, "#!/bin/sh\n", 0755);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(setenv("PATH", rows[i].paths, 1), 0);
                if (program_file_find(rows[i].name, found, sizeof(found)) != rows[i].result)
                        fail_msg("row %zu", i);
                if (rows[i].result == 0)
                        assert_string_equal(found, folder->file);
        }
        assert_int_equal(program_file_find(folder->file, small, sizeof(small)), -ENOENT); /* no room */
        assert_int_equal(setenv("PATH", folder->path, 1), 0);
        assert_int_equal(program_file_find("file", small, sizeof(small)), -ENOENT);
        assert_int_equal(chmod(folder->file, 0644), 0);
        assert_int_equal(program_file_find(folder->file, found, sizeof(found)), -EACCES);
        assert_int_equal(unsetenv("PATH"), 0);
        assert_int_equal(program_file_find("sh", found, sizeof(found)), 0);
        assert_int_equal(setenv("PATH", before, 1), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_table_is_loaded_from_a_file, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_bad_table_says_where_it_is, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_program_is_judged_before_it_starts, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_script_is_a_file_that_says_so, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_table_and_a_script_have_a_size, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_program_is_found_by_its_path_or_in_those_of_the_environment,
                                                set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
