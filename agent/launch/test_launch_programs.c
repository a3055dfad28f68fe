/* Launch programs: what is in the table and on the node, and files that are changed behind our back. */
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
#include <sys/stat.h>
#include <unistd.h>

#include "agent/inventory/inventory.h"
#include "agent/launch/launch_programs.h"
#include "base/text.h"

struct place {
        char folder[64], table[96], program[96];
        struct launch_programs programs;
        struct log log;
};

static int set_up(void **state)
{
        struct place *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        (void) text_copy(p->folder, sizeof(p->folder), "/tmp/test_launch_programs.XXXXXX");
        assert_non_null(mkdtemp(p->folder));
        assert_true(text_format(p->table, sizeof(p->table), "%s/table", p->folder));
        assert_true(text_format(p->program, sizeof(p->program), "%s/program", p->folder));
        log_init(&p->log, "test", NULL, NULL);
        *state = p;
        return 0;
}

static int tear_down(void **state)
{
        struct place *p = *state;

        launch_programs_free(&p->programs);
        (void) unlink(p->table);
        (void) unlink(p->program);
        assert_int_equal(rmdir(p->folder), 0);
        free(p);
        return 0;
}

static void put(const char *path, const char *content, mode_t mode)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_true(fputs(content, file) >= 0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(chmod(path, mode), 0);
}

/* @sha256: of the program, in the table; "" = it does not say. */
static void put_table(const struct place *p, const char *sha256)
{
        char content[512];

        assert_true(text_format(content, sizeof(content), "programs:\n  cpu: {path: %s%s%s}\n", p->program,
                                sha256[0] != '\0' ? ", sha256: " : "", sha256));
        put(p->table, content, 0600);
}

static void the_last_good_table_is_kept(void **state)
{
        struct place *p = *state;
        struct err err = { 0 };

        launch_programs_load(&p->programs, p->table, false, &p->log);
        assert_null(launch_programs_find(&p->programs, "cpu", &err));
        assert_string_equal(err.msg, "no program for runtime 'cpu' in the program table");
        put(p->program, "one", 0700);
        put_table(p, "");
        launch_programs_load(&p->programs, p->table, false, &p->log);
        assert_non_null(launch_programs_find(&p->programs, "cpu", &err));
        put(p->table, "programs: 7\n", 0600);
        launch_programs_load(&p->programs, p->table, false, &p->log);
        assert_non_null(launch_programs_find(&p->programs, "cpu", &err));
        assert_int_equal(unlink(p->table), 0);
        launch_programs_load(&p->programs, p->table, true, &p->log); /* it was asked for: a mistake */
        assert_non_null(launch_programs_find(&p->programs, "cpu", &err));
        launch_programs_load(&p->programs, p->table, false, &p->log);
        assert_null(launch_programs_find(&p->programs, "cpu", &err));
}

static void only_programs_that_are_here_are_told(void **state)
{
        struct place *p = *state;
        struct inventory inventory;

        inventory_init(&inventory);
        put_table(p, "");
        launch_programs_load(&p->programs, p->table, true, &p->log);
        assert_string_equal(launch_programs_sha256(&p->programs, "cpu"), "");
        assert_string_equal(launch_programs_sha256(&p->programs, "none"), "");
        launch_programs_fill(&p->programs, &inventory);
        assert_int_equal(inventory.program_count, 0);
        put(p->program, "one", 0700);
        launch_programs_load(&p->programs, p->table, true, &p->log);
        launch_programs_fill(&p->programs, &inventory);
        assert_int_equal(inventory.program_count, 1);
        assert_string_equal(inventory.programs[0].sha256, launch_programs_sha256(&p->programs, "cpu"));
        put(p->table, "programs: {}\n", 0600);
        launch_programs_load(&p->programs, p->table, true, &p->log);
        inventory.program_count = 0;
        launch_programs_fill(&p->programs, &inventory);
        assert_int_equal(inventory.program_count, 0);
        inventory_free(&inventory);
}

/* Another content of the same length and, as a person can set it, of the same time. */
static void change_unseen(const struct place *p, const char *content)
{
        struct timespec times[2];
        struct stat st;
        int fd;

        assert_int_equal(stat(p->program, &st), 0);
        usleep(20000); /* a clock tick of the file system */
        fd = open(p->program, O_WRONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, content, strlen(content)), (ssize_t) strlen(content));
        times[0] = st.st_atim;
        times[1] = st.st_mtim;
        assert_int_equal(futimens(fd, times), 0);
        assert_int_equal(close(fd), 0);
}

static void a_changed_program_is_seen_whatever_its_time_says(void **state)
{
        struct place *p = *state;
        const struct program_table_row *row;
        char sha256[SHA256_HEX_BYTES];
        struct err err = { 0 };

        put(p->program, "one", 0700);
        put_table(p, "");
        launch_programs_load(&p->programs, p->table, true, &p->log);
        (void) text_copy(sha256, sizeof(sha256), launch_programs_sha256(&p->programs, "cpu"));
        put_table(p, sha256);
        launch_programs_load(&p->programs, p->table, true, &p->log);
        row = launch_programs_find(&p->programs, "cpu", &err);
        assert_non_null(row);
        assert_int_equal(launch_programs_check(&p->programs, row, &err), 0);
        assert_int_equal(launch_programs_check(&p->programs, row, &err), 0);
        change_unseen(p, "two");
        assert_int_equal(launch_programs_check(&p->programs, row, &err), -EKEYREJECTED);
        assert_string_equal(launch_programs_sha256(&p->programs, "cpu"), "");
        change_unseen(p, "one");
        assert_int_equal(launch_programs_check(&p->programs, row, &err), 0);
        assert_int_equal(chmod(p->program, 0600), 0);
        assert_int_equal(launch_programs_check(&p->programs, row, &err), -EACCES);
        assert_int_equal(unlink(p->program), 0);
        assert_int_equal(launch_programs_check(&p->programs, row, &err), -ENOENT);
        assert_non_null(strstr(err.msg, "install the program or mend the table"));
        put(p->program, "one", 0700); /* another file of the same content */
        assert_int_equal(launch_programs_check(&p->programs, row, &err), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_last_good_table_is_kept, set_up, tear_down),
                cmocka_unit_test_setup_teardown(only_programs_that_are_here_are_told, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_changed_program_is_seen_whatever_its_time_says, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
