/* Intel Xeon Phi coprocessors (x100 and x200 cards; the self-booting x200 processors are CPU groups). */
#include <string.h>

#include "agent/discovery/reader.h"
#include "agent/vendor/rows.h"
#include "base/text.h"

static int add(struct scan *scan, struct sighting *sighting)
{
        char path[64], state[32];

        (void) text_format(path, sizeof(path), "sys/class/mic/mic%u/state", sighting->number);
        if (sighting->number_known && tree_read_text(scan->tree, path, state, sizeof(state)) > 0 &&
            (strcmp(state, "lost") == 0 || strcmp(state, "reset failed") == 0 || strcmp(state, "error") == 0))
                sighting_judge(sighting, HEALTH_UNHEALTHY, "NotOperational", "mic-state",
                               "its driver says '%s'", state);
        return sighting_add(scan, sighting);
}

const struct reader reader_intel_phi = {
        .vendor = &vendor_intel_phi,
        .add = add,
};
