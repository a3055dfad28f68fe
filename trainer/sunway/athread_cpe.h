/* What the master core hands to every CPE (slave core) of its group; in main memory. */
#pragma once

#include "trainer/sunway/cpe.h"

struct athread_cpe_order {
        struct cpe_order order;
        struct cpe *cores; /* counts of each, kept between runs; the stores are on the cores */
        size_t count;
};
