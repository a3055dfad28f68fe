/* remuda-launch: options, and which of its five tasks they ask for. */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/program_file.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/version.h"
#include "io/log.h"
#include "job/launcher/devices/claimed_devices.h"
#include "job/launcher/group.h"
#include "job/launcher/in_pods.h"
#include "job/launcher/launch.h"
#include "job/launcher/manager.h"
#include "job/launcher/remote_start.h"
#include "job/launcher/supervise.h"

struct main_options {
        struct launch_options launch;
        struct rendezvous_options rendezvous;
        const char *manage, *join, *start_on, *copy_to, *log_format, *log_level;
};

#define AT(member)  offsetof(struct main_options, launch.member)
#define AT2(member) offsetof(struct main_options, rendezvous.member)

/* clang-format off */
static const struct option_spec specs[] = {
        { "programs", 0, OPTION_STRING, AT(programs), "FILE", NULL, 0, 0, "the program table (else the agent's, with --socket, or " PROGRAM_TABLE_PATH ")" },
        { "runtime", 0, OPTION_STRING, AT(runtime), "RUNTIME", NULL, 0, 0, "whose program to start: cuda, cann, cpu... (else REMUDA_LAUNCH_RUNTIME)" },
        { "socket", 0, OPTION_STRING, AT(socket), "PATH", NULL, 0, 0, "ask the agent there what the chips need" },
        { "rank-file", 0, OPTION_STRING, AT(rank_file), "FILE", NULL, 0, 0, "variables, logs and report of each rank, written by remuda run" },
        { "grace-seconds", 0, OPTION_UNSIGNED, AT(grace_seconds), "N", "8", 0, 3600, "from SIGTERM to SIGKILL of all that is left" },
        { "die-with-parent", 0, OPTION_BOOL, AT(die_with_parent), NULL, NULL, 0, 0, "end when the process that started this one ends" },
        { "dry-run", 0, OPTION_BOOL, AT(dry_run), NULL, NULL, 0, 0, "print the command line and the environment, start nothing" },
        { "manage", 0, OPTION_STRING, offsetof(struct main_options, manage), "ADDR:PORT", NULL, 0, 0, "be the manager of a job over several device groups" },
        { "join", 0, OPTION_STRING, offsetof(struct main_options, join), "ADDR:PORT", NULL, 0, 0, "be a device group of the job that is managed there" },
        { "join-file", 0, OPTION_STRING, AT2(join_file), "FILE", NULL, 0, 0, "be a group of the manager that FILE names, \"WORLD ADDR:PORT\", world after world" },
        { "start-on", 0, OPTION_STRING, offsetof(struct main_options, start_on), "ADDR:PORT", NULL, 0, 0, "be mpirun's remote start agent: -- HOST orted ARGS... (`manager`: REMUDA_MANAGER)" },
        { "token-file", 0, OPTION_STRING, AT2(token_file), "FILE", NULL, 0, 0, "the job's token, 16 characters at least" },
        { "tls-cert", 0, OPTION_STRING, AT2(tls.certificate), "FILE", NULL, 0, 0, "speak TLS: this side's certificate, PEM; with --tls-key and --tls-ca" },
        { "tls-key", 0, OPTION_STRING, AT2(tls.key), "FILE", NULL, 0, 0, "its key" },
        { "tls-ca", 0, OPTION_STRING, AT2(tls.ca), "FILE", NULL, 0, 0, "the CA of the job, of which the other side's certificate must be" },
        { "tls-status", 0, OPTION_STRING, AT2(tls.status), "FOLDER", NULL, 0, 0, "--manage: tls.crt, tls.key for those who ask, without a certificate, by the name status.remuda.dev how the job is" },
        { "tls-name", 0, OPTION_STRING, AT2(tls.name), "NAME", NULL, 0, 0, "that the manager's certificate has (else its address)" },
        { "tls-group-name", 0, OPTION_STRING, AT2(tls.group_name), "NAME", NULL, 0, 0, "--manage: that the groups' certificates have (else any of the CA)" },
        { "plan", 0, OPTION_STRING, AT2(plan), "FILE", NULL, 0, 0, "--manage: the groups and their speeds, JSON" },
        { "group", 0, OPTION_STRING, AT2(group), "NAME", NULL, 0, 0, "--join: this group's name in the plan" },
        { "chips", 0, OPTION_UNSIGNED, AT2(chips), "N", "1", 1, MESSAGE_CHIPS_MAX, "--join: how many chips it has" },
        { "advertise", 0, OPTION_STRING, AT2(advertise), "ADDR", NULL, 0, 0, "--manage, --join: the numeric address that others reach this side at" },
        { "log-lines", 0, OPTION_BOOL, AT2(log_lines), NULL, NULL, 0, 0, "--join: write what the ranks print, every line after [RANK]" },
        { "status", 0, OPTION_STRING, AT2(status), "FILE", NULL, 0, 0, "--manage: the state of the job, JSON, written once a second" },
        { "result", 0, OPTION_STRING, AT2(result), "FILE", NULL, 0, 0, "--manage: how the job ended, JSON of at most 4096 bytes, written at the end" },
        { "work-dir", 0, OPTION_STRING, AT2(work_dir), "DIR", "remuda-jobs", 0, 0, "--join: where logs go" },
        { "wait-seconds", 0, OPTION_UNSIGNED, AT2(wait_seconds), "N", "60", 1, 86400, "--manage, --join: for the others to come" },
        { "rejoin-seconds", 0, OPTION_UNSIGNED, AT2(rejoin_seconds), "N", "20", 0, 86400, "--join: after the manager was lost, try to come back" },
        { "mpirun", 0, OPTION_STRING, AT2(mpirun), "FILE", "mpirun", 0, 0, "--manage: mpirun of Open MPI" },
        LOG_ROWS(offsetof(struct main_options, log_format), offsetof(struct main_options, log_level), "text", "info"),
        { "copy-to", 0, OPTION_STRING, offsetof(struct main_options, copy_to), "PATH", NULL, 0, 0, "copy this program there and stop: it runs in any image" },
        { NULL, 0, 0, 0, NULL, NULL, 0, 0, NULL },
};
/* clang-format on */

