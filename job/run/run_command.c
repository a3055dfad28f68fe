/* The command `remuda run`: its options, and what it does with a file of one job, of several, or to look at.
 */
#include <stdio.h>

#include "agent/inventory/measured_json.h"
#include "base/exit_code.h"
#include "base/options.h"
#include "base/version.h"
#include "cli/command/commands.h"
#include "job/run/run.h"
#include "job/run/run_preview.h"
#include "job/run/run_queue.h"
#include "job/spec/program_table.h"

#define AT(member) offsetof(struct run_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { "programs", 0, OPTION_STRING, AT(programs), "FILE", PROGRAM_TABLE_PATH, 0, 0, "the program of each runtime" },
        { "store", 0, OPTION_STRING, AT(store), "dir:PATH", NULL, 0, 0, "take the chips of the inventories there, not of this machine" },
        { "work-dir", 0, OPTION_STRING, AT(work_dir), "DIR", "remuda-jobs", 0, 0, "plans, logs and checkpoints go to DIR/JOB" },
        { "output", 'o', OPTION_CHOICE, AT(output), "table|json", "table", 0, 0, "how the summary is printed" },
        { "profile", 0, OPTION_STRING, AT(profile), "FILE", NULL, 0, 0, "the model's layers, JSON or ONNX, of a job with strategy split" },
        { "replicas", 0, OPTION_STRING, AT(replicas), "auto|N", NULL, 0, 0, "pipelines side by side, of a job with strategy split, in place of spec.replicas" },
        { "dry-run", 0, OPTION_BOOL, AT(dry_run), NULL, NULL, 0, 0, "print each rank, its chip and its share; measure and start nothing" },
        { "resume", 0, OPTION_BOOL, AT(resume), NULL, NULL, 0, 0, "go on from the last checkpoint of this job" },
        { "measure-again", 0, OPTION_BOOL, AT(measure_again), NULL, NULL, 0, 0, "measure speeds even if the speed table has them" },
        { "measure-seconds", 0, OPTION_DOUBLE, AT(measure_seconds), "S", "0", 0, 600, "measure the workers in a world of their own first, for so long" },
        { "measured", 0, OPTION_STRING, AT(measured), "FILE", MEASURED_PATH, 0, 0, "what `remuda devices --measure --save` kept of this machine" },
        { "report", 0, OPTION_STRING, AT(report), "FILE", NULL, 0, 0, "at the end, write a page of the ranks' timeline, overlap and loss" },
        { "grace-seconds", 0, OPTION_UNSIGNED, AT(grace_seconds), "N", "3", 0, 3600, "after SIGINT or SIGTERM, for the ranks to write a checkpoint and end" },
        { "launcher", 0, OPTION_STRING, AT(launcher), "FILE", NULL, 0, 0, "remuda-launch, if it is not beside this program" },
        { "mpirun", 0, OPTION_STRING, AT(mpirun), "FILE", "mpirun", 0, 0, "mpirun of Open MPI" },
        { NULL, 0, 0, 0, NULL, NULL, 0, 0, NULL },
};
/* clang-format on */

const struct option_program command_run_options = {
        .name = "remuda run",
        .operands = "JOB.yaml",
        .operands_min = 1,
        .operands_max = 1,
        .summary = "Run a TrainingJob on this machine: plan, start, watch, repair, release. Several jobs in "
                   "one file "
                   "(--- between them) run one after the other, by priority and dependsOn.",
        .after = "Exit code: 0 succeeded, 1 failed, 2 bad job, 3 a file is missing, 5 not allowed, 130 "
                 "cancelled.\n"
                 "See remuda-run(1).\n",
        .specs = specs,
};

int command_run(int argc, char **argv)
{
        struct run_options options = { 0 };
        json_t *documents = NULL;
        struct err err = { 0 };
        size_t operands = 0;
        int exit_code = options_start(&command_run_options, REMUDA_VERSION, argc, argv, &options, &operands,
                                      stdout, stderr);
        int r;

        if (exit_code >= 0)
                return exit_code;
        r = run_read_documents(argv[1], &documents, &err);
        if (r < 0) {
                (void) fprintf(stderr, "remuda run: %s\n", err.msg);
                return exit_code_of(r);
        }
        if (options.dry_run)
                exit_code = run_preview(&options, argv[1], documents);
        else if (json_array_size(documents) > 1)
                exit_code = run_queue(&options, argv[1], documents);
        else
                exit_code = run_one(&options, argv[1], json_array_get(documents, 0), NULL);
        json_decref(documents);
        return exit_code;
}
