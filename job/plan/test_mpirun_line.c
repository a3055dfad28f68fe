/* What stands on mpirun's line, and what is left to the site. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "job/plan/mpirun_line.h"

/* The value that follows "--mca NAME"; NULL = it is not there. */
static const char *value_of(const struct arguments *line, const char *name)
{
        for (size_t i = 0; i + 2 < line->count; i++)
                if (strcmp(line->list[i], "--mca") == 0 && strcmp(line->list[i + 1], name) == 0)
                        return line->list[i + 2];
        return NULL;
}

/* An option of the line would win over the environment and over openmpi-mca-params.conf. */
static void how_ranks_talk_is_left_to_the_site(void **state)
{
        static const char *const frameworks[] = { "pml", "btl", "mtl", "osc", "coll", "bml" };
        struct arguments line = { 0 };

        (void) state;
        (void) setenv("OMPI_MCA_pml", "ucx", 1);
        mpirun_line_begin(&line, "mpirun", false);
        for (size_t i = 0; i < sizeof(frameworks) / sizeof(frameworks[0]); i++)
                assert_null(value_of(&line, frameworks[i]));
        assert_string_equal(value_of(&line, "ras"), "^slurm,tm,gridengine,loadleveler,alps,lsf");
        assert_string_equal(getenv("OMPI_MCA_pml"), "ucx");
        arguments_free(&line);
        (void) unsetenv("OMPI_MCA_pml");
}

static void a_default_gives_way(void **state)
{
        struct arguments line = { 0 };

        (void) state;
        (void) unsetenv("OMPI_MCA_mpi_yield_when_idle");
        mpirun_line_begin(&line, "mpirun", false);
        assert_string_equal(value_of(&line, "mpi_yield_when_idle"), "1");
        arguments_free(&line);
        (void) setenv("OMPI_MCA_mpi_yield_when_idle", "0", 1);
        mpirun_line_begin(&line, "mpirun", false);
        assert_null(value_of(&line, "mpi_yield_when_idle"));
        arguments_free(&line);
        (void) unsetenv("OMPI_MCA_mpi_yield_when_idle");
}

/* A rank's launcher may itself have been started by another mpirun, whose variables say where that one is. */
static void settings_of_a_site_are_told_from_those_of_a_run(void **state)
{
        static const struct {
                const char *name;
                bool site;
        } rows[] = {
                { "OMPI_MCA_pml", true },
                { "OMPI_MCA_pml_ucx_tls", true },
                { "OMPI_MCA_btl_tcp_if_include", true },
                { "OMPI_MCA_coll_tuned_use_dynamic_rules", true },
                { "OMPI_MCA_mca_base_param_files", true },
                { "OMPI_MCA_orte_ess_vpid", false },
                { "OMPI_MCA_ess", false },
                { "OMPI_MCA_plm", false },
                { "OMPI_MCA_shmem_RUNTIME_QUERY_hint", false },
                { "OMPI_MCA_pmlx", false },
                { "OMPI_MCA_", false },
                { "OMPI_COMM_WORLD_RANK", false },
                { "PMIX_RANK", false },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                if (mpirun_line_is_site(rows[i].name) != rows[i].site)
                        fail_msg("%s", rows[i].name);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(how_ranks_talk_is_left_to_the_site),
                cmocka_unit_test(a_default_gives_way),
                cmocka_unit_test(settings_of_a_site_are_told_from_those_of_a_run),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
