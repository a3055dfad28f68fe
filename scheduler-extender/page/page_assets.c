/* A table that tools/page-assets writes from scheduler-extender/page/assets. */
#include "scheduler-extender/page/page_assets.h"

#include <string.h>

#include "base/cleanup.h"

static const struct page_assets_file files[] = {
#include "scheduler-extender/page_assets.inc"
};

const struct page_assets_file *page_assets_find(const char *path)
{
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (strcmp(files[i].path, path) == 0)
                        return &files[i];
        return NULL;
}
