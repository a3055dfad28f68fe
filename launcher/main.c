#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/exit_code.h"
#include "core/options.h"
#include "core/version.h"
#include "io/program_file.h"
#include "launcher/launch.h"
#include "launcher/supervise.h"

#define AT(member) offsetof(struct launch_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { "programs", 0, OPTION_STRING, AT(programs), "FILE", PROGRAM_TABLE_PATH, 0, 0, "the program table" },
        { "runtime", 0, OPTION_STRING, AT(runtime), "RUNTIME", NULL, 0, 0, "whose program to start: cuda, cann, cpu... (else REMUDA_LAUNCH_RUNTIME)" },
        { "socket", 0, OPTION_STRING, AT(socket), "PATH", NULL, 0, 0, "ask the agent there what the chips need" },
        { "rank-file", 0, OPTION_STRING, AT(rank_file), "FILE", NULL, 0, 0, "variables, logs and report of each rank, written by remuda run" },
        { "grace-seconds", 0, OPTION_UNSIGNED, AT(grace_seconds), "N", "8", 0, 3600, "from SIGTERM to SIGKILL of all that is left" },
        { "die-with-parent", 0, OPTION_BOOL, AT(die_with_parent), NULL, NULL, 0, 0, "end when the process that started this one ends" },
        { "dry-run", 0, OPTION_BOOL, AT(dry_run), NULL, NULL, 0, 0, "print the command line and the environment, start nothing" },
        { NULL, 0, 0, 0, NULL, NULL, 0, 0, NULL },
};
/* clang-format on */

static const struct option_program description = {
        .name = "remuda-launch",
        .operands = "[-- ARGS...]",
        .operands_max = PROGRAM_ARGS_MAX,
        .summary = "Start the program that an administrator's table has for a runtime, and leave nothing "
                   "behind.",
        .environment_prefix = "REMUDA_LAUNCH_",
        .after = "Exit code: the program's; 128 + N if signal N killed it; 2 bad table or hash, 3 no such "
                 "runtime or\n"
                 "program, 5 not executable. See remuda-launch(1).\n",
        .specs = specs,
};

/* A supervisor's child may have no use for the launcher's own words; a person has. */
static int fail(int exit_code, const struct err *err)
{
        (void) fprintf(stderr, "remuda-launch: %s\n", err->msg);
        return exit_code;
}

static int start(const struct launch_options *options, const struct launch *launch)
{
        const struct supervision what = {
                .path = launch->program->path,
                .argv = launch->argv,
                .environment = launch->environment.variables,
                .stdout_path = launch->rank.stdout_path,
                .stderr_path = launch->rank.stderr_path,
                .report_path = launch->rank.report_path,
                .sha256 = launch->sha256,
                .keep_fds = { launch_progress_fd(launch), -1 },
                .grace_usec = options->grace_seconds * 1000000U,
                .farewell_usec = 2000000U,
                .die_with_parent = options->die_with_parent,
        };
        struct err err = { 0 };
        int exit_code = EXIT_FAILED;
        int r = supervise(&what, &exit_code, &err);

        if (r == -ENOENT)
                return fail(EXIT_NOT_FOUND, &err);
        if (r == -EACCES || r == -EPERM || r == -ENOEXEC)
                return fail(EXIT_NO_PERMISSION, &err);
        return r < 0 ? fail(EXIT_FAILED, &err) : exit_code;
}

static int print_launch(const struct launch *launch)
{
        for (char *const *arg = launch->argv; *arg != NULL; arg++)
                (void) printf("argument %s\n", *arg);
        for (char *const *variable = launch->environment.variables; *variable != NULL; variable++)
                (void) printf("variable %s\n", *variable);
        return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

int main(int argc, char **argv)
{
        struct launch_options options;
        struct launch launch = { 0 };
        struct err err = { 0 };
        size_t operands = 0;
        int exit_code;

        exit_code = options_start(&description, REMUDA_VERSION, argc, argv, environ, &options, &operands,
                                  stdout, stderr);
        if (exit_code >= 0)
                return exit_code;
        if (options.runtime == NULL) {
                (void) fprintf(stderr,
                               "remuda-launch: no runtime; name it with --runtime, such as --runtime cpu\n");
                return EXIT_USAGE;
        }
        if (launch_prepare(&options, argv + 1, operands, environ, &launch, &exit_code, &err) < 0)
                exit_code = fail(exit_code, &err);
        else
                exit_code = options.dry_run ? print_launch(&launch) : start(&options, &launch);
        launch_free(&launch);
        return exit_code;
}
