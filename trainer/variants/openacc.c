/* OpenACC: the slave cores are the gangs of a parallel region. Compilers without a device for it run the
 * region on the host, core after core, which is what gcc does here and what the device model then says. On a
 * machine whose OpenACC has the slave cores (SWACC) the same region is theirs. */
#include <errno.h>
#include <openacc.h>
#include <stdlib.h>

#include "trainer/sunway/slave_cores.h"

struct gangs {
        struct slave_core *cores;
        size_t count;
};

static void gangs_close(void *state)
{
        struct gangs *g = state;

        for (size_t i = 0; i < g->count; i++)
                free(g->cores[i].store);
        free(g);
}

static int gangs_open(struct slave_core *cores, size_t count, size_t cpus, void **ret, struct err *err)
{
        struct gangs *g = calloc(1, sizeof(*g));

        (void) cpus; /* the runtime chooses */
        if (g == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu slave cores", count);
        *g = (struct gangs){ cores, count };
        for (size_t i = 0; i < count; i++) {
                cores[i].store_bytes = LOCAL_STORE_BYTES;
                cores[i].store = aligned_alloc(4096, LOCAL_STORE_BYTES);
                if (cores[i].store == NULL) {
                        gangs_close(g);
                        return err_set(err, -ENOMEM, "no memory for the local store of slave core %zu", i);
                }
        }
        acc_set_device_type(acc_device_host);
        *ret = g;
        return 0;
}

static void gangs_run(void *state, const struct slave_order *order)
{
        const struct gangs *g = state;
        struct slave_core *cores = g->cores;
        size_t count = g->count;

        /* the jobs hold addresses of main memory: host and slave cores must share it */
#pragma acc parallel loop gang deviceptr(cores, order) firstprivate(count) if (0)
        for (size_t i = 0; i < count; i++)
                slave_core_do(&cores[i], order);
}

extern const struct slave_variant slave_openacc;
const struct slave_variant slave_openacc = { "openacc", gangs_open, gangs_run, gangs_close };
