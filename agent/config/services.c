/* Services: the two that are more than a pointer. */
#include "agent/config/services.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void services_event(const struct services *services, const char *type, const char *reason, const char *device,
                    const char *fmt, ...)
{
        char sentence[512];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(sentence, sizeof(sentence), fmt, ap); /* NOLINT: for people, cut at its end */
        va_end(ap);
        services->event(services->userdata, type, reason, device, sentence);
}

bool services_is_held(const struct services *services, const char *device_id, const char *pod_namespace,
                      const char *pod)
{
        const struct holder *holders = NULL;
        size_t n = services->holders != NULL ? services->holders(services->userdata, &holders, NULL) : 0;

        for (size_t i = 0; i < n; i++)
                if (strcmp(holders[i].device_id, device_id) == 0 &&
                    (pod == NULL || (strcmp(holders[i].pod_namespace, pod_namespace) == 0 &&
                                     strcmp(holders[i].pod, pod) == 0)))
                        return true;
        return false;
}
