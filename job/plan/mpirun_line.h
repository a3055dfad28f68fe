/* mpirun's command line, as far as every world of ours has the same, and which settings of Open MPI are the
 * site's own.
 *
 * How ranks talk to each other (pml, btl, mtl, coll, UCX_*, ...) is left to the site: Open MPI's own choice,
 * the files openmpi-mca-params.conf, and OMPI_MCA_* of the environment, over which an option of the line
 * would win. On the line stands how worlds of ours are started, and what has a reason here: no batch system's
 * allocation is taken for ours (ras). Reads the environment, else pure but for the heap. */
#pragma once

#include "job/spec/job_arguments.h"

/* mpirun_line_begin() - @own_cores: every rank has a core of its own, so that it may spin and is bound */
void mpirun_line_begin(struct arguments *line, const char *mpirun, bool own_cores);

/* mpirun_line_mca() - what a world of ours needs. mpirun_line_mca_unless() - what it has unless the site's
 * OMPI_MCA_NAME says otherwise. */
void mpirun_line_mca(struct arguments *line, const char *name, const char *value);
void mpirun_line_mca_unless(struct arguments *line, const char *name, const char *value);

/* mpirun_line_is_site() - is a variable ("OMPI_MCA_pml") a setting of how ranks talk, which a site may make
 * for all its jobs? Others of that prefix belong to one run of one mpirun. */
bool mpirun_line_is_site(const char *variable);

/* mpirun_line_ranks() - so many more ranks of a runtime, each started by remuda-launch; its further options,
 * "--" and the program's arguments may follow. */
void mpirun_line_ranks(struct arguments *line, uint64_t count, const char *launcher, const char *runtime,
                       unsigned grace_seconds);
