/* Vendor selectors: whose are known, and what follows from a model's name. */
#include "agent/vendor/vendor_selectors.h"

#include "base/text.h"

const struct vendor *vendor_selectors_of(const char *name)
{
        const struct vendor *row = vendor_find(name, NULL);

        while (row != NULL && row->selectors == NULL)
                row = vendor_find(name, row);
        return row;
}

size_t vendor_selectors_count(const struct vendor *vendor)
{
        size_t count = vendor->selectors->memory;

        for (size_t i = 0; i < VENDOR_SELECTORS_MAX; i++)
                count += vendor->selectors->attributes[i].what != VENDOR_SELECTORS_NOTHING;
        return count;
}

const struct vendor_selectors_generation *vendor_selectors_generation_of(const struct vendor *vendor,
                                                                         const char *model)
{
        const struct vendor_selectors_generation *at = vendor->selectors->generations;

        while (at != NULL && at->model != NULL && !text_starts_with(model, at->model))
                at++;
        return at == NULL || at->model == NULL ? NULL : at;
}