static const struct option_program description = {
        .name = "remuda-launch",
        .operands = "[-- ARGS...]",
        .operands_max = UINT_MAX, /* what exec takes, a program may get */
        .summary = "Start the program that an administrator's table has for a runtime, and leave nothing "
                   "behind.",
        .environment_prefix = "REMUDA_LAUNCH_",
        .environment = &environ,
        .after = "Exit code: the program's; 128 + N if signal N killed it; 2 bad table or hash, 3 no such "
                 "runtime or\n"
                 "program, 5 not executable. See remuda-launch(1).\n",
        .specs = specs,
};

/* A supervisor's child may have no use for the launcher's own words; a person has. */
static int fail(const struct log *log, int exit_code, const struct err *err)
{
        log_end(log, err->msg);
        return exit_code;
}

static int start(const struct launch_options *options, const struct launch *launch)
{
        const struct supervise_what what = {
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
                return fail(options->log, EXIT_NOT_FOUND, &err);
        if (r == -EACCES || r == -EPERM || r == -ENOEXEC)
                return fail(options->log, EXIT_NO_PERMISSION, &err);
        return r < 0 ? fail(options->log, EXIT_FAILED, &err) : exit_code;
}

static int print_launch(const struct launch *launch)
{
        for (char *const *arg = launch->argv; *arg != NULL; arg++)
                (void) printf("argument %s\n", *arg);
        for (char *const *variable = launch->environment.variables; *variable != NULL; variable++)
                (void) printf("variable %s\n", *variable);
        return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED;
}

static int launch_program(const struct launch_options *options, char *const *args, size_t count)
{
        struct launch launch = { 0 };
        struct err err = { 0 };
        int exit_code;

        if (options->runtime == NULL) {
                log_end(options->log, "no runtime; name it with --runtime, such as --runtime cpu");
                return EXIT_USAGE;
        }
        if (launch_prepare(options, args, count, environ, &launch, &exit_code, &err) < 0)
                exit_code = fail(options->log, exit_code, &err);
        else
                exit_code = options->dry_run ? print_launch(&launch) : start(options, &launch);
        launch_free(&launch);
        return exit_code;
}

static int meet(struct main_options *options, char *const *words, size_t count)
{
        struct rendezvous_options *rendezvous = &options->rendezvous;

        rendezvous->programs =
                options->launch.programs == NULL ? PROGRAM_TABLE_PATH : options->launch.programs;
        rendezvous->runtime = options->launch.runtime;
        rendezvous->grace_seconds = options->launch.grace_seconds;
        if ((options->manage != NULL) + (options->join != NULL) + (rendezvous->join_file != NULL) +
                    (options->start_on != NULL) >
            1) {
                log_end(rendezvous->log,
                        "--manage, --join, --join-file and --start-on exclude each other; give one");
                return EXIT_USAGE;
        }
        if (options->start_on != NULL && strcmp(options->start_on, "manager") == 0)
                options->start_on = getenv("REMUDA_MANAGER");
        rendezvous->address = options->manage != NULL ? options->manage
                              : options->join != NULL ? options->join
                                                      : options->start_on;
        if (rendezvous->address == NULL && rendezvous->join_file == NULL) {
                log_end(rendezvous->log, "--start-on manager: REMUDA_MANAGER is not set");
                return EXIT_USAGE;
        }
        if (options->manage != NULL)
                return manager_run(rendezvous);
        if (options->start_on != NULL)
                return remote_start(rendezvous, words, count);
        if (rendezvous->group == NULL || rendezvous->runtime == NULL) {
                log_end(rendezvous->log, "--join and --join-file need --group NAME and --runtime RUNTIME");
                return EXIT_USAGE;
        }
        return group_run(rendezvous);
}

static int copy_to(const struct log *log, const char *path)
{
        struct err err = { 0 };
        int r = in_pods_copy(path, &err);

        if (r < 0)
                return fail(log, exit_code_of(r), &err);
        return EXIT_DONE;
}

int main(int argc, char **argv)
{
        struct main_options options = { 0 };
        struct log log;
        size_t operands = 0;
        int exit_code;

        exit_code =
                options_start(&description, REMUDA_VERSION, argc, argv, &options, &operands, stdout, stderr);
        if (exit_code >= 0)
                return exit_code;
        log_init(&log, "remuda-launch", options.log_format, options.log_level);
        options.launch.log = options.rendezvous.log = &log;
        claimed_devices_take();
        if (options.copy_to != NULL)
                return copy_to(&log, options.copy_to);
        if (options.manage != NULL || options.join != NULL || options.rendezvous.join_file != NULL ||
            options.start_on != NULL)
                return meet(&options, argv + 1, operands);
        return launch_program(&options.launch, argv + 1, operands);
}
