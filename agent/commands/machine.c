/* remuda machine: record what discovery reads of a machine, and expand a record into a directory tree. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/discovery/discovery.h"
#include "agent/tree/tree_machine.h"
#include "agent/tree/tree_record.h"
#include "base/cleanup.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/commands.h"
#include "cli/command/open_tree.h"
#include "io/clock.h"

struct machine_options {
        const char *root, *machine;
        bool mask;
};

#define AT(member) offsetof(struct machine_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "root", .type = OPTION_STRING, .offset = AT(root), .value = "DIR",
          .help = "record DIR instead of /" },
        { .name = "machine", .type = OPTION_STRING, .offset = AT(machine), .value = "FILE",
          .help = "record a machine file again (to mask it)" },
        { .name = "mask-serials", .type = OPTION_BOOL, .offset = AT(mask),
          .help = "replace serial numbers, UUIDs and hardware addresses" },
        { 0 },
};
/* clang-format on */

const struct option_program command_machine_options = {
        .name = "remuda machine",
        .operands = "record [FILE] | expand FILE DIR",
        .operands_min = 1,
        .operands_max = 3,
        .summary = "record writes one text file of exactly what discovery reads (standard output without "
                   "FILE), for "
                   "bug\nreports and tests; `--machine FILE` is then accepted wherever `--root DIR` is.\n"
                   "expand makes DIR, a directory tree that `--root DIR` accepts; device nodes become empty "
                   "files.",
        .specs = specs,
};

static int write_out(const char *path, const char *bytes, size_t size, struct err *err)
{
        CLEANUP(fclose_p) FILE *file = NULL;
        FILE *out = stdout;

        if (path != NULL && strcmp(path, "-") != 0) {
                out = file = fopen(path, "we");
                if (file == NULL)
                        return err_set(err, -errno, "create '%s': %m", path);
        }
        if (fwrite(bytes, 1, size, out) != size || fflush(out) != 0)
                return err_set(err, -errno, "write '%s': %m", path != NULL ? path : "standard output");
        return 0;
}

static void write_head(struct tree *tree, bool mask, struct text *out)
{
        time_t now = (time_t) (clock_realtime_usec() / 1000000);
        struct tm tm;
        char day[16] = "";

        if (gmtime_r(&now, &tm) != NULL)
                (void) text_format(day, sizeof(day), "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1,
                                   tm.tm_mday);
        text_printf(out, "# remuda machine 1\n# Recorded by `remuda machine record` on %s from %s%s.\n", day,
                    tree_is_live(tree) ? "a live machine" : "a directory or a record",
                    mask ? ", serial numbers masked" : "");
}

static int record(const char *file, const struct machine_options *options, struct err *err)
{
        struct text out = { 0 };
        struct inventory inventory;
        struct tree *tree = NULL;
        int r = open_tree(options->root, options->machine, &tree, err);

        if (r < 0)
                return r;
        inventory_init(&inventory);
        r = tree_record_begin(tree, err);
        if (r == 0)
                r = discovery_run(tree, NULL, &inventory, err);
        if (r == 0) {
                char hostname[256];

                (void) tree_read_text(tree, "proc/sys/kernel/hostname", hostname, sizeof(hostname));
                write_head(tree, options->mask, &out);
                r = tree_record_take(tree, options->mask, &out, err);
        }
        if (r == 0)
                r = write_out(file, out.data, out.size_bytes, err);
        inventory_free(&inventory);
        text_free(&out);
        tree_close(tree);
        return r;
}

static int expand(const char *file, const char *directory, struct err *err)
{
        struct tree *tree = NULL;
        int r = tree_machine_open(file, &tree, err);

        if (r == 0)
                r = tree_record_expand(tree, directory, err);
        tree_close(tree);
        return r;
}

int command_machine(int argc, char **argv)
{
        struct machine_options options = { 0 };
        struct err err = { 0 };
        size_t words = 0;
        int r = options_start(&command_machine_options, REMUDA_VERSION, argc, argv, &options, &words, stdout,
                              stderr);

        if (r >= 0)
                return r;
        if (words <= 2 && strcmp(argv[1], "record") == 0 &&
            !(options.root != NULL && options.machine != NULL))
                r = record(words == 2 ? argv[2] : NULL, &options, &err);
        else if (words == 3 && strcmp(argv[1], "expand") == 0)
                r = expand(argv[2], argv[3], &err);
        else {
                fputs("remuda machine: `record [FILE]` or `expand FILE DIR`, --root or --machine: see "
                      "--help\n",
                      stderr);
                return EXIT_USAGE;
        }
        return options_end(&command_machine_options, r, &err, stderr);
}
