/* `remuda machine`: recorded, recorded again, expanded, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/text.h"
#include "cli/command/commands.h"

enum { ARGUMENTS_MAX = 8 };

#define DEVICE "/sys/devices/pci0000:00/0000:00:01.0"
#define MACHINE                                                                                              \
        "# remuda machine 1\n" DEVICE "/vendor = 0x10de\n" DEVICE "/device = 0x2330\n" DEVICE                \
        "/class = 0x030200\n/sys/bus/pci/devices/0000:00:01.0 -> ../../../devices/pci0000:00/0000:00:01.0\n" \
        "/proc/sys/kernel/hostname = n1\n"

/* clang-format off */
/* A word that begins with @ is a file of the test's own folder; "@in" is a machine file. */
static const struct {
        const char *what, *line;
        int code;
        const char *says;
} rows[] = {
        { "the help",                  "--help", EXIT_DONE, "record writes one text file" },
        { "nothing to do",             "", EXIT_USAGE, "" },
        { "something else",            "play", EXIT_USAGE, "`record [FILE]` or `expand FILE DIR`" },
        { "two files",                 "record @a @b", EXIT_USAGE, "`record [FILE]`" },
        { "both ways to read",         "record --root @x --machine @in", EXIT_USAGE, "`record [FILE]`" },
        { "no directory to expand to", "expand @in", EXIT_USAGE, "`expand FILE DIR`" },
        { "no such machine",           "record --machine @none", EXIT_NOT_FOUND, "@none" },
        { "no such directory",         "record --root @none", EXIT_NOT_FOUND, "@none" },
        { "a machine again",           "record --machine @in", EXIT_DONE, DEVICE "/vendor = 0x10de" },
        { "to standard output",        "record - --machine @in", EXIT_DONE, "from a directory or a record.\n" },
        { "masked",                    "record - --machine @in --mask-serials", EXIT_DONE, "serial numbers masked" },
        { "to a file",                 "record @out --machine @in", EXIT_DONE, "" },
        { "what was recorded",         "record --machine @out", EXIT_DONE, DEVICE "/vendor = 0x10de" },
        { "where no file can be",      "record @none/out --machine @in", EXIT_NOT_FOUND, "create '" },
        { "on a full disk",            "record /dev/full --machine @in", EXIT_FAILED, "write '/dev/full'" },
        { "expanded",                  "expand @in @tree", EXIT_DONE, "" },
        { "a directory again",         "record --root @tree", EXIT_DONE, DEVICE "/vendor = 0x10de" },
        { "where something is",        "expand @in @tree", EXIT_FAILED, "must be absent or empty" },
        { "nothing to expand",         "expand @none @tree2", EXIT_NOT_FOUND, "@none" },
        { "no machine to expand",      "expand @tree @tree2", EXIT_USAGE, "is not a regular file" },
};
/* clang-format on */

static void put(const char *path, const char *bytes)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_true(fputs(bytes, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

/* Both outputs go to one file while the line runs. */
static int run(const char *line, const char *folder)
{
        static char paths[ARGUMENTS_MAX][128];
        char *copy = strdup(line), *argv[ARGUMENTS_MAX + 1] = { (char *) "machine" }, *rest = copy;
        int argc = 1, code, kept[3], out;

        assert_non_null(copy);
        assert_true(text_format(paths[0], sizeof(paths[0]), "%s/said", folder));
        out = open(paths[0], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(out >= 0);
        for (char *word; argc < ARGUMENTS_MAX && (word = strtok_r(rest, " ", &rest)) != NULL; argc++) {
                argv[argc] = word;
                if (word[0] != '@')
                        continue;
                assert_true(text_format(paths[argc], sizeof(paths[argc]), "%s/%s", folder, word));
                argv[argc] = paths[argc];
        }
        (void) fflush(NULL);
        for (int fd = 1; fd < 3; fd++) {
                kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                assert_true(kept[fd] >= 0 && dup2(out, fd) == fd);
        }
        code = command_machine(argc, argv);
        (void) fflush(NULL);
        for (int fd = 1; fd < 3; fd++) {
                (void) dup2(kept[fd], fd);
                (void) close(kept[fd]);
        }
        (void) close(out);
        free(copy);
        return code;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
        (void) st;
        (void) type;
        (void) walk;
        return remove(path);
}

static void each_line_is_answered(void **state)
{
        char folder[] = "/tmp/test_machine_command.XXXXXX", path[128];
        unsigned wrong = 0;

        (void) state;
        assert_non_null(mkdtemp(folder));
        assert_true(text_format(path, sizeof(path), "%s/@in", folder));
        put(path, MACHINE);
        assert_true(text_format(path, sizeof(path), "%s/said", folder));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                int code = run(rows[i].line, folder);
                char said[16384];
                FILE *file = fopen(path, "r");
                size_t n;

                assert_non_null(file);
                n = fread(said, 1, sizeof(said) - 1, file);
                said[n] = '\0';
                (void) fclose(file);
                if (code == rows[i].code && strstr(said, rows[i].says) != NULL)
                        continue;
                print_error("%s: machine %s: exit %d, not %d with '%s':\n%.800s\n", rows[i].what,
                            rows[i].line, code, rows[i].code, rows[i].says, said);
                wrong++;
        }
        (void) nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        assert_int_equal(wrong, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_line_is_answered),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
