/* Memory type: "DDR5" and its like, from the firmware's SMBIOS table. Private to lib/discovery. */
#pragma once

#include <stddef.h>

#include "agent/tree/tree.h"

/* scan_memory_type() - of the first memory device that is fitted; `ret` is untouched when it is not known
 * (the table is root's to read, and many virtual machines have none). */
void scan_memory_type(const struct tree *tree, char *ret, size_t ret_bytes);
