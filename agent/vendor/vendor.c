/* Vendor: questions that are answered from the rows alone. */
#include "agent/vendor/vendor.h"

#include <ctype.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define COMM_BYTES 15 /* of a process's name that the kernel tells */

static bool is_kind(const struct vendor_kind *k)
{
        return k != NULL && (k->kind != NULL || k->resource != NULL || k->fabric != NULL);
}

static bool listed(const char *const *list, size_t max, const char *name)
{
        for (size_t i = 0; i < max && list[i] != NULL; i++)
                if (strcmp(list[i], name) == 0)
                        return true;
        return false;
}

const struct vendor *vendor_find(const char *name, const struct vendor *after)
{
        size_t i = 0;

        while (after != NULL && vendors[i] != NULL && vendors[i++] != after)
                ;
        for (; vendors[i] != NULL; i++)
                if (strcmp(vendors[i]->name, name) == 0)
                        return vendors[i];
        return NULL;
}

const struct vendor_kind *vendor_kind_of(const struct vendor *vendor, const char *kind)
{
        for (const struct vendor_kind *k = vendor->kinds; is_kind(k); k++)
                if (k->kind == NULL || strcmp(k->kind, kind) == 0)
                        return k;
        return NULL;
}

size_t vendor_resources(const struct vendor *vendor, const char **ret, size_t max)
{
        size_t count = 0;

        ret[count++] = vendor->resource;
        if (vendor->other_driver.resource != NULL && count < max)
                ret[count++] = vendor->other_driver.resource;
        for (const struct vendor_kind *k = vendor->kinds; is_kind(k) && count < max; k++)
                if (k->resource != NULL)
                        ret[count++] = k->resource;
        for (size_t i = 0; vendor->more_resources[i] != NULL && count < max; i++)
                ret[count++] = vendor->more_resources[i];
        return count;
}

const struct vendor *vendor_of_claims(const char *driver, const char **ret_whole)
{
        for (size_t v = 0; vendors[v] != NULL; v++)
                for (size_t i = 0; vendors[v]->claimed[i][0] != NULL; i++)
                        if (strcmp(vendors[v]->claimed[i][0], driver) == 0) {
                                *ret_whole = vendors[v]->claimed[i][1];
                                return vendors[v];
                        }
        return NULL;
}

/* UUIDs begin with a word of the vendor's ("GPU-8f2c...", "MIG-..."); PCI addresses and serials do not. A
 * compute partition bears its package's UUID and a number of ours, which nobody else knows. */
bool vendor_has_uuid(const struct device *device)
{
        return (text_starts_with(device->id, "GPU-") && device->partition[0] == '\0') ||
               text_starts_with(device->id, "MIG-");
}

static bool number_of_file(const struct device *device, char *ret, size_t ret_bytes)
{
        for (size_t i = 0; i < device->node_count; i++) {
                const char *path = device->nodes[i], *end = path + strlen(path), *digits = end;

                while (digits > path && isdigit((unsigned char) digits[-1]))
                        digits--;
                if (digits < end)
                        return text_copy(ret, ret_bytes, digits);
        }
        return false;
}

void vendor_visible_name(enum vendor_naming by, const struct device *device, char *ret, size_t ret_bytes)
{
        bool by_uuid = by == VENDOR_BY_UUID_OR_NUMBER || by == VENDOR_BY_UUID_OR_INDEX;
        bool by_number = by == VENDOR_BY_UUID_OR_NUMBER || by == VENDOR_BY_NUMBER;

        if (by_uuid && vendor_has_uuid(device))
                (void) text_copy(ret, ret_bytes, device->id);
        else if (!by_number || !number_of_file(device, ret, ret_bytes))
                (void) text_format(ret, ret_bytes, "%u", device->ordinal);
}

bool vendor_serves(const char *group_runtime, const char *runtime)
{
        if (strcmp(group_runtime, runtime) == 0)
                return true;
        for (size_t i = 0; vendors[i] != NULL; i++)
                if (vendors[i]->serves[0] != NULL && strcmp(vendors[i]->runtime, group_runtime) == 0 &&
                    listed(vendors[i]->serves, ARRAY_SIZE(vendors[i]->serves), runtime))
                        return true;
        return false;
}

const char *vendor_program_variable(const char *runtime)
{
        for (size_t i = 0; vendors[i] != NULL; i++)
                if (vendors[i]->program.name != NULL && strcmp(vendors[i]->runtime, runtime) == 0)
                        return vendors[i]->program.name;
        return NULL;
}

static bool is_called(const struct vendor_variable *variable, const char *name)
{
        return variable->name != NULL && strcmp(variable->name, name) == 0;
}

bool vendor_is_variable(const char *name)
{
        for (size_t i = 0; vendors[i] != NULL; i++)
                if (is_called(&vendors[i]->container, name) || is_called(&vendors[i]->program, name) ||
                    listed(vendors[i]->passed_on, ARRAY_SIZE(vendors[i]->passed_on), name))
                        return true;
        return false;
}

bool vendor_loads(const char *name)
{
        for (size_t i = 0; vendors[i] != NULL; i++)
                if (listed(vendors[i]->loads, ARRAY_SIZE(vendors[i]->loads), name))
                        return true;
        return false;
}

bool vendor_is_subsystem(const char *name)
{
        for (size_t i = 0; vendors[i] != NULL; i++) {
                const struct vendor *v = vendors[i];

                for (size_t j = 0; j < ARRAY_SIZE(v->classes_of_number); j++)
                        if (v->classes_of_number[j].directory != NULL &&
                            strcmp(v->classes_of_number[j].directory, name) == 0)
                                return true;
                if (listed(v->subsystems, ARRAY_SIZE(v->subsystems), name))
                        return true;
        }
        return false;
}

bool vendor_is_monitor(const char *comm)
{
        for (size_t i = 0; vendors[i] != NULL; i++)
                for (size_t j = 0; vendors[i]->monitors[j] != NULL; j++)
                        if (strncmp(comm, vendors[i]->monitors[j], COMM_BYTES) == 0)
                                return true;
        return false;
}
