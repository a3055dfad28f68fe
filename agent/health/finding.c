/* Finding: the worse one stays. */
#include "agent/health/finding.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

void finding_add(struct finding *finding, enum finding_level level, const char *rule, const char *reason,
                 const char *fmt, ...)
{
        va_list ap;

        if (level <= finding->level)
                return;
        finding->level = level;
        (void) text_copy(finding->rule, sizeof(finding->rule), rule);
        (void) text_copy(finding->reason, sizeof(finding->reason), reason);
        va_start(ap, fmt);
        (void) vsnprintf(finding->message, sizeof(finding->message), fmt, ap);
        va_end(ap);
}
