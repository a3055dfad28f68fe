/* The real CPEs (slave cores), by Sunway's athread library: the management core's side. Compiled only where
 * athread.h is (trainer/build.mk); the CPEs' side is athread_cpe.c, compiled for them. It has not run on a
 * Sunway processor: there was none. The calls are those of SW26010's athread.h. */
#include <athread.h>
#include <errno.h>

#include "trainer/sunway/athread_cpe.h"
#include "trainer/sunway/cpe_group.h"

extern void SLAVE_FUN(remuda_cpe_main)(void *order);

static struct athread_cpe_order current; /* one core group a process */

static void athread_close(void *state)
{
        (void) state;
        (void) athread_halt();
}

static int athread_open(struct cpe *cores, const struct cpe_group_rule *rule, void **ret, struct err *err)
{
        size_t count = rule->count;

        if (rule->dma_bytes_per_s > 0)
                return err_set(err, -EINVAL, "--simulate-dma is for --variant threads: leave it out");
        if (rule->store_bytes > ATHREAD_STORE_BYTES)
                return err_set(
                        err, -EINVAL,
                        "the slave cores' half was compiled for local stores of %d bytes, not %zu: give "
                        "--local-store %d, or build with SLAVE_STORE_BYTES=%zu",
                        ATHREAD_STORE_BYTES, rule->store_bytes, ATHREAD_STORE_BYTES / 1024,
                        rule->store_bytes);
        if (athread_init() != 0)
                return err_set(err, -EIO, "athread_init failed: is this a Sunway core group?");
        if (count > (size_t) athread_get_max_threads()) {
                (void) athread_halt();
                return err_set(err, -EINVAL, "--slave-cores %zu: this core group has %d", count,
                               athread_get_max_threads());
        }
        (void) athread_set_num_threads((int) count);
        current = (struct athread_cpe_order){ .cores = cores, .count = count };
        *ret = &current;
        return 0;
}

static void athread_run(void *state, const struct cpe_order *order)
{
        struct athread_cpe_order *o = state;

        o->order = *order;
        (void) athread_spawn(remuda_cpe_main, o);
        (void) athread_join();
}

const struct cpe_group_variant cpe_group_athread = { "athread", athread_open, athread_run, athread_close };
