/* Variables of one resource, in order of name, put together. */
#include "job/launcher/devices/claimed_devices.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define REQUESTS_MAX 256

/* The part of a variable's name that says the resource: up to the last "__". 0 = it is none of ours. */
static size_t resource_bytes(const char *variable)
{
        const char *end = strchr(variable, '='), *at = NULL;

        if (!text_starts_with(variable, CLAIMED_DEVICES_PREFIX) || end == NULL)
                return 0;
        for (const char *next = strstr(variable, "__"); next != NULL && next < end;
             next = strstr(next + 1, "__"))
                at = next;
        return at == NULL ? 0 : (size_t) (at - variable);
}

/* "ID=PCI,ID=PCI": to the lists. */
static void add(const char *pairs, struct text *ids, struct text *places, bool *placed)
{
        while (*pairs != '\0') {
                size_t length = strcspn(pairs, ","), id = strcspn(pairs, "=,");
                size_t place = id < length ? length - id - 1 : 0;

                *placed = *placed && place > 0;
                text_printf(ids, "%s%.*s", ids->size_bytes > 0 ? "," : "", (int) id, pairs);
                text_printf(places, "%s%.*s", places->size_bytes > 0 ? "," : "", (int) place,
                            pairs + length - place);
                pairs += length + (pairs[length] == ',');
        }
}

/* Does it name just these devices? */
static bool names(const char *variable, const char *devices)
{
        CLEANUP(text_free) struct text ids = { 0 }, places = { 0 };
        bool placed = true;

        add(strchr(variable, '=') + 1, &ids, &places, &placed);
        return ids.data != NULL && strcmp(ids.data, devices) == 0;
}

static int by_name(const void *a, const void *b)
{
        return strcmp(*(char *const *) a, *(char *const *) b);
}

/* Return: one that names just the devices, or NULL. */
static const char *last_of(char *const *environment, const char *devices)
{
        for (; *environment != NULL; environment++)
                if (resource_bytes(*environment) > 0 && names(*environment, devices))
                        return *environment;
        return NULL;
}

bool claimed_devices_find(char *const *environment, const char *devices, struct claimed_devices *ret)
{
        const char *last = devices == NULL ? NULL : last_of(environment, devices), *requests[REQUESTS_MAX];
        CLEANUP(text_free) struct text ids = { 0 }, places = { 0 };
        size_t bytes = last == NULL ? 0 : resource_bytes(last), count = 0;
        bool placed = true;

        *ret = (struct claimed_devices){ NULL, NULL };
        for (; bytes > 0 && *environment != NULL && count < REQUESTS_MAX; environment++)
                if (resource_bytes(*environment) == bytes && strncmp(*environment, last, bytes) == 0)
                        requests[count++] = *environment;
        if (count < 2)
                return false;
        qsort(requests, count, sizeof(*requests), by_name);
        for (size_t i = 0; i < count; i++)
                add(strchr(requests[i], '=') + 1, &ids, &places, &placed);
        if (ids.failed || places.failed)
                return false;
        ret->ids = text_take(&ids, NULL);
        ret->places = placed ? text_take(&places, NULL) : NULL;
        return true;
}

void claimed_devices_free(struct claimed_devices *devices)
{
        free(TAKE(devices->ids));
        free(TAKE(devices->places));
}

void claimed_devices_take(void)
{
        struct claimed_devices devices;

        if (!claimed_devices_find(environ, getenv("REMUDA_DEVICES"), &devices))
                return;
        (void) setenv("REMUDA_DEVICES", devices.ids, 1);
        if (devices.places != NULL)
                (void) setenv("REMUDA_PCI", devices.places, 1);
        else
                (void) unsetenv("REMUDA_PCI");
        claimed_devices_free(&devices);
}
