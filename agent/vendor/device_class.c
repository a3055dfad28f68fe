/* The names of classes beside those of the vendors' rows. */
#include "agent/vendor/device_class.h"

#include <stddef.h>
#include <string.h>

#include "agent/vendor/vendor.h"
#include "base/text.h"

static bool is_of(const struct vendor *row, const char *of)
{
        return strcmp(row->name, of) == 0 || strcmp(row->runtime, of) == 0;
}

bool device_class_is_ours(const char *name)
{
        return text_starts_with(name, DEVICE_CLASS_PREFIX);
}

bool device_class_knows(const char *of)
{
        for (size_t i = 0; vendors[i] != NULL; i++)
                if (is_of(vendors[i], of))
                        return true;
        return false;
}

/* A class may be an administrator's own, "remuda-h100": whose chips it means nobody here knows. */
static const char *promise_of(const char *name)
{
        const char *of = device_class_is_ours(name) ? name + strlen(DEVICE_CLASS_PREFIX) : NULL;

        return of != NULL && device_class_knows(of) ? of : NULL;
}

bool device_class_promises(const char *name)
{
        return promise_of(name) != NULL;
}

bool device_class_takes(const char *name, const char *vendor, const char *runtime)
{
        const char *of = promise_of(name);

        return of == NULL || strcmp(of, vendor) == 0 || strcmp(of, runtime) == 0;
}

bool device_class_allows(const char *name, const char *vendor, const char *runtime)
{
        const char *of = promise_of(name);
        bool known = vendor[0] == '\0';

        for (size_t i = 0; of != NULL && vendors[i] != NULL; i++) {
                const struct vendor *row = vendors[i];

                known = known || strcmp(row->name, vendor) == 0;
                if (is_of(row, of) && (vendor[0] == '\0' || strcmp(row->name, vendor) == 0) &&
                    (runtime[0] == '\0' || vendor_serves(row->runtime, runtime)))
                        return true;
        }
        return of == NULL || !known; /* a vendor of the configuration may have any runtime */
}
