/* remuda-extender: options, one extender on one loop, signals. */
#include <stddef.h>

#include "base/version.h"
#include "scheduler-extender/extender.h"
#include "scheduler-extender/server/server_main.h"

static int open_extender(sd_event *loop, const void *options, void **ret, struct err *err)
{
        return extender_new(loop, options, (struct extender **) ret, err);
}

static void close_extender(void *extender)
{
        extender_free(extender);
}

int main(int argc, char **argv)
{
        static const struct server_main_kind kind = { .open = open_extender, .close = close_extender };
        struct extender_options options = { .server = { .store = NULL } };

        return server_main(&extender_options_program, REMUDA_VERSION, argc, argv, &options.server, &kind);
}
