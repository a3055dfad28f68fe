/* Dies or stands still where the environment says so; in a test build alone. */
#include "io/failpoint.h"

#ifdef REMUDA_FAILPOINTS
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

void failpoint_reach(const char *name, const char *of)
{
        const char *wanted = getenv("REMUDA_FAILPOINT");
        char here[256];
        size_t length;

        if (wanted == NULL ||
            !text_format(here, sizeof(here), "%s%s%s:", name, of == NULL ? "" : "/", of == NULL ? "" : of))
                return;
        length = strlen(here);
        if (strncmp(wanted, here, length) == 0 &&
            open(wanted + length, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) >= 0)
                (void) kill(getpid(), getenv("REMUDA_FAILPOINT_STOPS") != NULL ? SIGSTOP : SIGKILL);
}
#endif
