/* What the master core hands to every slave core of its group; in main memory. */
#pragma once

#include "trainer/sunway/slave_cores.h"

struct athread_order {
        struct slave_order order;
        struct slave_core *cores; /* counts of each, kept between runs; the stores are on the cores */
        size_t count;
};
