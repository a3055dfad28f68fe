/* A list of devices, cut at its commas. */
#include "job/launcher/group_devices.h"

#include <stdlib.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/cleanup.h"

void group_devices_free(struct group_devices *devices)
{
        free(TAKE(devices->names));
        free(TAKE(devices->text));
}

/* Return: does the list name as many? */
static bool cut(const char *list, unsigned chips, struct group_devices *ret)
{
        char *rest = strdup(list), *word;
        unsigned count = 0;

        ret->text = rest;
        ret->names = calloc(chips + 1U, sizeof(*ret->names));
        while (ret->names != NULL && (word = strsep(&rest, ",")) != NULL) {
                if (count < chips)
                        ret->names[count] = word;
                count++;
        }
        return count == chips;
}

struct group_devices group_devices_find(const char *runtime, unsigned chips)
{
        const char *variable = vendor_program_variable(runtime);
        const char *names[] = { variable == NULL ? "REMUDA_DEVICES" : variable, "REMUDA_DEVICES" };
        struct group_devices devices = { NULL, NULL };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const char *list = getenv(names[i]);

                if (list == NULL || list[0] == '\0')
                        continue;
                if (cut(list, chips, &devices))
                        break;
                group_devices_free(&devices);
        }
        return devices;
}
