/* A table that tools/page-assets writes from scheduler-extender/page/assets. */
#include "scheduler-extender/page/page_assets.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"

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

void page_assets_version(char ret[PAGE_ASSETS_VERSION_BYTES])
{
        uint64_t hash = 0;

        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                hash = hash_text(files[i].etag, hash);
        (void) text_format(ret, PAGE_ASSETS_VERSION_BYTES, "%016" PRIx64, hash);
}
