/* remuda-controller: options, one job controller on one loop, signals. */
#include <stddef.h>

#include "base/version.h"
#include "job/controller/host.h"
#include "scheduler-extender/server/server_main.h"

static int open_host(sd_event *loop, const void *options, void **ret, struct err *err)
{
        return host_new(loop, options, (struct host **) ret, err);
}

static void close_host(void *host)
{
        host_free(host);
}

int main(int argc, char **argv)
{
        static const struct server_main_kind kind = { .open = open_host, .close = close_host };
        struct server_options options = { .store = NULL };

        return server_main(&host_program, REMUDA_VERSION, argc, argv, &options, &kind);
}
