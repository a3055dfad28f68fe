/* Two digits and a little say how long; a third would change while it is read. */
#include "cli/command/duration.h"

#include <math.h>

#include "base/text.h"

#define HOURS_MAX 1e6 /* what is longer says no more */

const char *duration_format(char ret[DURATION_BYTES], double seconds)
{
        ret[0] = '\0';
        if (!isfinite(seconds) || seconds < 0)
                return ret;
        if (seconds < 100)
                (void) text_format(ret, DURATION_BYTES, "%.0fs", seconds);
        else if (seconds < 6000)
                (void) text_format(ret, DURATION_BYTES, "%.0fm", seconds / 60);
        else
                (void) text_format(ret, DURATION_BYTES, "%.1fh", fmin(seconds / 3600, HOURS_MAX));
        return ret;
}
