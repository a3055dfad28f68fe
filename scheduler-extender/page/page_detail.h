/* Page detail: what GET /v1/node says of one node: chip by chip, with who has it and since when. Pure but for
 * the heap. docs/reference/page.md has the fields. */
#pragma once

#include "scheduler-extender/page/page_fleet.h"

/* page_detail_write() - the object of the node. @key: as in json_writer.h. Return: 0 or -ENOMEM; then what
 * was written is not whole. */
int page_detail_write(struct json_writer *w, const char *key, const struct page_fleet_node *node);
