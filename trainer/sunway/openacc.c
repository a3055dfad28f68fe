/* OpenACC: the CPEs (slave cores) are the gangs of a parallel region. Compilers without a device for it run
 * the region on the host, core after core, which is what gcc does here and what the device model then says.
 * On a machine whose OpenACC has the CPEs (SWACC) the same region is theirs. */
#include <errno.h>
#include <openacc.h>
#include <stdlib.h>

#include "trainer/sunway/cpe_group.h"

struct gangs {
        struct cpe *cores;
        size_t count;
};

static void gangs_close(void *state)
{
        struct gangs *g = state;

        for (size_t i = 0; i < g->count; i++)
                free(g->cores[i].store);
        free(g);
}

static int gangs_open(struct cpe *cores, size_t count, size_t cpus, void **ret, struct err *err)
{
        struct gangs *g = calloc(1, sizeof(*g));

        (void) cpus; /* the runtime chooses */
        if (g == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu slave cores", count);
        *g = (struct gangs){ cores, count };
        for (size_t i = 0; i < count; i++) {
                cores[i].store_bytes = CPE_STORE_BYTES;
                cores[i].store = aligned_alloc(4096, CPE_STORE_BYTES);
                if (cores[i].store == NULL) {
                        gangs_close(g);
                        return err_set(err, -ENOMEM, "no memory for the local store of slave core %zu", i);
                }
        }
        acc_set_device_type(acc_device_host);
        *ret = g;
        return 0;
}

static void gangs_run(void *state, const struct cpe_order *order)
{
        const struct gangs *g = state;
        struct cpe *cores = g->cores;
        size_t count = g->count;

        /* the jobs hold addresses of main memory: host and CPEs must share it */
#pragma acc parallel loop gang deviceptr(cores, order) firstprivate(count) if (0)
        for (size_t i = 0; i < count; i++)
                cpe_do(&cores[i], order);
}

const struct cpe_group_variant cpe_group_openacc = { "openacc", gangs_open, gangs_run, gangs_close };
