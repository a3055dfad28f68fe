/* Launch lines: a placed job, written as what other launchers take: Open MPI, torchrun, Ascend rank tables,
 * FlagScale, HCCL, Slurm, LSF on Sunway, stages for torch and Megatron, or plain environments. Pure: text
 * out, nothing is run. */
#pragma once

#include "job/plan/launch.h"

enum launch_lines_format {
        LAUNCH_MPIRUN,
        LAUNCH_TORCHRUN,
        LAUNCH_RANKTABLE,
        LAUNCH_FLAGSCALE,
        LAUNCH_HCCL,
        LAUNCH_SLURM,
        LAUNCH_BSUB,
        LAUNCH_STAGES,
        LAUNCH_ENV,
        LAUNCH_FORMAT_COUNT
};

int launch_lines_format_parse(const char *name, enum launch_lines_format *ret); /* 0 or -EINVAL */

/* launch_lines_write() - Return: 0; -EINVAL when the job has nothing that the format could say (no Ascend
 * chip for a rank table, no program for mpirun...), *err says what to give. */
int launch_lines_write(const struct launch_world *world, enum launch_lines_format format, struct text *out,
                       struct err *err);
