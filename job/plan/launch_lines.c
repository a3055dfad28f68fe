/* The table of formats. */
#include "job/plan/launch_lines.h"

#include <errno.h>
#include <string.h>

#include "job/plan/launch_ascend.h"
#include "job/plan/launch_batch.h"
#include "job/plan/launch_flagscale.h"
#include "job/plan/launch_mpi.h"
#include "job/plan/launch_torch.h"
#include "job/plan/stages/launch_stages.h"

/* Python, and Megatron's options as a comment behind it; not of a model that is too small for them. */
static int stages(const struct launch_world *world, struct text *out, struct err *err)
{
        int r = launch_stages_pipelining(world, out, err);

        if (r == 0)
                (void) launch_stages_megatron(world, out, NULL);
        return r;
}

static const struct {
        const char *name;
        int (*write)(const struct launch_world *world, struct text *out, struct err *err);
} formats[LAUNCH_FORMAT_COUNT] = {
        [LAUNCH_MPIRUN] = { "mpirun", launch_mpi_run },
        [LAUNCH_TORCHRUN] = { "torchrun", launch_torch_run },
        [LAUNCH_RANKTABLE] = { "ranktable", launch_ascend_ranktable },
        [LAUNCH_FLAGSCALE] = { "flagscale", launch_flagscale },
        [LAUNCH_HCCL] = { "hccl", launch_ascend_hccl },
        [LAUNCH_SLURM] = { "slurm", launch_batch_slurm },
        [LAUNCH_BSUB] = { "bsub", launch_batch_bsub },
        [LAUNCH_STAGES] = { "stages", stages },
        [LAUNCH_ENV] = { "env", launch_torch_env },
};

int launch_lines_format_parse(const char *name, enum launch_lines_format *ret)
{
        for (size_t i = 0; i < LAUNCH_FORMAT_COUNT; i++)
                if (strcmp(formats[i].name, name) == 0) {
                        *ret = (enum launch_lines_format) i;
                        return 0;
                }
        return -EINVAL;
}

int launch_lines_write(const struct launch_world *world, enum launch_lines_format format, struct text *out,
                       struct err *err)
{
        if (world->count == 0)
                return err_set(err, -EINVAL, "the job has no ranks");
        return formats[format].write(world, out, err);
}
