/* What the management core hands to every CPE (slave core) of its group; in main memory. */
#pragma once

#include "trainer/sunway/cpe.h"

/* A local store's size is a CPE's own constant: SLAVE_STORE_BYTES of trainer/build.mk. */
#ifndef ATHREAD_STORE_BYTES
#define ATHREAD_STORE_BYTES 65536
#endif

struct athread_cpe_order {
        struct cpe_order order;
        struct cpe *cores; /* counts of each, kept between runs; the stores are on the cores */
        size_t count;
};
