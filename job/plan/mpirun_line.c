/* Options of mpirun and of the remuda-launch that it starts. */
#include "job/plan/mpirun_line.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define SITE_PREFIX "OMPI_MCA_"

void mpirun_line_mca(struct arguments *line, const char *name, const char *value)
{
        arguments_add(line, "--mca");
        arguments_add(line, "%s", name);
        arguments_add(line, "%s", value);
}

void mpirun_line_mca_unless(struct arguments *line, const char *name, const char *value)
{
        char variable[128];

        if (!text_format(variable, sizeof(variable), SITE_PREFIX "%s", name) || getenv(variable) == NULL)
                mpirun_line_mca(line, name, value);
}

bool mpirun_line_is_site(const char *variable)
{
        static const char *const frameworks[] = { "pml",    "btl",      "mtl",   "bml",  "osc",
                                                  "coll",   "rcache",   "mpool", "topo", "op",
                                                  "common", "mca_base", "mpi" };
        size_t length;

        if (!text_starts_with(variable, SITE_PREFIX))
                return false;
        variable += strlen(SITE_PREFIX);
        for (size_t i = 0; i < ARRAY_SIZE(frameworks); i++) {
                length = strlen(frameworks[i]);
                if (text_starts_with(variable, frameworks[i]) &&
                    (variable[length] == '\0' || variable[length] == '_'))
                        return true;
        }
        return false;
}

void mpirun_line_begin(struct arguments *line, const char *mpirun, bool own_cores)
{
        arguments_add(line, "%s", mpirun);
        if (geteuid() == 0)
                arguments_add(line, "--allow-run-as-root");
        arguments_add(line, "--oversubscribe");
        arguments_add(line, "--bind-to");
        arguments_add(line, own_cores ? "core" : "none");
        mpirun_line_mca(line, "ras", "^slurm,tm,gridengine,loadleveler,alps,lsf");
        mpirun_line_mca_unless(line, "mpi_yield_when_idle", own_cores ? "0" : "1");
}

void mpirun_line_ranks(struct arguments *line, uint64_t count, const char *launcher, const char *runtime,
                       unsigned grace_seconds)
{
        arguments_add(line, "-np");
        arguments_add(line, "%llu", (unsigned long long) count);
        arguments_add(line, "%s", launcher);
        arguments_add(line, "--runtime");
        arguments_add(line, "%s", runtime);
        arguments_add(line, "--grace-seconds");
        arguments_add(line, "%u", grace_seconds);
        arguments_add(line, "--die-with-parent");
}
