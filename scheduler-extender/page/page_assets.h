/* Page assets: the files of the page, compiled in as they are written. */
#pragma once

#include <stddef.h>

struct page_assets_file {
        const char *path, *type; /* "/" is index.html */
        const char *etag;        /* of its bytes, with its quotes */
        size_t size_bytes;
        const char *bytes;
};

const struct page_assets_file *page_assets_find(const char *path); /* or NULL */

/* page_assets_version() - of all files together: another one where any of them is another. */
#define PAGE_ASSETS_VERSION_BYTES 17
void page_assets_version(char ret[PAGE_ASSETS_VERSION_BYTES]);
