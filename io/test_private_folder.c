/* Folders that only their maker sees: named by chance where the environment says, and removed only if they
 * are his. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/make_folders.h"
#include "io/private_folder.h"

static void names_lie_where_the_environment_says(void **state)
{
        static const struct {
                const char *variable, *parent;
        } rows[] = {
                { NULL, "/tmp/" },
                { "/var/tmp", "/var/tmp/" },
                { "relative", "/tmp/" },
                { "/a-folder-whose-name-is-longer-than-what-a-socket-leaves", "/tmp/" },
        };
        char name[128], other[128], small[16];

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(rows[i].variable != NULL ? setenv("TMPDIR", rows[i].variable, 1)
                                                          : unsetenv("TMPDIR"),
                                 0);
                assert_int_equal(private_folder_name(name, sizeof(name), "remuda-"), 0);
                assert_int_equal(private_folder_name(other, sizeof(other), "remuda-"), 0);
                assert_true(text_starts_with(name, rows[i].parent));
                assert_true(text_starts_with(name + strlen(rows[i].parent), "remuda-"));
                assert_string_not_equal(name, other);
        }
        assert_int_equal(private_folder_name(small, sizeof(small), "remuda-"), -ENAMETOOLONG);
        assert_string_equal(small, "");
        assert_int_equal(unsetenv("TMPDIR"), 0);
}

static void it_is_made_for_one_and_removed_with_all_that_is_in_it(void **state)
{
        char folder[128], inner[160], link[160];
        struct stat st;

        (void) state;
        assert_int_equal(private_folder(folder, sizeof(folder), "remuda-"), 0);
        assert_int_equal(stat(folder, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
        (void) text_format(inner, sizeof(inner), "%s/a/b/file", folder);
        make_folders(inner);
        (void) text_format(inner, sizeof(inner), "%s/a/b", folder);
        (void) text_format(link, sizeof(link), "%s/out", folder);
        assert_int_equal(access(inner, F_OK), 0);
        assert_int_equal(symlink("/tmp", link), 0);
        private_folder_remove(folder, "other-"); /* somebody else's */
        private_folder_remove(folder + 1, "remuda-");
        assert_int_equal(access(inner, F_OK), 0);
        private_folder_remove(folder, "remuda-");
        assert_int_equal(access(folder, F_OK), -1);
        assert_int_equal(access("/tmp", F_OK), 0); /* links are not followed */
}

static void what_cannot_be_made_has_no_name(void **state)
{
        char folder[128] = "x";

        (void) state;
        assert_int_equal(setenv("TMPDIR", "/nonexistent", 1), 0);
        assert_int_equal(private_folder(folder, sizeof(folder), "remuda-"), -ENOENT);
        assert_string_equal(folder, "");
        assert_int_equal(unsetenv("TMPDIR"), 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(names_lie_where_the_environment_says),
                cmocka_unit_test(it_is_made_for_one_and_removed_with_all_that_is_in_it),
                cmocka_unit_test(what_cannot_be_made_has_no_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
