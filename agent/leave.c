/* The last word of an agent that ends. */
#include "agent/leave.h"

#include <string.h>

#include "agent/kubelet.h"
#include "agent/node_report.h"

bool leave_begin(struct agent *a)
{
        struct plugin_status kubelet;

        if (a->options->store == NULL || strcmp(a->options->store, "kubernetes") != 0 ||
            !kubelet_status(a->kubelet, &kubelet) || !kubelet.kubelet_present)
                return false;
        node_report_leave(a->report);
        log_line(&a->log, LOG_INFO, "leaving", "serves_on_ms=%u", (unsigned) (LEAVE_USEC / 1000));
        return true;
}
